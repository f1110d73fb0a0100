"""Deployments, ReplicaSets, DaemonSets, StatefulSets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.builtin.immutable_fields import STATEFUL_MUTABLE
from ruleop.kubernetes.validation.field_errors import FieldError, forbidden_value, invalid_value, required, unsupported
from ruleop.kubernetes.validation.rows import Rows, is_changed, is_new, sub_table
from ruleop.kubernetes.validation.rules import FieldRule, frozen, missing, number_of, selector_errors
from ruleop.kubernetes.validation.tables.pods import TEMPLATE, selected
from ruleop.kubernetes.validation.tables.storage import CLAIM_SPEC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.rules import At, Errors


def _selector(kind: str) -> FieldRule:
    def check(selector: Any, at: At) -> Iterator[FieldError]:
        if selector is None:
            if kind != "daemonset":
                yield required(at.field)
        elif errors := list(selector_errors(selector, at)):
            yield from errors
            if kind != "daemonset":
                yield invalid_value(at.field, selector, "invalid label selector")
        elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid_value(at.field, selector, f"empty selector is invalid for {kind}")

    return missing(check)


def _lasting(kind: str) -> FieldRule:
    """A template of pods that run until they are deleted."""

    def check(spec: Any, at: At) -> Errors:
        words = f"activeDeadlineSeconds in {kind} is not Supported"
        has_deadline = (spec or {}).get("activeDeadlineSeconds") is not None
        return (forbidden_value(at.child("activeDeadlineSeconds"), words),) if has_deadline else ()

    return FieldRule(check)


def _workload(name: str, kind: str, numbers: str, *, prepare: Any = None) -> Rows:
    return (
        {
            "selector": _selector(name),
            "template!": sub_table(TEMPLATE, when=is_changed, prepare=prepare),
            "template!.spec": ({"restartPolicy": "Always"}, _lasting(kind)),
            numbers: "0..",
        },
        selected,
    )


def _type(*allowed: str) -> FieldRule:
    """The type of a strategy: the server names the strategy itself."""
    return FieldRule(
        lambda strategy, at: (
            ()
            if (type_ := strategy.get("type", "RollingUpdate")) in allowed
            else (unsupported(at.field, type_, allowed),)
        )
    )


def _deployment(strategy: Any, at: At) -> Iterator[FieldError]:
    """Some pods may be missing, or more than the replicas exist, while a Deployment is updated."""
    rolling, type_ = strategy.get("rollingUpdate"), strategy.get("type", "RollingUpdate")
    if rolling is not None and type_ == "Recreate":
        yield forbidden_value(at.child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")
    elif (
        rolling is not None and not number_of(rolling.get("maxUnavailable")) and not number_of(rolling.get("maxSurge"))
    ):
        words, unavailable = "may not be 0 when `maxSurge` is 0", rolling.get("maxUnavailable", 0)
        yield invalid_value(at.child("rollingUpdate.maxUnavailable"), unavailable, words)


def _daemon_set(strategy: Any, at: At) -> Iterator[FieldError]:
    """Either the old pod of a node goes first, or the new one comes first."""
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    unavailable, surge = (number_of((rolling or {}).get(each)) for each in ("maxUnavailable", "maxSurge"))
    if rolling is None:
        yield required(at.child("rollingUpdate"))
    elif unavailable and surge:
        words = "may not be set when maxUnavailable is non-zero"
        yield invalid_value(at.child("rollingUpdate.maxSurge"), rolling["maxSurge"], words)
    elif not unavailable and not surge:
        yield required(at.child("rollingUpdate.maxUnavailable"), "cannot be 0 when maxSurge is 0")


def _stateful_set(strategy: Any, at: At) -> Errors:
    if strategy.get("type", "RollingUpdate") != "OnDelete" or (rolling := strategy.get("rollingUpdate")) is None:
        return ()
    return (invalid_value(at.child("rollingUpdate"), rolling, "only allowed for updateStrategy 'RollingUpdate'"),)


def _deadline(spec: Any, at: At) -> Errors:
    deadline, words = spec.get("progressDeadlineSeconds"), "must be greater than minReadySeconds"
    is_valid = deadline is None or deadline > spec.get("minReadySeconds", 0)
    return () if is_valid else (invalid_value(at.child("progressDeadlineSeconds"), deadline, words),)


def _with_claims(template: Any, at: At) -> Object:
    """The template with its claims as volumes, and without the names that the controller gives to its pods."""
    spec = {name: each for name, each in (template.get("spec") or {}).items() if name not in ("hostname", "subdomain")}
    claims = [(each.get("metadata") or {}).get("name") for each in at.root["spec"].get("volumeClaimTemplates") or ()]
    own = [each for each in spec.get("volumes") or () if each.get("name") not in claims]
    return {**template, "spec": {**spec, "volumes": [*own, *({"name": each, "emptyDir": {}} for each in claims)]}}


_COUNTS, _HISTORY = "replicas minReadySeconds", "revisionHistoryLimit"
_MUTABLE: Final = "', '".join(STATEFUL_MUTABLE[:-1]) + f"' and '{STATEFUL_MUTABLE[-1]}'"
DEPLOYMENT: Final[Rows] = {
    "spec": (
        _workload("deployment", "ReplicaSet", f"{_COUNTS} {_HISTORY} progressDeadlineSeconds"),
        _deadline,
        frozen(),
    ),
    "spec.strategy": (_type("Recreate", "RollingUpdate"), _deployment),
    "spec.strategy.rollingUpdate": {"maxUnavailable": "part", "maxSurge": "amount"},
}
REPLICA_SET: Final[Rows] = {"spec": (_workload("deployment", "ReplicaSet", _COUNTS), frozen())}
DAEMON_SET: Final[Rows] = (
    frozen(),
    {
        "spec": _workload("daemonset", "DaemonSet", f"minReadySeconds {_HISTORY}"),
        "spec.updateStrategy": (_type("RollingUpdate", "OnDelete"), _daemon_set),
        "spec.updateStrategy.rollingUpdate": {"maxUnavailable maxSurge": "part"},
    },
)
STATEFUL_SET: Final[Rows] = (
    frozen(f"updates to statefulset spec for fields other than '{_MUTABLE} are forbidden", at="spec", forbidden=True),
    {
        "spec": (
            _workload("statefulset", "StatefulSet", _COUNTS, prepare=_with_claims),
            {
                "ordinals.start updateStrategy.rollingUpdate.partition": "0..",
                "updateStrategy": (_type("RollingUpdate", "OnDelete"), _stateful_set),
                "podManagementPolicy": "OrderedReady|Parallel",
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted whenScaled": "Retain|Delete"},
                "serviceName": sub_table("label", when=is_new),
                "volumeClaimTemplates": sub_table({"[].spec!": CLAIM_SPEC}, when=is_new),
            },
        )
    },
)
