"""Jobs: their defaults, their selector, and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.core.schema.builtin.immutable_fields import immutable_changes, value_at
from ruleop.core.validation.core.pod_spec import validate_template, validate_template_labels
from ruleop.core.validation.field_errors import immutable_value, invalid_value, required, unsupported, validate_one_of
from ruleop.core.validation.fields.label_selectors import validate_label_selector
from ruleop.core.validation.fields.numbers import validate_nonnegative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.core.validation.field_errors import FieldError

_JOB_NAME, _JOB_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"

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


def validate_job(new: Object, old: Object | None) -> Iterator[FieldError]:
    errors = list(_validate_job(new["spec"], None if old is None else old["spec"]))
    yield from errors
    if old is not None:
        yield from errors  # the server looks for them twice
        yield from (immutable_value(path, value_at(new, path)) for path in immutable_changes(new, old))


def _validate_job(spec: Object, before: Object | None) -> Iterator[FieldError]:
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from validate_job_spec(spec, "spec", before)
    if selector is None:
        yield required("spec.selector")
    else:
        yield from validate_label_selector(selector, "spec.selector")
    yield from validate_template_labels(selector, template, "spec.template")


def validate_job_spec(spec: Object, field: str, before: Object | None) -> Iterator[FieldError]:
    yield from validate_nonnegative(spec, *_NUMBERS, field=field)
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
    replacement = spec.get("podReplacementPolicy", "Failed")
    yield from validate_one_of(f"{field}.podReplacementPolicy", replacement, _REPLACEMENTS)
    template = spec.get("template") or {}
    if before is None or template != before.get("template"):
        yield from validate_template(template, f"{field}.template")
    policy, at = (template.get("spec") or {}).get("restartPolicy", "Always"), f"{field}.template.spec.restartPolicy"
    if policy in ("Always", ""):
        yield required(at, 'valid values: "OnFailure", "Never"')
    else:
        yield from validate_one_of(at, policy, ("OnFailure", "Never"))


def with_job_defaults(job: dict[str, Any]) -> dict[str, Any]:
    """A Job has defaults that the template in a CronJob does not have. Without labels it gets those of its pods."""
    spec, metadata = dict(job.get("spec") or {}), job["metadata"]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not metadata.get("labels"):
        job = {**job, "metadata": {**metadata, "labels": labels}}
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    limit = 2**31 - 1 if "backoffLimitPerIndex" in spec else 6
    spec = {
        "parallelism": 1,
        "backoffLimit": limit,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": policy,
        "manualSelector": False,
        **spec,
    }
    return {**job, "spec": spec}


def with_selector(job: dict[str, Any]) -> dict[str, Any]:
    """The labels and the selector by which a Job finds its pods. A Job that has the labels of its pods by default has
    these as well, as it shares them with its template; one whose name is generated has not."""
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return job
    uid, name = metadata["uid"], metadata["name"]
    labels = {_JOB_UID: uid, _JOB_NAME: name, "controller-uid": uid, "job-name": name}
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    given, own = inner.get("labels"), metadata.get("labels")
    labels = {**(given or {}), **labels}
    template = {**template, "metadata": {**inner, "labels": labels}}
    return {
        **job,
        "metadata": metadata if own and own is not given else {**metadata, "labels": labels},
        "spec": {**spec, "template": template, "selector": {"matchLabels": {_JOB_UID: uid}}},
    }
