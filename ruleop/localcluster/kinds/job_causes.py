"""Why a Job or a CronJob is invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zoneinfo import available_timezones

from ruleop.localcluster.errors import immutable_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.cron import schedule_problem
from ruleop.localcluster.kinds.label_selectors import label_selector_causes
from ruleop.localcluster.kinds.numbers import below_zero
from ruleop.localcluster.kinds.pod_templates import match_causes, template_causes
from ruleop.names import LONGEST_CRON_JOB
from ruleop.schema.immutable_fields import immutable_changes, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.localcluster.errors import Cause

_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_COMPLETION_MODES: Final = ("NonIndexed", "Indexed")
_NUMBERS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_INDEXED_ONLY: Final = ("backoffLimitPerIndex", "maxFailedIndexes")


def job_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    causes = list(_job_causes(new["spec"], None if old is None else old["spec"]))
    yield from causes
    if old is not None:
        yield from causes  # the server looks for them twice
        yield from (immutable_value(path, value_at(new, path)) for path in immutable_changes(new, old))


def _job_causes(spec: Object, before: Object | None) -> Iterator[Cause]:
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from _spec_causes(spec, "spec", before)
    if selector is None:
        yield required("spec.selector")
    else:
        yield from label_selector_causes(selector, "spec.selector")
    yield from match_causes(selector, template, "spec.template")


def cron_job_causes(new: Object, old: Object | None) -> Iterator[Cause]:
    spec = new.get("spec") or {}
    if not (schedule := spec.get("schedule")):
        yield required("spec.schedule")
    elif problem := schedule_problem(schedule):
        yield invalid_value("spec.schedule", schedule, problem)
    yield from below_zero(spec, "startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (old is None or zone != old["spec"].get("timeZone")):
        yield from _zone_causes(zone)
    policy = spec.get("concurrencyPolicy", "Allow")
    if policy not in _CONCURRENCY:
        yield unsupported("spec.concurrencyPolicy", policy, _CONCURRENCY)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    before = ((old["spec"].get("jobTemplate") or {}).get("spec") or {}) if old is not None else None
    yield from _spec_causes(job, "spec.jobTemplate.spec", before)
    if (selector := job.get("selector")) is not None:
        yield invalid_value("spec.jobTemplate.spec.selector", selector, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from below_zero(spec, name)
    if old is None and len(name := new["metadata"].get("name", "")) > LONGEST_CRON_JOB:
        yield invalid_value("metadata.name", name, f"must be no more than {LONGEST_CRON_JOB} characters")


def _zone_causes(zone: str) -> Iterator[Cause]:
    if not zone:
        yield invalid_value("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone not in available_timezones():
        yield invalid_value("spec.timeZone", zone, f"unknown time zone {zone}")


def _spec_causes(spec: Object, field: str, before: Object | None) -> Iterator[Cause]:
    for name in _NUMBERS:
        yield from below_zero(spec, name, field=field)
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in _COMPLETION_MODES:
        yield unsupported(f"{field}.completionMode", mode, _COMPLETION_MODES)
    elif mode == "Indexed":
        if spec.get("completions") is None:
            yield required(f"{field}.completions", "when completion mode is Indexed")
    else:
        for name in _INDEXED_ONLY:
            if spec.get(name) is not None:
                yield invalid_value(f"{field}.{name}", spec[name], "requires indexed completion mode")
    policy = spec.get("podReplacementPolicy", "Failed")
    if policy not in _REPLACEMENTS:
        yield unsupported(f"{field}.podReplacementPolicy", policy, _REPLACEMENTS)
    template = spec.get("template") or {}
    if before is None or template != before.get("template"):
        yield from template_causes(template, f"{field}.template")
    policy, at = (template.get("spec") or {}).get("restartPolicy", "Always"), f"{field}.template.spec.restartPolicy"
    if policy in ("Always", ""):
        yield required(at, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(at, policy, ("OnFailure", "Never"))
