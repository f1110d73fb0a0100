"""An API server in memory, over real HTTP, with the controllers that an operator's author needs to see work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleop.localcluster.api.faulty import Effect, Fault, Faults
    from ruleop.localcluster.local_cluster import LocalCluster

__all__ = ["Effect", "Fault", "Faults", "LocalCluster"]


def __getattr__(name: str) -> Any:
    """Imports what is asked for: tests of rules need the objects and the controllers, but no server."""
    if name not in __all__:
        raise AttributeError(name)
    from ruleop.localcluster import local_cluster  # noqa: PLC0415 - see above
    from ruleop.localcluster.api import faulty  # noqa: PLC0415

    return getattr(local_cluster if name == "LocalCluster" else faulty, name)
