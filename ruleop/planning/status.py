"""The status of a CR: the fields that the rule sets, and the conditions.

Messages contain no times, counters or versions: a status that changes in every pass would be written forever and notify
every watcher. There are two exceptions: the deadline of delayed deletions, which is fixed, and the details of objects
that are not ready, such as the number of their pods. A status that differs in these alone is written rarely.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.crd import default, drop_unknown, is_kept, schema_at
from ruleop.kubernetes.merge import (
    UnwritableError,
    as_json,
    fingerprint,
    merge_patch,
    same,
    with_integers,
    without_nulls,
)
from ruleop.language.status_limits import CONDITIONS, allows_all, refusal, refused_field
from ruleop.language.templates import Omit, TextTemplate, Waiting
from ruleop.language.templates.values.cost import METER, Exhausted, bytes_of
from ruleop.planning.child.pruning import held_in_words
from ruleop.planning.model.actions import Problem, State, StatusWrite, distinct
from ruleop.planning.model.conditions import PAUSE, Condition, Conditions, named_revision, type_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules import Condition as RuleCondition
    from ruleop.language.rules import Rule
    from ruleop.planning.child.child_plan import ObjectPlan
    from ruleop.planning.child.children import Children
    from ruleop.planning.history import RefusedStatus
    from ruleop.planning.model.observed import KindInfo, Observed
    from ruleop.planning.rendering.scope import ResourceScope

MAX_REASON = 1024
MAX_CAUSES: Final = 4  # objects that are not ready, before the waits for them
# These conditions keep their values in a pause: to pause a healthy CR must raise no alert.
_KEPT_DURING_PAUSE = frozenset({"Ready", "Stalled"})
READY: Final = Conditions.of("Ready", ready=True)
_DETAILS = re.compile(r"(?:(?<=; )|\A)([A-Z]\w*/[^\s:;]+)(?:: [^;]*| is not ready)")


def projected_fields(
    rule: Rule, scope: ResourceScope, problems: list[Problem]
) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields to write, and the names of all fields that the rule may set: those without a value are removed."""
    if (body := rule.status.body) is None:
        return {}, frozenset()
    names, site = {**scope.names}, body.site
    names.pop("status", None)
    fields: dict[str, Any] = {}
    if isinstance(body, TextTemplate):
        fields, own_fields = _from_template(rule, body, names, problems)
    else:
        own_fields = frozenset(body.fields)
        for key in body.fields:
            try:
                value = body.member(key, names)
            except RenderError as error:
                _add_problem(rule, problems, error)
                continue
            if not isinstance(value, Omit) and value is not None:
                fields[key] = value
    written = {}
    for name, value in fields.items():
        try:
            METER.enter(2 * bytes_of(value))  # with a copy, in which each value is checked
            as_json(value)
        except Exhausted as limit:
            problems.append(Problem("status", "RenderFailed", limit.reason, site))
        except UnwritableError as error:
            problems.append(Problem("status", "RenderFailed", f"{name} {error}", site))
        else:
            written[name] = with_integers(value)
    return written, own_fields


def without_rejected(
    rule: Rule,
    refused: RefusedStatus,
    fields: dict[str, Any],
    own_fields: frozenset[str],
    problems: list[Problem],
) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields to write, or none if the server has just rejected the same fields. Then that is reported, and only
    the conditions are written."""
    if not fields or fingerprint(fields) != refused.projected:
        return fields, own_fields
    site = rule.status.body.site if rule.status.body is not None else None
    problems.append(Problem("status", "StatusRefused", refused.message, site))
    return {}, frozenset()


def _from_template(
    rule: Rule, template: TextTemplate, names: Mapping[str, Any], problems: list[Problem]
) -> tuple[dict[str, Any], frozenset[str]]:
    own_fields = template.fields
    try:
        documents = template.render(names, lenient=True)
    except Waiting:
        return {}, own_fields
    except RenderError as error:
        _add_problem(rule, problems, error)
        return {}, own_fields
    if not documents:
        return {}, own_fields
    if len(documents) > 1 or not isinstance(documents[0], dict):
        problems.append(
            Problem("status", "RenderFailed", "the template of a status must render one mapping", template.site)
        )
        return {}, own_fields
    return documents[0], own_fields | frozenset(documents[0])


def _add_problem(rule: Rule, problems: list[Problem], error: RenderError) -> None:
    problem = Problem("status", "RenderFailed", rule.secrecy.error(error), error.site)
    if problem not in problems:
        problems.append(problem)


# -- conditions --------------------------------------------------------------------------------------------------------


def overall_conditions(children: Children, problems: list[Problem]) -> Conditions:
    """Ready, Reconciling and Stalled, by the children's states."""
    held = [held_in_words(children.report.held)] if children.report.held else []
    if problems:
        message = _sentence(map(_described, distinct(problems)))
        return Conditions.of(problems[0].reason, "; ".join([message, *held]), stalled=True)
    if children.report.waits:
        waits = [f"{wait.child} waits for {wait.for_what}" for wait in children.report.waits]
        return Conditions.of("Waiting", _sentence([*held, *_causes_of_waits(children), *waits]), reconciling=True)
    unready = [
        _unready(object_plan, children)
        for child_plan in children.plans.values()
        for object_plan in child_plan.objects
        if object_plan.state is not State.READY
    ]
    if unready or held:
        return Conditions.of("Progressing", _sentence([*held, *unready]), reconciling=True)
    return READY


def _unready(object_plan: ObjectPlan, children: Children) -> str:
    title = object_plan.desired.key.title(children.owner.namespace)
    known = object_plan.action is None and object_plan.state is State.PROGRESSING and object_plan.message
    return f"{title}: {object_plan.message}" if known else f"{title} is not ready"


def _causes_of_waits(children: Children) -> list[str]:
    """The written objects that are not ready: first those of children that others wait for. Both are in dependency
    order, so that a chain of waits begins with its cause."""
    awaited = {wait.for_what.partition(" ")[0].partition(".")[0] for wait in children.report.waits}
    found = [
        (child_plan.child.id not in awaited, _unready(object_plan, children))
        for child_plan in children.plans.values()
        for object_plan in child_plan.objects
        if object_plan.state is State.PROGRESSING and object_plan.action is None
    ]
    return [text for _, text in sorted(found, key=itemgetter(0))][:MAX_CAUSES]


def _described(problem: Problem) -> str:
    if problem.reason in {"ErrResourceExists", "Invalid"}:
        return problem.message
    place = f"{problem.site}: " if problem.site is not None else ""
    return f"{problem.child}: {place}{problem.message}"


def _sentence(parts: Iterable[str]) -> str:
    """The parts without duplicates, up to eight."""
    found = list(dict.fromkeys(parts))
    text = "; ".join(found[:8])
    return f"{text}; and more" if len(found) > 8 else text


def custom_conditions(rule: Rule, children: Children, problems: list[Problem]) -> tuple[Condition, ...]:
    """The conditions of the rule."""
    return tuple(_custom(rule, each, children, problems) for each in rule.status.conditions)


def _custom(rule: Rule, each: RuleCondition, children: Children, problems: list[Problem]) -> Condition:
    if missing := children.unreadable(each.reads):  # or `default`, `is defined` and `ready` would give false
        return Condition(each.type, "Unknown", "Forbidden", missing)
    names = children.scope.names
    try:
        status = _status(each.status.evaluate(names))
        reason = each.reason.string(names) if each.reason is not None else ""
        message = each.message.string(names) if each.message is not None else ""
    except Waiting as wait:
        return Condition(each.type, "Unknown", "Forbidden" if wait.forbidden else "Waiting", wait.message)
    except RenderError as error:
        _add_problem(rule, problems, error)
        return Condition(each.type, "Unknown", "RenderFailed", rule.secrecy.error(error))
    return Condition(
        each.type, status, _reason(reason) or {"True": "Holds", "False": "DoesNotHold"}.get(status, "Unknown"), message
    )


def _status(value: Any) -> str:
    if value is None:  # an `if` without `else`
        return "Unknown"
    if isinstance(value, str) and value.lower() in {"true", "false", "unknown"}:
        return value.capitalize()
    return "True" if value else "False"


def _reason(text: str) -> str:
    """A valid reason: the API allows letters, digits, `_`, `,` and `:`; other characters are removed."""
    return re.sub(r"[^A-Za-z0-9_,:]", "", text)[:MAX_REASON].lstrip("0123456789_,:").rstrip(",:")


# -- writing -----------------------------------------------------------------------------------------------------------


def status_write(
    resource: Object,
    info: KindInfo,
    observed: Observed,
    fields: dict[str, Any],
    own_fields: frozenset[str],
    conditions: Conditions,
    *,
    pause: bool = False,
) -> StatusWrite:
    """The desired status and its patch; no patch if the status is semantically equal, or if it lacks a field that the
    schema requires. In a `pause`, observedGeneration and some conditions stay those of the last reconcile."""
    live = resource.get("status")
    live = live if isinstance(live, dict) else {}
    metadata = resource["metadata"]
    generation = metadata.get("generation")
    observed_generation = generation if info.status_subresource and isinstance(generation, int) else None
    before, written = live.get("conditions"), [each.as_json() for each in conditions]
    if pause:
        kept = _KEPT_DURING_PAUSE & set(map(type_of, before if isinstance(before, list) else ()))
        written = [each for each in written if each["type"] not in kept]
    elif observed.retired and isinstance(before, list):  # of conditions that the rules no longer have
        before = [each for each in before if type_of(each) not in observed.retired]
    new: dict[str, Any] = {**fields, "conditions": _merged(before, written, observed_generation, observed.now)}
    if observed_generation is not None and not pause:
        new["observedGeneration"] = observed_generation
    if _is_current(live, new, own_fields):
        return StatusWrite(live, None, info.status_subresource)
    theirs = {key: value for key, value in live.items() if key not in own_fields}
    stored = _as_stored(theirs, new, {each["type"] for each in written}, info.status_schema)
    patch = merge_patch(live, stored)
    if patch is None:
        return StatusWrite(live, None, info.status_subresource)
    schema = schema_at(info.status_schema or {}, ("status",)) or {}
    if missing := tuple(name for name in schema.get("required") or () if name not in stored):
        return StatusWrite(live, None, info.status_subresource, missing=missing)
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    patch = {"metadata": guards, "status": patch}
    return StatusWrite(
        stored, patch, info.status_subresource, fields, details_only=_differs_in_details(live, stored, own_fields)
    )


def _differs_in_details(live: Mapping[str, Any], stored: Mapping[str, Any], own_fields: frozenset[str]) -> bool:
    """Whether the status is current but for the details of objects that are not ready."""
    before, after = live.get("conditions"), stored.get("conditions")
    if not isinstance(before, list) or not isinstance(after, list):
        return False
    if live.get("observedGeneration") != stored.get("observedGeneration"):
        return False
    return _is_current({**live, "conditions": _coarse(before)}, {**stored, "conditions": _coarse(after)}, own_fields)


def _coarse(conditions: list[Any]) -> list[Any]:
    """The conditions, of which Ready names the objects that are not ready without details."""
    return [
        {**each, "message": _DETAILS.sub(r"\1", str(each.get("message")))} if type_of(each) == "Ready" else each
        for each in conditions
    ]


def _is_current(live: Mapping[str, Any], new: Mapping[str, Any], own_fields: frozenset[str]) -> bool:
    """Whether the status has these values already. It usually has."""
    for key in own_fields:
        if key in live and key not in new:
            return False
    for key, value in new.items():  # noqa: SIM110 - a generator would take twice the time
        if key not in live or not same(live[key], value):
            return False
    return True


def _as_stored(
    theirs: dict[str, Any], new: dict[str, Any], types: Collection[str], schema: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The status as the server will store it: pruned and defaulted. Otherwise it would differ in every pass. Conditions
    that the schema does not allow are left out, because the server would refuse the whole status for them. Fields and
    conditions of others, which may be many, are stored already. `types`: those of the rule's own conditions."""
    ours = {**new, "conditions": [each for each in new["conditions"] if type_of(each) in types]}
    if schema is None:
        ours = without_nulls(ours)
    elif not is_kept(ours, schema_at(schema, ("status",))):
        ours = drop_unknown({"status": ours}, schema).get("status") or {}
        ours = default({"status": without_nulls(ours)}, schema)["status"]
    if schema is not None and "observedGeneration" in ours:
        field = schema_at(schema, ("status", "observedGeneration"))
        is_integer = field is not None and field.get("type") == "integer"
        if not is_integer and refused_field("observedGeneration", ours["observedGeneration"], schema):
            del ours["observedGeneration"]
    if "conditions" in ours:
        of_conditions = schema_at(schema, ("status", "conditions")) if schema is not None else CONDITIONS
        fits = of_conditions is not None and allows_all(ours["conditions"], of_conditions)
        own = iter(ours["conditions"])
        stored = [(next(own), True) if type_of(each) in types else (each, False) for each in new["conditions"]]
        ours["conditions"] = [each for each, is_own in stored if fits or not (is_own and refusal(each, schema or {}))]
        if not ours["conditions"] and not theirs.get("conditions"):
            del ours["conditions"]
    return {**ours, **theirs, **{name: value for name, value in ours.items() if name in new}}


def _merged(live: Any, conditions: list[dict[str, Any]], generation: int | None, now: str) -> list[dict[str, Any]]:
    """The live conditions with the new ones. Other controllers' conditions keep their place, Paused is removed after a
    pause, and lastTransitionTime changes only with the condition's status."""
    theirs = [each for each in live if isinstance(each, dict)] if isinstance(live, list) else []
    fresh = {each["type"]: each for each in conditions}
    result = []
    for before in theirs:
        new = fresh.pop(type_of(before), None)
        if new is not None:
            result.append(_updated_condition(before, new, generation, now))
        elif not _is_over(before):
            result.append(before)
    result.extend(_updated_condition({}, new, generation, now) for new in fresh.values())
    return result


def _is_over(condition: dict[str, Any]) -> bool:
    """Whether it is ruleop's condition of a pause or a rollout. While that lasts, there is a new one."""
    return (condition.get("type") == PAUSE and condition.get("reason") == PAUSE) or bool(named_revision(condition))


def _updated_condition(before: dict[str, Any], new: dict[str, Any], generation: int | None, now: str) -> dict[str, Any]:
    flipped = before.get("status") != new["status"]
    merged = {
        **new,
        "lastTransitionTime": now if flipped or "lastTransitionTime" not in before else before["lastTransitionTime"],
    }
    if generation is not None:
        merged["observedGeneration"] = generation
    return before if merged == before else merged
