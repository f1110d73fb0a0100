"""Why a child cannot be planned: it waits, or it fails. Both end the planning of that child and of nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.errors import RenderError, RuleopError, Site
from ruleop.templating import LimitExceeded, Waiting

if TYPE_CHECKING:
    from ruleop.planning.actions import Read


class ChildWaits(RuleopError):  # noqa: N818 - waiting is no error
    """Something that the child needs is not there yet; what exists of it stays as it is."""

    def __init__(self, for_what: str, site: Site | None = None, *, why: str) -> None:
        super().__init__(for_what)
        self.for_what = for_what
        self.site = site
        self.why = why


class Unread(ChildWaits):
    """An object has to be read live before it is changed: of one only the metadata is known, of another the manager
    that changes it is to be named."""

    def __init__(self, read: Read) -> None:
        super().__init__(f"{read.key} to be read", why="object")
        self.read = read


class ChildFails(RuleopError):  # noqa: N818 - the pair reads as what becomes of the child
    """The child cannot be rendered, or must not be written as it was rendered."""

    def __init__(
        self, message: str, site: Site | None = None, *, reason: str = "RenderFailed", limit: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.site = site
        self.reason = reason
        self.limit = limit  # a limit of the pass was exceeded: no other item of the child is tried


class Unlisted(RuleopError):  # noqa: N818 - like the others
    """The objects of the kind may not be read, so nothing can be said of this one."""


def child_error(error: RenderError) -> ChildWaits | ChildFails:
    """What an expression or template without a value means for its child."""
    if isinstance(error, Waiting):
        if error.forbidden:
            return ChildFails(error.path, error.site, reason="Forbidden")
        return ChildWaits(error.path, error.site, why=error.why)
    return ChildFails(error.message, error.site, limit=isinstance(error, LimitExceeded))
