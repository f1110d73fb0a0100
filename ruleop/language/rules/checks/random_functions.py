"""Checks the use of functions whose results change: random ones, and those of the time.

Everything except a create-only child must render the same each time, or ruleop would write on every pass. An answer of
the time lasts until a moment that is known, and may be used where a truth value decides.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.cron import is_zone, times_problem
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema import FORMATS
from ruleop.language.rules.keys.model import JOBS, parse_duration
from ruleop.language.rules.scopes import metadata_slots, written
from ruleop.language.templates import NONDETERMINISTIC, TIME_FUNCTIONS, syntax
from ruleop.language.templates.compile import is_made, origins_of, slots_from
from ruleop.language.templates.declarations import FUNCTIONS
from ruleop.language.templates.syntax import chain_of, find, names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import Reference
    from ruleop.language.templates.compile import Library

_PARAMETERS: Final = {  # with the number of those that are required
    "after": (1, ("time", "delay")),
    "within": (2, ("schedule", "length", "zone")),
    "duration": (1, ("text",)),
}
_TIMELESS: Final = frozenset(
    {
        "observe",
        "observe.forEach",
        "forEach",
        "namespace",
        "selector",
        "deletion",
        "apply.ignore",
        "apply.onImmutable",
        "writeAs",
    }
)
"""Keys that decide which objects there are, or whose. They must not change with time alone."""

_CERTIFICATES: Final = frozenset(name for name, each in FUNCTIONS.items() if each.package == "cryptography")
SECRETS: Final = Kind("", "v1", "Secret")


def check_changing_functions(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    parts = list(parts)
    _check_random(parts, library, findings)
    _check_request_ids(parts, library, findings)
    _check_renewals(parts, library, findings)
    _check_time(parts, library, findings)


def _check_random(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    for part in parts:
        if part.body and part.child is not None:
            _check_rotation(part.child, {name for name, _ in part.compiled.calls}, findings)
        calls = [(name, site) for name, site in part.compiled.calls if name in NONDETERMINISTIC]
        if not calls:
            continue
        if not (part.body and part.child is not None and part.child.create_only):
            for name, site in calls:
                message = (
                    f"`{name}` is random: only the body of a child with `apply: {{strategy: create-only}}` may use it"
                )
                findings.mistake("random", message, site, word=name)
            continue
        for name, site in calls:
            if (package := FUNCTIONS[name].package) and importlib.util.find_spec(package) is None:
                message = (
                    f"`{name}` needs the Python package {package}, which is not installed: "
                    "pip install 'ruleop[certificates]'"
                )
                findings.mistake("template", message, site, word=name)
        random = slots_from(origins_of([*written(part, library)], {}, functions=NONDETERMINISTIC), is_made)
        for field in ("name", "namespace"):
            for slot in (each for each in metadata_slots(part, field, library) if each.place in random):
                name = min(names_in(slot.node) & NONDETERMINISTIC, default=slot.place.expression)
                message = (
                    f"`{name}` in metadata.{field} would create another object each time: "
                    f"derive the {field} from the CR"
                )
                findings.mistake("random", message, slot.place.site, word=name)


_CHANGES_WITH_EACH_WRITE: Final = frozenset({"resourceVersion", "managedFields"})


_AS_TEXT: Final = frozenset(
    {"to_json", "tojson", "to_yaml", "to_nice_yaml", "string", "hash", "sha1", "sha256", "b64encode", "trim"}
)
"""Filters whose result changes whenever any part of a value does."""
_WITH_EACH_WRITE: Final = (("cr",), ("metadata",), ("cr", "metadata"))
_WITH_EACH_RUN: Final = (("status",), ("cr", "status"), ("status", "conditions"), ("cr", "status", "conditions"))
"""Values that, as a whole, change with each write of the CR; and with each run of a Job, which Ready reports."""


def _check_request_ids(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    """Finds request ids of `once` that change whenever ruleop writes the CR's status: each write would be a run."""
    changing: dict[str, str] = {}  # lets that do, with the reason
    for part in parts:
        if not part.let and part.key != "once":
            continue
        runs_jobs = part.child is not None and all(kind.versionless == JOBS for kind in part.child.kinds)
        for name, reason, site in _changing_parts(part, library, changing):
            if part.let:
                changing[part.let] = reason
            elif reason.endswith("is written") or runs_jobs:
                message = (
                    f"`{name}` changes whenever {reason}, so it would run without end: use a field of the spec, or "
                    "`metadata.generation`"
                )
                findings.mistake("random", message, site, word=name.partition(".")[0])


def _changing_parts(part: RulePart, library: Library, lets: Mapping[str, str]) -> Iterator[tuple[str, str, Site]]:
    """The values in a text that change with each write of the CR or each run of a Job, with the reason."""
    for each in part.compiled.references:
        steps = ".".join(step for step in each.path if step)
        if _changes_with_each_write(each):
            yield steps, "the object is written" if each.name == "live" else "the CR is written", each.site
        elif each.name in lets:
            yield steps, lets[each.name], each.site
    for tree in written(part, library):
        for printed in find(tree, syntax.Print):
            path = _printed_whole(printed.value)
            if path in (*_WITH_EACH_WRITE, *_WITH_EACH_RUN):
                reason = "the CR is written" if path in _WITH_EACH_WRITE else "a run begins or ends"
                yield ".".join(path), reason, printed.site


def _printed_whole(node: syntax.Expr | None) -> tuple[str, ...]:
    """The path of a value that is printed with all its parts; empty for others."""
    while isinstance(node, syntax.Filter):
        if node.name not in _AS_TEXT:
            return ()
        node = node.value
    return tuple(map(str, chain_of(node)))


def _changes_with_each_write(reference: Reference) -> bool:
    path = reference.path[1:] if reference.path[0] == "cr" else reference.path
    if path[:1] == ("live",):  # of an object, or of one in a list
        path = path[path.index("metadata") :] if "metadata" in path else ()
    return path[:1] == ("metadata",) and path[1:2] != () and path[1] in _CHANGES_WITH_EACH_WRITE


def _check_rotation(child: ChildDraft, calls: set[str], findings: Findings) -> None:
    for key, makers, made in (
        ("rotateEvery", NONDETERMINISTIC - {"now"}, "random values"),
        ("renewBefore", _CERTIFICATES, "certificates"),
    ):
        if (site := child.table.key_sites.get(key)) is None:
            continue
        has_one = child.table.template is None or not child.table.template.compiled.many
        if not (child.create_only and not child.final and child.kinds == {SECRETS} and has_one):
            message = f"`{key}` is for one of `children` with `apply: {{strategy: create-only}}`, a single Secret"
            findings.mistake("out-of-place", message, site)
        elif calls.isdisjoint(makers):
            message = f"`{key}` regenerates {made}, and the body calls none of {', '.join(sorted(makers))}"
            findings.mistake("out-of-place", message, site)


# -- the time ----------------------------------------------------------------------------------------------------------


def _check_time(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    timed: set[str] = set()  # lets whose values change with time alone
    for part in parts:
        calls = [(name, site) for name, site in part.compiled.calls if name in _PARAMETERS]
        changing = [(name, site) for name, site in calls if name in TIME_FUNCTIONS]
        changing += [(each.name, each.site) for each in part.compiled.references if each.name in timed]
        if part.let and changing:
            timed.add(part.let)
        if part.key in _TIMELESS:
            for name, site in changing:
                message = (
                    f"{part.view.title} cannot depend on the time, as `{name}` does: use it in `when`, or where it "
                    "decides a value of a field"
                )
                findings.mistake("out-of-place", message, site, word=name)
        if calls:
            for tree in written(part, library):
                _check_calls(tree, findings)


_DAYS: Final = {"genCA": (1, 3650), "genSignedCert": (3, 365), "genSelfSignedCert": (3, 365)}
"""The position of the parameter `days` of each function, and its default."""


def _check_renewals(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    """Finds certificates that would have to be renewed before they are made."""
    for part in parts:
        before = part.child.table.renew_before if part.body and part.child is not None else None
        if before is None or part.child is None:
            continue
        for tree in written(part, library):
            for call in find(tree, syntax.Call):
                days = _days(call, *_DAYS[call.name]) if call.name in _DAYS else None
                if days is not None and before >= days * 86400:
                    message = f"`renewBefore` must be shorter than the {days} days of `{call.name}`"
                    findings.mistake("wrong-value", message, part.child.table.key_sites["renewBefore"])


def _days(call: syntax.Call, position: int, default: int) -> int | None:
    """The days for which a certificate is valid; None if they are computed."""
    value = call.kwargs.get("days", call.args[position] if position < len(call.args) else None)
    if value is None:
        return None if call.is_dynamic else default
    return value.value if isinstance(value, syntax.Const) and isinstance(value.value, int) else None


def _check_calls(tree: syntax.Template, findings: Findings) -> None:
    for call in find(tree, syntax.Call):
        name, site = call.name, call.site
        if name not in _PARAMETERS:
            continue
        for problem in _call_problems(name, call):
            findings.mistake("wrong-value", problem, site, word=name)


def _call_problems(name: str, call: syntax.Call) -> Iterator[str]:
    required, parameters = _PARAMETERS[name]
    given = {**dict(zip(parameters, call.args, strict=False)), **call.kwargs}
    is_short = len(given) < required and not call.is_dynamic
    if len(call.args) > len(parameters) or not given.keys() <= {*parameters} or is_short:
        more = "".join(f", optionally {each}" for each in parameters[required:])
        yield f"`{name}` takes {' and '.join(parameters[:required])}{more}"
        return
    for parameter, value in given.items():
        if isinstance(value, syntax.Const) and isinstance(value.value, str):
            problem = _literal_problem(parameter, value.value)
            if problem:
                yield f"`{name}`: {problem}"


def _literal_problem(parameter: str, text: str) -> str:
    match parameter:
        case "schedule":
            problem = times_problem(text)
            return f'"{text}" is not a cron schedule with fixed times: {problem}' if problem else ""
        case "zone":
            return "" if is_zone(text) else f'"{text}" is not a time zone: write it like "Europe/Berlin"'
        case "time":
            return "" if FORMATS["datetime"](text) else f'"{text}" is not a time: write it like "2026-01-31T12:00:00Z"'
    try:
        parse_duration(text)
    except ValueError as error:
        return str(error)
    return ""
