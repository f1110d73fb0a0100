"""The results of cases: how expected and actual data are compared, what differs and where, for people and programs.

Values of Secrets are masked in the failures, as by `plan`: logs of CI jobs are often public. A value that the test
itself expects is shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from ruleop.authoring.report import Line, Place, Span, Tone, differing_lines
from ruleop.kubernetes.merge import is_stored_as, item_key, member_key
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.language.secrets.masks import Masks, without_data
from ruleop.language.secrets.secret_values import is_secret, known_values
from ruleop.language.templates import FieldPath, ItemStep, yaml_text
from ruleop.nearest import nearest
from ruleop.planning.changes import NOTHING, Value, flow
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from ruleop.authoring.ruletests.cases import Case
    from ruleop.authoring.ruletests.state import After
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Finding
    from ruleop.language.templates import FieldPath, YamlNode


# -- comparison --------------------------------------------------------------------------------------------------------
# Compares expected data with actual data: a part of the fields is enough.
#
# - A mapping matches if each expected member matches; an empty one matches only an empty one, and null a missing field.
# - Items of a list that the API declares as a map are matched by its keys, members of a set in any order. Any other
#   list is one value: it has as many items as expected, in the same order, and each may be expected in part.
# - With `exact`, there are no other members and items.


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field that is not as expected."""

    path: FieldPath
    expected: Value
    actual: Value
    site: Site  # in the test file
    note: str = ""


def mismatches(
    expected: YamlNode, actual: Value, shape: Shape = UNKNOWN, *, path: FieldPath = (), exact: bool = False
) -> Iterator[Mismatch]:
    """The fields of `actual` that differ from what is expected."""
    value = expected.value
    if value is None:
        if actual is not NOTHING and actual is not None:
            yield Mismatch(path, NOTHING, actual, expected.site, "expected to be missing")
    elif isinstance(value, dict):
        yield from _members(expected, value, actual, shape, path, exact)
    elif isinstance(value, list):
        yield from _items(expected, value, actual, shape, path, exact)
    elif actual is NOTHING or not is_stored_as(actual, value, shape):
        yield Mismatch(path, value, actual, expected.site)


def _members(
    expected: YamlNode, members: Mapping[str, YamlNode], actual: Value, shape: Shape, path: FieldPath, exact: bool
) -> Iterator[Mismatch]:
    if not isinstance(actual, dict) or (not members and actual):
        yield Mismatch(path, expected.data(), actual, expected.site)
        return
    for name, member in members.items():
        inner = shape.fields.get(name) or shape.values or UNKNOWN
        found = actual.get(name, NOTHING)
        if found is NOTHING and not _needs_field(member):
            continue
        if found is NOTHING:
            near = nearest(name, actual.keys() - members.keys())
            note = f"there is no {name}; did you mean {near}?" if near else ""
            yield Mismatch((*path, name), member.data(), NOTHING, expected.key_sites[name], note)
        else:
            yield from mismatches(member, found, inner, path=(*path, name), exact=exact)
    if exact:
        for name in actual:
            if name not in members:
                yield Mismatch((*path, name), NOTHING, actual[name], expected.site)


def _needs_field(expected: YamlNode) -> bool:
    """Whether a missing field is a difference: not if only nulls are expected."""
    value = expected.value
    if isinstance(value, dict) and value:
        return any(map(_needs_field, value.values()))
    return value is not None


def _items(
    expected: YamlNode, items: list[YamlNode], actual: Value, shape: Shape, path: FieldPath, exact: bool
) -> Iterator[Mismatch]:
    if not isinstance(actual, list) or (not items and actual):
        yield Mismatch(path, expected.data(), actual, expected.site)
    elif shape.list_type == "map":
        yield from _keyed(expected, items, actual, shape, path, exact)
    elif shape.list_type == "set":
        known, desired = {member_key(item) for item in actual}, {member_key(item.data()) for item in items}
        for item in items:
            if member_key(item.data()) not in known:
                yield Mismatch((*path, ItemStep(-1)), item.data(), NOTHING, item.site)
        for position, found in enumerate(actual):
            if exact and member_key(found) not in desired:
                yield Mismatch((*path, ItemStep(position)), NOTHING, found, expected.site)
    elif len(items) != len(actual):
        yield Mismatch(
            path,
            expected.data(),
            actual,
            expected.site,
            f"{len(actual)} item{'' if len(actual) == 1 else 's'} instead of {len(items)}",
        )
    else:
        for position, (item, found) in enumerate(zip(items, actual, strict=True)):
            yield from mismatches(item, found, shape.items or UNKNOWN, path=(*path, ItemStep(position)), exact=exact)


def _keyed(
    expected: YamlNode, items: list[YamlNode], actual: list[JSON], shape: Shape, path: FieldPath, exact: bool
) -> Iterator[Mismatch]:
    places = {item_key(item, shape): place for place, item in reversed([*enumerate(actual)])}
    seen = set()
    for item in items:
        data = item.data()
        key = item_key(data, shape)
        if key is None:
            place = next(
                (place for place, each in enumerate(actual) if not any(mismatches(item, each, shape.items or UNKNOWN))),
                None,
            )
            if place is None:
                keys = " and ".join(shape.keys)
                note = f"no item has these fields; items of this list are identified by {keys}"
                yield Mismatch((*path, ItemStep(-1)), data, NOTHING, item.site, note)
            else:
                seen.add(place)
        elif key not in places:
            yield Mismatch((*path, _item(-1, data, shape)), data, NOTHING, item.site)
        else:
            place = places[key]
            seen.add(place)
            yield from mismatches(
                item, actual[place], shape.items or UNKNOWN, path=(*path, _item(place, data, shape)), exact=exact
            )
    for place, found in enumerate(actual):
        if exact and place not in seen:
            yield Mismatch((*path, _item(place, found, shape)), NOTHING, found, expected.site)


def _item(place: int, data: JSON, shape: Shape) -> ItemStep:
    """The item with the keys that its data has; keys by default are left out."""
    keys = tuple((name, data[name]) for name in shape.keys if isinstance(data, dict) and name in data)
    return ItemStep(place, keys)


# -- results -----------------------------------------------------------------------------------------------------------


class CaseError(Exception):
    """A step that cannot be run."""

    def __init__(self, message: str, site: Site) -> None:
        super().__init__(message)
        self.message, self.site = message, site


@dataclass(frozen=True, slots=True)
class CaseDifference:
    """A field that is not as expected, with the line of the template that it comes from, where that is known."""

    mismatch: Mismatch
    source: Site | None = None


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """One expectation that does not hold."""

    what: str  # the expectation, like children.deployment
    message: str
    site: Site  # in the test file
    differences: tuple[CaseDifference, ...] = ()
    source: Site | None = None  # of an error, in the project's files
    step: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case. Without failures it has passed."""

    case: Case
    failures: tuple[CaseFailure, ...]
    written: tuple[str, ...] = ()  # snapshots that were written

    @property
    def passed(self) -> bool:
        return not self.failures


def masks_for(after: After, public: Container[str]) -> Masks:
    """The masks after a step: for the data of Secrets, and for values that templates computed from them. `public`: the
    values that the test expects."""
    secrets = [obj for obj in (*after.objects.values(), *(obj for _, _, obj in after.rendered)) if is_secret(obj)]
    return Masks(values=known_values(secrets, after.masks().values, public))


def masked(failure: CaseFailure, masks: Masks) -> CaseFailure:
    """The failure without values of Secrets in what was found."""
    differences = tuple(
        replace(each, mismatch=replace(each.mismatch, actual=masks.all(each.mismatch.actual)))
        for each in failure.differences
    )
    return replace(failure, message=masks.text(failure.message), differences=differences)


def without_secret_data(mismatch: Mismatch, obj: Object) -> Mismatch:
    """The difference of an object, without the data of a Secret that was found."""
    if mismatch.actual is NOTHING or not is_secret(obj):
        return mismatch
    return replace(mismatch, actual=without_data(mismatch.actual, mismatch.path))


def without_rendered_data(after: After, public: Container[str]) -> After:
    """The state without the data of rendered Secrets."""
    rendered = (
        (child, template, without_data(obj, (), public) if is_secret(obj) else obj)
        for child, template, obj in after.rendered
    )
    return replace(after, rendered=tuple(rendered))


# -- for people --------------------------------------------------------------------------------------------------------
# A failure is shown as YAML: only the fields that differ, below their parents; `-` is expected, `+` is found.

MAX_LINES: Final = 40
"""The number of shown lines of one text or object."""

_COLUMN: Final = 48  # of the note beside a value


def diff_lines(differences: Iterable[CaseDifference], *, place: Place) -> Iterator[Line]:
    shown: tuple[str, ...] = ()
    for each in differences:
        mismatch = each.mismatch
        texts = _texts(mismatch.expected, mismatch.actual)
        if texts is not None:
            yield from _parents(mismatch.path, shown)
            shown = tuple(map(str, mismatch.path))
            yield from _changed(*texts, "  " * len(mismatch.path))
            if each.source is not None:
                yield (Span(f"    {place(each.source)}", Tone.FAINT),)
            continue
        *parents, last = mismatch.path or ("",)
        yield from _parents(tuple(parents), shown)
        shown = tuple(map(str, parents))
        indent = "  " * len(parents)
        source = place(each.source) if each.source is not None else ""
        beside = "; ".join(filter(None, [mismatch.note, source]))
        if mismatch.actual is NOTHING:
            yield from _value("-", indent, last, mismatch.expected, beside)
        else:
            if mismatch.expected is not NOTHING:
                yield from _value("-", indent, last, mismatch.expected, "")
            yield from _value("+", indent, last, mismatch.actual, beside)


def _parents(path: FieldPath, shown: tuple[str, ...]) -> Iterator[Line]:
    """The parents that were not shown for the difference before."""
    names = tuple(map(str, path))
    common = next(
        (at for at, (a, b) in enumerate(zip(names, shown, strict=False)) if a != b), min(len(names), len(shown))
    )
    for depth in range(common, len(path)):
        yield (Span(f"    {'  ' * depth}{_head(path[depth])}", Tone.FAINT),)


def _head(segment: str | ItemStep) -> str:
    if isinstance(segment, str):
        return f"{flow(segment)}:"
    if segment.keys:
        return f"- {', '.join(f'{name}: {flow(value)}' for name, value in segment.keys)}"
    return f"-  # item {segment.position + 1}"


def _value(sign: str, indent: str, name: str | ItemStep, value: Value, note: str) -> Iterator[Line]:
    lines = _lines(name, value)
    tone = Tone.REMOVE if sign == "-" else Tone.ADD
    for number, line in enumerate(lines[:MAX_LINES]):
        text = f"  {sign} {indent}{line}"
        gap = " " * max(2, _COLUMN - len(text))
        beside = [Span(f"{gap}# {note}", Tone.FAINT)] if note and not number else []
        yield (Span(text, tone), *beside)
    if len(lines) > MAX_LINES:
        yield (Span(f"  {sign} {indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)


def _lines(name: str | ItemStep, value: Value) -> list[str]:
    """The YAML of a member or of an item."""
    data = None if value is NOTHING else value
    if isinstance(name, ItemStep):
        return [f"{'- ' if not number else '  '}{line}" for number, line in enumerate(yaml_text(data).split("\n"))]
    if not name:
        return yaml_text(data).split("\n")
    return yaml_text({name: data}).split("\n")


def _texts(expected: Value, actual: Value) -> tuple[list[str], list[str]] | None:
    """Two values that are compared line by line: long texts, and lists of actions."""
    if isinstance(expected, str) and isinstance(actual, str) and "\n" in expected + actual:
        return expected.splitlines(), actual.splitlines()
    if _is_texts(expected) and _is_texts(actual):
        return [f"- {flow(each)}" for each in expected], [f"- {flow(each)}" for each in actual]
    return None


def _is_texts(value: Value) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _changed(expected: list[str], actual: list[str], indent: str) -> Iterator[Line]:
    lines = differing_lines(expected, actual, neighbours=2)
    if not lines:
        yield (Span(f"    {indent}only the line break at the end", Tone.FAINT),)
    for line in lines[:MAX_LINES]:
        tone = {"-": Tone.REMOVE, "+": Tone.ADD}.get(line[:1], Tone.FAINT)
        yield (Span(f"  {line[:1]} {indent}{line[1:]}", tone),)
    if len(lines) > MAX_LINES:
        yield (Span(f"    {indent}and {len(lines) - MAX_LINES} more lines", Tone.FAINT),)


def failure_lines(result: CaseResult, *, place: Place) -> Iterator[Line]:
    """Each expectation of a case that does not hold, with its diff. `place`: shows a place in the project's files."""
    for failure in result.failures:
        step = f"{failure.step}: " if failure.step else ""
        yield (
            Span(f"{failure.site}: ", Tone.FAINT),
            Span(f"{step}{failure.what}: ", Tone.TITLE),
            Span(failure.message),
            Span(" (- expected, + found)" if failure.differences else "", Tone.FAINT),
        )
        yield from diff_lines(failure.differences, place=place)
        if failure.source is not None:
            yield (Span(f"    at {place(failure.source)}", Tone.FAINT),)


# -- for programs ------------------------------------------------------------------------------------------------------


def case_json(result: CaseResult, *, place: Place) -> dict[str, Any]:
    return {
        "file": result.case.site.path,
        "line": result.case.site.line,
        "name": result.case.name,
        "passed": result.passed,
        "failures": [_failure_json(failure, place) for failure in result.failures],
    }


def mistake_json(finding: Finding) -> dict[str, Any]:
    site = finding.site
    return {"path": site.path, "line": site.line, "column": site.column, "message": finding.message}


def _failure_json(failure: CaseFailure, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {
        "what": failure.what,
        "message": failure.message,
        "place": str(failure.site),
        "step": failure.step,
        "differences": [
            {
                "path": _path(each.mismatch.path),
                **({} if each.mismatch.expected is NOTHING else {"expected": each.mismatch.expected}),
                **({} if each.mismatch.actual is NOTHING else {"actual": each.mismatch.actual}),
                "source": place(each.source) if each.source is not None else None,
            }
            for each in failure.differences
        ],
    }
    return found


def _path(path: Sequence[object]) -> str:
    text = ""
    for part in path:
        piece = str(part)
        text += piece if not text or piece.startswith("[") else f".{piece}"
    return text
