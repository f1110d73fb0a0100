"""The reasons that a child of a custom resource is not ready, as its pods, their claims and its other objects report
them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.report.object_problems import object_problems
from ruleop.core.planning.child.readiness import readiness
from ruleop.localcluster.controllers.core.scheduling import claim_names
from ruleop.localcluster.kinds.resources import CLAIMS, EVENTS
from ruleop.localcluster.store.object_store import Name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.localcluster import LocalCluster


_VAGUE: Final = "ContainersNotReady"  # a reason that names no cause: an Event does


def problems(cluster: LocalCluster, obj: Object) -> dict[str, str]:
    """The problems, each message once, with the first object that has it. An owned object tells more than its owner:
    the claim of a pod more than the pod, and the pod more than its Deployment."""
    if readiness(obj).ready:
        return {}
    found: dict[str, str] = {}
    owned = list(cluster.machinery.owners.of(obj["metadata"]["uid"]))
    if obj["kind"] == "Pod":
        owned += [(CLAIMS, Name(obj["metadata"]["namespace"], name)) for name in claim_names(obj)]
    for resource, name in owned:
        if (dependent := cluster.store.get(resource, name)) is not None:
            for message, title in problems(cluster, dependent.obj).items():
                found.setdefault(message, title)
    if found:
        return found
    own = [each for each in object_problems(obj) if _VAGUE not in each] or _warnings(cluster, obj)
    return dict.fromkeys(own, f"{obj['kind']}/{obj['metadata']['name']}")


def _warnings(cluster: LocalCluster, obj: Object) -> Iterator[str]:
    """The messages of the Events that warn of an object."""
    metadata = obj["metadata"]
    for each in cluster.store.all(EVENTS, metadata.get("namespace") or "default"):
        event = each.obj
        if event.get("type") == "Warning" and (event.get("involvedObject") or {}).get("uid") == metadata["uid"]:
            yield f"{event['reason']}: {event['message']}"
