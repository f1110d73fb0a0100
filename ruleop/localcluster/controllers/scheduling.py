"""The reasons that the scheduler finds no node for a pod, in its words; and the taints of a node that is not ready, or
cordoned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.labels import Requirement, meets
from ruleop.localcluster.controllers.machinery import Controller, is_being_deleted
from ruleop.localcluster.kinds.resources import CLAIMS, NODES
from ruleop.localcluster.object_store import Name
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.object_store import Stored

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


class Nodes(Controller):
    resource = NODES

    def reconcile(self, found: Stored) -> None:
        spec = found.obj["spec"]
        given = spec.get("taints") or []
        needed = {NOT_READY: not _is_ready(found.obj), UNSCHEDULABLE: bool(spec.get("unschedulable"))}
        taints = [each for each in given if needed.get(each["key"], True)]
        missing = [key for key, is_needed in needed.items() if is_needed and key not in {each["key"] for each in given}]
        taints += [{"key": key, "effect": "NoSchedule", "timeAdded": now()} for key in missing]
        if taints != given:
            rest = {name: each for name, each in spec.items() if name != "taints"}
            new = {**found.obj, "spec": {**rest, "taints": taints} if taints else rest}
            self.machinery.update(NODES, found, new)


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


NODE: Final = "local-node"
_REPELLING: Final = ("NoSchedule", "NoExecute")
NO_NODE: Final = "0/1 nodes are available"
_PREEMPTION: Final = f"no new claims to deallocate, preemption: {NO_NODE}: 1 Preemption is not helpful for scheduling."


def unschedulable(machinery: Machinery, pod: Object) -> str:
    """The message of the pod's condition; empty if it can run. The pod is reconciled again when that may change."""
    namespace = pod["metadata"]["namespace"]
    for claim in claim_names(pod):
        if problem := _claim_problem(machinery, Name(namespace, claim)):
            machinery.wait_for(CLAIMS, Name(namespace, claim))
            return f"{NO_NODE}: {problem}. not found"  # this is how the real one ends
    problem = _taint_problem(machinery, pod["spec"])
    if not problem and not matches_node(machinery, pod["spec"]):
        problem = "didn't match Pod's node affinity/selector"
    return f"{NO_NODE}: 1 node(s) {problem}. {_PREEMPTION}" if problem else ""


def claim_names(pod: Object) -> list[str]:
    volumes = pod["spec"].get("volumes") or []
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]


def _claim_problem(machinery: Machinery, claim: Name) -> str:
    found = machinery.store.get(CLAIMS, claim)
    if found is None:
        return f'persistentvolumeclaim "{claim.name}" not found'
    if is_being_deleted(found.obj):
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    is_bound = (found.obj.get("status") or {}).get("phase") == "Bound"
    return "" if is_bound else "pod has unbound immediate PersistentVolumeClaims"


def _taint_problem(machinery: Machinery, spec: Object) -> str:
    node = machinery.get(NODES, "", NODE)
    given = {} if node is None else node.obj["spec"]
    tolerations = spec.get("tolerations") or []
    cordon = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
    problem = ""
    if given.get("unschedulable") and not _tolerated(cordon, tolerations):
        problem = "were unschedulable"
    elif any(each["effect"] in _REPELLING and not _tolerated(each, tolerations) for each in given.get("taints") or ()):
        problem = "had untolerated taint(s)"
    if problem:
        machinery.wait_for(NODES, Name("", NODE))
    return problem


def _tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    return any(
        each.get("effect") in (None, "", taint["effect"])
        and (each.get("key") or taint["key"]) == taint["key"]
        and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or ""))
        for each in tolerations
    )


def matches_node(machinery: Machinery, spec: Object) -> bool:
    """Whether a pod selects the node. If not, the current object is reconciled again when the node changes."""
    selector = spec.get("nodeSelector") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not selector and required is None:
        return True
    node = machinery.get(NODES, "", NODE)
    labels = {} if node is None else node.obj["metadata"].get("labels") or {}
    terms = [{}] if required is None else required.get("nodeSelectorTerms") or []
    found = selector.items() <= labels.items() and any(
        meets(labels, _requirements(each.get("matchExpressions")))
        and meets({"metadata.name": NODE}, _requirements(each.get("matchFields")))
        for each in terms
        if each or required is None
    )
    if not found:
        machinery.wait_for(NODES, Name("", NODE))
    return found


def _requirements(expressions: Iterable[Object] | None) -> list[Requirement]:
    return [(each["key"], each["operator"], frozenset(each.get("values") or ())) for each in expressions or ()]
