"""Texts of renderings that differ by values: the text that they have in common, with expressions in between, and how
the templates that are being made of it write their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from ruleop.authoring.scaffold.yaml_layout import Expr, Guarded, Joined, Repeated, Spread, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.authoring.scaffold.manifests.chart_values import Variable

Atoms: TypeAlias = tuple[str | Expr, ...]
"""The characters of a text, and its expressions."""
_MOST_STEPS: Final = 200_000
_LONG: Final = 300  # characters of a text in which words are looked for
_COST: Final = 10  # of each value, so that few are better than likely ones
_IN_WORD: Final = re.compile(r"[\w.-]")
_UNLIKELY: Final = 2  # the cost of a value in the middle of a word


def atoms(text: str | Expr | Joined) -> Atoms:
    if isinstance(text, Joined):
        return tuple(each for part in text.parts for each in atoms(part))
    return (text,) if isinstance(text, Expr) else tuple(text)


def joined(parts: Sequence[str | Expr]) -> Any:
    """The text of such atoms, and of longer parts."""
    found: list[str | Expr] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part:
            found.append(part)
    if not found or (len(found) == 1 and isinstance(found[0], str)):
        return found[0] if found else ""
    return Joined(tuple(found))


def written(value: Any) -> str | None:
    """A value as Helm and ruleop both write it into a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int)) else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """An expression, its text in each sample, and its cost, by which the better one is chosen."""

    code: str
    texts: tuple[Atoms, ...]
    cost: int


def candidates(variables: Sequence[Variable]) -> Iterator[Candidate]:
    """The values that differ, the best one first."""
    for place, variable in enumerate(variables):
        found = [written(each) for each in variable.values]
        if None not in found and len(set(found)) > 1:
            yield Candidate(variable.code, tuple(tuple(each or "") for each in found), _COST + place)


def with_fallbacks(samples: Sequence[Atoms], known: Iterable[Candidate]) -> Iterator[Candidate]:
    """The values that are empty in some samples, with a word of those samples in their place: `spec.tag or '1.0'`."""
    for each in known:
        empty = [sample for sample, text in zip(samples, each.texts, strict=True) if not text]
        for word in dict.fromkeys(_words(empty[0])) if empty and len(empty[0]) <= _LONG else ():
            if all(word in _words(sample) for sample in empty):
                other = word[0].code if isinstance(word[0], Expr) else literal("".join(map(str, word)))
                yield Candidate(f"{each.code} or {other}", tuple(text or word for text in each.texts), each.cost + 1)


def _words(sample: Atoms) -> list[Atoms]:
    found: list[Atoms] = []
    for kind, run in groupby(sample, lambda atom: "x" if isinstance(atom, str) and _IN_WORD.match(atom) else atom):
        if kind == "x":
            found.append(tuple(run))
        elif isinstance(kind, Expr):
            found.append((kind,))
    return found


def aligned(samples: Sequence[Atoms], known: Sequence[Candidate]) -> list[str | Expr] | None:
    """The common text with as few values as possible; None if the values do not explain what differs."""
    start, ends = (0,) * len(samples), tuple(len(each) for each in samples)
    opened: list[tuple[int, int, tuple[int, ...], Any]] = [(0, 0, start, None)]
    seen: set[tuple[int, ...]] = set()
    steps = 0
    while opened and steps < _MOST_STEPS:
        cost, _, places, trail = heappop(opened)
        if places == ends:
            return _unwound(trail)
        if places in seen:
            continue
        seen.add(places)
        for each in known:
            steps += 1
            after = tuple(at + len(text) for at, text in zip(places, each.texts, strict=True))
            if all(map(_has_at, samples, places, each.texts)):
                is_inside = any(map(_is_inside, samples, places, after))
                whole = cost + each.cost + (_UNLIKELY if is_inside else 0)
                heappush(opened, (whole, steps, after, (trail, Expr(each.code))))
        heads = [sample[at] if at < len(sample) else None for sample, at in zip(samples, places, strict=True)]
        if heads[0] is not None and all(each == heads[0] for each in heads):
            steps += 1
            heappush(opened, (cost, steps, tuple(at + 1 for at in places), (trail, heads[0])))
    return None


def _has_at(sample: Atoms, at: int, text: Atoms) -> bool:
    return sample[at : at + len(text)] == text


def _is_inside(sample: Atoms, start: int, end: int) -> bool:
    """Whether a value is a part of a word or a number."""
    return _continues(sample, start) or _continues(sample, end)


def _continues(sample: Atoms, at: int) -> bool:
    return 0 < at < len(sample) and all(isinstance(each, str) and each.isalnum() for each in sample[at - 1 : at + 1])


def _unwound(trail: Any) -> list[str | Expr]:
    found = []
    while trail is not None:
        trail, part = trail
        found.append(part)
    return found[::-1]


def ends(samples: Sequence[Atoms]) -> tuple[int, int]:
    """The length of what the texts have in common at the start and at the end, in whole words."""
    shortest = min(map(len, samples))
    first = next((at for at in range(shortest) if any(each[at] != samples[0][at] for each in samples)), shortest)
    while first and any(_continues(each, first) for each in samples):
        first -= 1
    rest = shortest - first
    last = next((at for at in range(rest) if any(each[-1 - at] != samples[0][-1 - at] for each in samples)), rest)
    while last and any(_continues(each, len(each) - last) for each in samples):
        last -= 1
    return first, last


def blocks(samples: Sequence[Atoms]) -> list[list[Atoms]]:
    """The texts cut at the lines that all have, in order: such a line, or what stands between two of them."""
    lines = [_lines(each) for each in samples]
    anchors = list(range(len(lines[0])))
    positions = [{at: at for at in anchors}]
    for other in lines[1:]:
        matching = SequenceMatcher(None, lines[0], other, autojunk=False).get_matching_blocks()
        positions.append({each.a + step: each.b + step for each in matching for step in range(each.size)})
    anchors = [at for at in anchors if all(at in each for each in positions)]
    found: list[list[Atoms]] = []
    before = [0] * len(samples)
    for at in [*anchors, None]:
        here = [len(each) if at is None else known[at] for each, known in zip(lines, positions, strict=True)]
        between = [
            tuple(atom for line in each[start:end] for atom in line)
            for each, start, end in zip(lines, before, here, strict=True)
        ]
        found += [between] if any(between) else []
        found += [[lines[0][at]] * len(samples)] if at is not None else []
        before = [each + 1 for each in here]
    return found


def _lines(sample: Atoms) -> list[Atoms]:
    found: list[list[str | Expr]] = [[]]
    for atom in sample:
        found[-1].append(atom)
        if atom == "\n":
            found.append([])
    return [tuple(each) for each in found if each]


CHECKSUM: Final = "checksum/"
"""The beginning of annotations that roll pods when a configuration changes; the expression for one that differs."""
_KEYS: Final = ("name", "host", "containerPort", "port", "path", "key")
"""Fields by which an item of a list is the same in two renderings."""


def identity(item: Any) -> str:
    if isinstance(item, dict):
        for key in _KEYS:
            value = item.get(key)
            if isinstance(value, (str, int)):
                return f"{key} {value}"
            if isinstance(value, (Expr, Joined)):
                return f"{key} {code_of(value)}"
        return " ".join(map(str, sorted(map(str, item))))
    return code_of(item) if isinstance(item, (str, int, float, Expr, Joined)) else repr(item)


def in_order(lists: Sequence[list[Any]]) -> list[Any]:
    """All members of the lists, each after those that are before it."""
    found: list[Any] = []
    for each in lists:
        at = 0
        for member in each:
            if member in found:
                at = found.index(member) + 1
            else:
                found.insert(at, member)
                at += 1
    return found


def code_of(value: Any) -> str:
    """A value as an expression."""
    if isinstance(value, Expr):
        return value.code if value.code.replace(".", "").isidentifier() else f"({value.code})"
    if isinstance(value, Joined):
        return f"({' ~ '.join(map(code_of, value.parts))})"
    return literal(value) if isinstance(value, str) else orjson.dumps(value).decode()


def has_expressions(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(key, Spread) or has_expressions(each) for key, each in value.items())
    return any(map(has_expressions, value)) if isinstance(value, list) else isinstance(value, (Expr, Joined))


def reads_name(value: Any, name: str) -> bool:
    """Whether a template reads a name."""
    match value:
        case Expr(code):
            return name in code.replace("[", ".").replace("(", " ").replace(".", " ").split()
        case Joined(parts):
            return any(reads_name(each, name) for each in parts)
        case Guarded(code, inner) | Repeated(_, code, inner):
            return reads_name(Expr(code), name) or reads_name(inner, name)
        case dict():
            return any(reads_name(each, name) for pair in value.items() for each in pair)
        case list():
            return any(reads_name(each, name) for each in value)
        case Spread(code):
            return reads_name(Expr(code), name)
    return False


def with_checksums(template: Any, reads: Sequence[str]) -> Any:
    """The template with a hash of the children in place of each checksum that differs."""
    if isinstance(template, Expr) and template.code == CHECKSUM:
        return Expr(f"[{', '.join(reads)}] | sha256") if reads else None
    if isinstance(template, dict):
        return {key: with_checksums(each, reads) for key, each in template.items()}
    if isinstance(template, list):
        return [with_checksums(each, reads) for each in template]
    if isinstance(template, Guarded):
        return Guarded(template.condition, with_checksums(template.value, reads))
    return template
