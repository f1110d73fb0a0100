"""Validation of CronJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.core.names import LONGEST_CRON_JOB
from ruleop.core.schema.cron import is_zone, schedule_problem
from ruleop.core.validation.batch.job import validate_job_spec
from ruleop.core.validation.field_errors import invalid_value, required, unsupported, validate_one_of
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")


def validate_cron_job(new: Object, old: Object | None) -> Iterator[FieldError]:
    spec = new.get("spec") or {}
    if not (schedule := spec.get("schedule")):
        yield required("spec.schedule")
    elif problem := schedule_problem(schedule):
        yield invalid_value("spec.schedule", schedule, problem)
    yield from validate_nonnegative(spec, "startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (old is None or zone != old["spec"].get("timeZone")):
        yield from _validate_zone(zone)
    yield from validate_one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy", "Allow"), _CONCURRENCY)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    before = ((old["spec"].get("jobTemplate") or {}).get("spec") or {}) if old is not None else None
    yield from validate_job_spec(job, "spec.jobTemplate.spec", before)
    if (selector := job.get("selector")) is not None:
        yield invalid_value("spec.jobTemplate.spec.selector", selector, "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield unsupported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    yield from validate_nonnegative(spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if old is None and len(name := new["metadata"].get("name", "")) > LONGEST_CRON_JOB:
        yield invalid_value("metadata.name", name, f"must be no more than {LONGEST_CRON_JOB} characters")


def _validate_zone(zone: str) -> Iterator[FieldError]:
    if not zone:
        yield invalid_value("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif not is_zone(zone):
        yield invalid_value("spec.timeZone", zone, f"unknown time zone {zone}")
