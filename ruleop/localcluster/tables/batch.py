"""Rows of Jobs and CronJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.localcluster.tables.cell_text import (
    NONE,
    age,
    boolean,
    containers,
    human_duration,
    is_being_deleted,
    is_true,
    label_selector,
    name,
    since,
    spec,
    status,
)
from ruleop.localcluster.tables.printer import OF_TEMPLATE, printer
from ruleop.localcluster.timestamps import seconds_of

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON, Object


def _job(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    succeeded, parallelism = of.get("succeeded", 0), desired.get("parallelism") or 0
    if desired.get("completions") is not None:
        completions = f"{succeeded}/{desired['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration = ""
    if of.get("startTime"):
        end = seconds_of(of["completionTime"]) if of.get("completionTime") else now
        duration = human_duration(end - seconds_of(of["startTime"]))
    return [
        name(obj),
        _job_status(obj),
        completions,
        duration,
        age(obj, now),
        *containers(desired.get("template")),
        label_selector(desired.get("selector")) or NONE,
    ]


def _job_status(obj: Object) -> str:
    for of_type in ("Complete", "Failed"):
        if is_true(obj, of_type):
            return of_type
    if is_being_deleted(obj):
        return "Terminating"
    kept = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((of_type for of_type in kept if is_true(obj, of_type)), "Running")


def _cron_job(obj: Object, now: float) -> list[JSON]:
    of, desired = status(obj), spec(obj)
    job = spec(desired.get("jobTemplate") or {})
    return [
        name(obj),
        desired.get("schedule", ""),
        desired.get("timeZone", NONE),
        boolean(desired.get("suspend")),
        len(of.get("active") or ()),
        since(of["lastScheduleTime"], now) if of.get("lastScheduleTime") else NONE,
        age(obj, now),
        *containers(job.get("template")),
        label_selector(job.get("selector")) or NONE,
    ]


BATCH: Final = {
    ("batch", "Job"): printer(f"Name|Status|Completions|Duration|Age|{OF_TEMPLATE}", _job),
    ("batch", "CronJob"): printer(
        f"Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|{OF_TEMPLATE}", _cron_job
    ),
}
