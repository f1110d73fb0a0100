"""Jobs and CronJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.cron import is_zone, schedule_problem
from ruleop.kubernetes.names import LONGEST_CRON_JOB
from ruleop.kubernetes.validation.field_errors import invalid_value, required, unsupported
from ruleop.kubernetes.validation.rows import Rows, is_changed, is_new, sub_table
from ruleop.kubernetes.validation.rules import frozen, holds, invalid, missing, needed
from ruleop.kubernetes.validation.tables.pods import TEMPLATE, selected

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.validation.rules import At, Errors


def _ending(policy: Any, at: At) -> Errors:
    """Pods of a Job end."""
    if policy in ("OnFailure", "Never"):
        return ()
    if policy in (None, "", "Always"):
        return (required(at.field, 'valid values: "OnFailure", "Never"'),)
    return (unsupported(at.field, policy, ("OnFailure", "Never")),)


def _mode(mode: str) -> Callable[[Any, At], bool]:
    return lambda spec, _: spec.get("completionMode", "NonIndexed") == mode


_ONLY_INDEXED: Final = holds(lambda _: False, "requires indexed completion mode")
_JOB_SPEC: Final[Rows] = (
    {
        "parallelism completions activeDeadlineSeconds backoffLimit ttlSecondsAfterFinished": "0..",
        "backoffLimitPerIndex maxFailedIndexes": "0..",
        "completionMode": "NonIndexed|Indexed",
        "podReplacementPolicy": "Failed|TerminatingOrFailed",
        "template!": sub_table(TEMPLATE, when=is_changed),
        "template!.spec!.restartPolicy": missing(_ending),
    },
    sub_table({"completions": needed("when completion mode is Indexed")}, when=_mode("Indexed")),
    sub_table({"backoffLimitPerIndex maxFailedIndexes": _ONLY_INDEXED}, when=_mode("NonIndexed")),
)
JOB: Final[Rows] = (frozen(), {"spec": (_JOB_SPEC, selected, {"selector": "given selector"})})


def _schedule(schedule: Any, at: At) -> Errors:
    words = schedule_problem(schedule) if schedule else None
    return (invalid_value(at.field, schedule, words),) if words else ()


def _zone(zone: Any, at: At) -> Errors:
    if is_zone(zone):
        return ()
    words = f"unknown time zone {zone}" if zone else "timeZone must be nil or non-empty string"
    return (invalid_value(at.field, zone, words),)


def _automatic(value: Any, at: At) -> Errors:
    return (unsupported(at.field, True, ("nil", "false")),) if value else ()


_SHORT: Final = holds(lambda name: len(name) <= LONGEST_CRON_JOB, f"must be no more than {LONGEST_CRON_JOB} characters")
CRON_JOB: Final[Rows] = {
    "metadata.name": sub_table(_SHORT, when=is_new),
    "spec!": {
        "schedule": ("needed", _schedule),
        "startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit": "0..",
        "timeZone": sub_table(_zone, when=is_changed),
        "concurrencyPolicy": "Allow|Forbid|Replace",
        "jobTemplate!.spec!": (
            _JOB_SPEC,
            invalid("selector", lambda _: False, "`selector` will be auto-generated"),
            {"manualSelector": _automatic},
        ),
    },
}
