"""The pods of workloads that are not ready: their containers report what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.live.field_managers import last_change
from ruleop.authoring.report.explanation import ExplainedObject
from ruleop.authoring.report.object_problems import object_problems, pod_reason
from ruleop.core.kinds import Kind, Object, ObjectKey
from ruleop.core.planning.child.readiness import readiness

if TYPE_CHECKING:
    from ruleop.authoring.live.reading.reader import Reader

POD: Final = Kind("", "v1", "Pod")
MAX_PODS: Final = 5


async def unready_pods(reader: Reader, workload: Object) -> list[ExplainedObject]:
    """The pods of a workload that are not ready, at most `MAX_PODS`; none for other objects. Raises ApiError."""
    labels = _match_labels(workload)
    if not labels:
        return []
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    found: list[ExplainedObject] = []
    async for page in reader.pages(POD, workload["metadata"].get("namespace", ""), labels=selector):
        for pod in page:
            state = readiness(pod)
            if not state.ready and len(found) < MAX_PODS:
                word = "failed" if state.failed else "not ready"
                found.append(
                    ExplainedObject(
                        ObjectKey.of(pod),
                        word,
                        pod_reason(pod),
                        problems=object_problems(pod),
                        last_change=last_change(pod),
                    )
                )
    return found


def _match_labels(workload: Object) -> Mapping[str, Any]:
    spec = workload.get("spec")
    selector = spec.get("selector") if isinstance(spec, Mapping) and "template" in spec else None
    labels = selector.get("matchLabels") if isinstance(selector, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}
