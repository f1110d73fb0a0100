"""The status of a CR: the fields that the rule projects, and the conditions that kstatus and people go by.

Messages hold no times, counters or versions: a status that changes by itself would be written again and again, and wake everybody who watches it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ruleop.errors import RenderError
from ruleop.merge import same
from ruleop.planning.actions import Problem, State, StatusWrite
from ruleop.schema.structural import drop_unknown, schema_at
from ruleop.templating import OMIT, Omit, TextTemplate, Tree, Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kinds import Object
    from ruleop.planning.children import Children
    from ruleop.planning.observed import KindInfo, Observed
    from ruleop.planning.scope import Scope
    from ruleop.rules import Condition, Rule

MAX_MESSAGE = 1024
RETRIED = frozenset({"Conflict"})
_TOP_KEY = re.compile(r"(?m)^([A-Za-z_][\w-]*):")


def projected(rule: Rule, scope: Scope, problems: list[Problem]) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields to write, and all the names that are ours: one of those that is not to be written is to be removed."""
    names = {key: value for key, value in scope.names.items() if key != "status"}
    if rule.status is None:
        return {}, frozenset()
    if isinstance(rule.status, TextTemplate):
        return _from_template(rule.status, names, problems)
    found: dict[str, Any] = {}
    members = rule.status.members()
    for key, member in members.items():
        try:
            value = member.evaluate(names, lenient=True)
        except RenderError as error:
            _complain(problems, error)
            continue
        if not isinstance(value, Omit) and value is not None:
            found[key] = value
    return found, frozenset(members)


def _from_template(template: TextTemplate, names: Mapping[str, Any], problems: list[Problem]) -> tuple[dict[str, Any], frozenset[str]]:
    ours = frozenset(_TOP_KEY.findall(template.library.texts[template.name]))
    try:
        documents = template.render(names, lenient=True)
    except Waiting:
        return {}, ours
    except RenderError as error:
        _complain(problems, error)
        return {}, ours
    if not documents:
        return {}, ours
    if len(documents) > 1 or not isinstance(documents[0], dict):
        problems.append(Problem("status", "RenderFailed", "the template of a status gives one mapping", template.site))
        return {}, ours
    return documents[0], ours | frozenset(documents[0])


def _complain(problems: list[Problem], error: RenderError) -> None:
    problem = Problem("status", "RenderFailed", error.message, error.site)
    if problem not in problems:
        problems.append(problem)


# -- conditions --------------------------------------------------------------------------------------------------------------------------


def condition(type_: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message[:MAX_MESSAGE]}


def triple(ready: bool, reason: str, message: str, *, reconciling: bool, stalled: bool) -> list[dict[str, Any]]:
    """Ready, Reconciling and Stalled, as kstatus reads them: at most one of the latter two is True, and none when Ready is."""
    return [
        condition("Ready", "True" if ready else "False", reason, message),
        condition("Reconciling", "True" if reconciling else "False", reason if reconciling else _quiet(reason, ready)),
        condition("Stalled", "True" if stalled else "False", reason if stalled else _quiet(reason, ready)),
    ]


def _quiet(reason: str, ready: bool) -> str:
    return "Ready" if ready else reason


def overall(children: Children, problems: list[Problem]) -> list[dict[str, Any]]:
    """What the children's states amount to."""
    lasting = [problem for problem in problems if problem.reason not in RETRIED]
    if lasting:
        first = lasting[0]
        return triple(False, first.reason, _sentence(_told(problem) for problem in lasting), reconciling=False, stalled=True)
    if children.waits:
        message = _sentence(f"{wait.child} waits for {wait.for_what}" for wait in children.waits)
        return triple(False, "Waiting", message, reconciling=True, stalled=False)
    unready = [
        f"{report.key.kind}/{report.key.name}"
        for planned in children.planned.values()
        for report in planned.reports
        if report.state is not State.READY
    ]
    if unready:
        return triple(False, "Progressing", _sentence(f"{name} is not ready" for name in unready), reconciling=True, stalled=False)
    return triple(True, "Ready", "", reconciling=False, stalled=False)


def _told(problem: Problem) -> str:
    if problem.reason in {"ErrResourceExists", "Invalid"}:
        return problem.message
    place = f"{problem.site}: " if problem.site is not None else ""
    return f"{problem.child}: {place}{problem.message}"


def _sentence(parts: Iterable[str]) -> str:
    """The parts, each once, as many as fit."""
    told = list(dict.fromkeys(parts))
    text = "; ".join(told[:8])
    return f"{text}; and more" if len(told) > 8 else text


def users(rule: Rule, scope: Scope, problems: list[Problem]) -> list[dict[str, Any]]:
    return [_users(each, scope.names, problems) for each in rule.conditions]


def _users(each: Condition, names: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    names = {key: value for key, value in names.items() if key != "status"}
    try:
        status = _status(each.status.evaluate(names))
        reason = each.reason.string(names) if each.reason is not None else ""
        message = each.message.string(names) if each.message is not None else ""
    except Waiting as wait:
        return condition(each.type, "Unknown", "Waiting", f"{wait.path} is not there yet")
    except RenderError as error:
        _complain(problems, error)
        return condition(each.type, "Unknown", "RenderFailed", error.message)
    return condition(each.type, status, _reason(reason) or {"True": "Holds", "False": "DoesNotHold"}.get(status, "Unknown"), message)


def _status(value: Any) -> str:
    if isinstance(value, str) and value.lower() in {"true", "false", "unknown"}:
        return value.capitalize()
    return "True" if value else "False"


def _reason(text: str) -> str:
    """The API takes letters, digits, `_`, `,` and `:`; a reason that has others is made to fit."""
    return re.sub(r"[^A-Za-z0-9_,:]", "", text)[:MAX_MESSAGE].lstrip("0123456789_,:").rstrip(",:")


# -- writing -----------------------------------------------------------------------------------------------------------------------------


def write(
    resource: Object, info: KindInfo, observed: Observed, fields: dict[str, Any], ours: frozenset[str], conditions: list[dict[str, Any]]
) -> StatusWrite:
    """The status as it should be, and the patch that makes it so; no patch where nothing differs in meaning."""
    live: Mapping[str, Any] = resource.get("status") or {}
    generation = (resource.get("metadata") or {}).get("generation")
    speaks_of = generation if info.status_subresource and isinstance(generation, int) else None
    wanted = {key: value for key, value in live.items() if key not in ours}
    wanted |= fields
    wanted["conditions"] = _merged(live.get("conditions"), conditions, speaks_of, observed.now)
    if speaks_of is not None:
        wanted["observedGeneration"] = speaks_of
    if info.status_schema is not None:
        wanted = _what_fits(wanted, live, info.status_schema)
    changes: dict[str, Any] = {key: value for key, value in wanted.items() if key not in live or not same(live[key], value)}
    changes |= {key: None for key in live if key not in wanted}
    if not changes:
        return StatusWrite(dict(live), None, info.status_subresource)
    metadata = resource.get("metadata") or {}
    guards = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return StatusWrite(wanted, {"metadata": guards, "status": changes}, info.status_subresource)


def _what_fits(wanted: dict[str, Any], live: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without what the server would drop: writing that would differ for ever."""
    status = schema_at(schema, ("status",))
    if status is None:
        return dict(live)
    fitting = drop_unknown(wanted, status)
    return fitting if isinstance(fitting, dict) else dict(live)


def _merged(live: Any, conditions: list[dict[str, Any]], generation: int | None, now: str) -> list[dict[str, Any]]:
    """Others' conditions stay where they are. The time of a transition is kept until the status flips."""
    theirs = [each for each in live if isinstance(each, dict)] if isinstance(live, list) else []
    fresh = {each["type"]: each for each in conditions}
    result = []
    for before in theirs:
        new = fresh.pop(before.get("type", ""), None)
        result.append(before if new is None else _over(before, new, generation, now))
    result.extend(_over({}, new, generation, now) for new in fresh.values())
    return result


def _over(before: dict[str, Any], new: dict[str, Any], generation: int | None, now: str) -> dict[str, Any]:
    flipped = before.get("status") != new["status"]
    merged = {**new, "lastTransitionTime": now if flipped or "lastTransitionTime" not in before else before["lastTransitionTime"]}
    if generation is not None:
        merged["observedGeneration"] = generation
    return before if merged == before else merged


def ready_of(resource: Object) -> Mapping[str, Any]:
    """The condition Ready as it was written last."""
    conditions = (resource.get("status") or {}).get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and each.get("type") == "Ready":
            return each
    return {}


__all__ = ["OMIT", "Tree", "condition", "overall", "projected", "ready_of", "triple", "users", "write"]
