"""Reasons that a child cannot be planned: it waits, or it fails. Both end the planning of that child only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.errors import RenderError, RuleopError, Site
from ruleop.language.templates import LimitExceeded, Waiting

if TYPE_CHECKING:
    from ruleop.planning.model.actions import Read


class ChildWaits(RuleopError):  # noqa: N818 - a wait, not an error
    """Something that the child needs is missing. Its existing objects stay as they are."""

    def __init__(self, for_what: str, site: Site | None = None, *, why: str) -> None:
        super().__init__(for_what)
        self.for_what = for_what
        self.site = site
        self.why = why


class Unread(ChildWaits):
    """An object has to be read from the API server first: because only its metadata is known, or to name the field
    managers in a conflict."""

    def __init__(self, read: Read) -> None:
        super().__init__(f"{read.key} to be read", why="object")
        self.read = read


class ChildFails(RuleopError):  # noqa: N818 - named like ChildWaits
    """The child cannot be rendered, or the rendered object is not allowed."""

    def __init__(
        self,
        message: str,
        site: Site | None = None,
        *,
        reason: str = "RenderFailed",
        limit: bool = False,
        redacted: str = "",
        fields: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.redacted = redacted or message  # the message without values that the child rendered
        self.site = site
        self.reason = reason
        self.fields = fields  # of the rendered object, for a more exact site
        self.limit = limit  # a limit of the pass was exceeded: other items of the child are not rendered


class Unlisted(RuleopError):  # noqa: N818 - named like the others
    """The permission to list the kind is missing, so the object's state is unknown."""


def child_error(error: RenderError) -> ChildWaits | ChildFails:
    """The ChildWaits or ChildFails for an expression or template that could not be evaluated."""
    if isinstance(error, Waiting):
        if error.forbidden:
            return ChildFails(error.path, error.site, reason="Forbidden")
        return ChildWaits(error.path, error.site, why=error.why)
    return ChildFails(error.message, error.site, limit=isinstance(error, LimitExceeded), redacted=error.redacted)
