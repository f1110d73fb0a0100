"""Where the kinds of Kubernetes have the spec of a Pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.templating.bodies.body import Body, Field, FieldPath

_POD_SPECS: Final[dict[tuple[str, str], FieldPath]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("apps", "Deployment"): ("spec", "template", "spec"),
    ("apps", "StatefulSet"): ("spec", "template", "spec"),
    ("apps", "DaemonSet"): ("spec", "template", "spec"),
    ("apps", "ReplicaSet"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


def fields_of_pod(body: Body) -> Iterator[tuple[Field, FieldPath]]:
    """The fields of a body that belong to the spec of a Pod, with their paths in it."""
    kind = body.kind
    prefix = _POD_SPECS.get((kind.group, kind.kind))
    if prefix is not None:
        for field in body.fields:
            if field.path[: len(prefix)] == prefix:
                yield field, field.path[len(prefix) :]
