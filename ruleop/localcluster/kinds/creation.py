"""Why the API server refuses a new object of a built-in kind, beyond what its schema says. It is the code of
the server in memory, without the server: checks of rules use it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kinds import Kind
from ruleop.localcluster.errors import Rejected
from ruleop.localcluster.kinds.builtin import STRATEGIES
from ruleop.localcluster.kinds.completion import as_stored, complete
from ruleop.localcluster.kinds.service_allocation import allocate
from ruleop.localcluster.store.store import Store
from ruleop.schema.builtin_types import typed_shape

if TYPE_CHECKING:
    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause


_UID: Final = "00000000-0000-0000-0000-000000000000"  # a Job's labels have its uid
_SERVICE: Final = ("", "Service")


def creation_errors(obj: Object) -> list[Cause]:
    """The errors of an object whose fields have the right types; none of a kind that is not known."""
    kind = Kind.of(obj)
    strategy, shape = STRATEGIES.get((kind.group, kind.kind)), typed_shape(kind)
    if strategy is None or shape is None or kind.kind == "Event":  # an Event has the namespace of another object
        return []
    metadata = {"namespace": "default", "uid": _UID, **obj["metadata"]}
    new = strategy.create(as_stored(strategy.default(complete({**obj, "metadata": metadata}, shape)), shape))
    if (kind.group, kind.kind) == _SERVICE:
        try:
            new = allocate(new, Store())
        except Rejected:
            return []  # its addresses and ports depend on the ranges of the cluster
    return list(strategy.validate(new, None))
