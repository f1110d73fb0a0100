"""The known name that a misspelled one probably stands for. Messages about unknown names end in "(did you mean ...?)".

A wrong suggestion is worse than none. The names may come from a custom resource, so their number and length, and the
time to compare them, are bounded.

The distance is Damerau-Levenshtein restricted to neighbours (optimal string alignment): a missing, an extra or a wrong
letter, or two swapped ones, cost one each. Case and the separators - and _ cost nothing: `matchlabels`, `match_labels`
and `matchLabels` are the same name.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_NAME: Final = 63
"""Characters of a name that is compared. Fields, labels and names of objects are not longer."""

MAX_CANDIDATES: Final = 1000
MAX_COMPARISONS: Final = 20_000
"""Comparisons of two characters, at about 0.2 microseconds each."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` is most probably a misspelling of; None if none is near enough. Ties go to the first in
    alphabetical order.

    Near enough is one edit per three letters, and at least one, so `imag` is `image` but `cpu` is not `ip`. Beyond
    that, a shortened or extended name (`env` for `envVars`, `portNumber` for `port`) matches if at least three letters
    agree from the start and no other candidate starts with them, and another ending (`validations` for `validate`) if
    at least six do.
    """
    folded = _fold(name[: MAX_NAME + 1])
    if not folded or len(name) > MAX_NAME:
        return None
    first = islice(candidates, MAX_CANDIDATES)
    names = sorted({candidate for candidate in first if 0 < len(candidate) <= MAX_NAME and candidate != name})
    near, left = [], MAX_COMPARISONS
    for candidate in names:
        other = _fold(candidate)
        if not _has_similar_length(folded, other) or not _has_similar_letters(folded, other):
            continue
        left -= len(folded) * len(other)
        if left >= 0:
            near.append((distance(folded, other), candidate))
    near = [(edits, candidate) for edits, candidate in near if edits <= _allowed_edits(folded, _fold(candidate))]
    if near:
        return min(near)[1]
    for is_similar in (_is_prefix_of_other, _has_another_ending):
        with_same_start = [candidate for candidate in names if is_similar(folded, _fold(candidate))]
        if with_same_start:
            return with_same_start[0] if len(with_same_start) == 1 else None
    return None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The end of a message about an unknown name: " (did you mean x?)", or nothing."""
    found = nearest(name, candidates)
    return f" (did you mean {found}?)" if found else ""


def did_you_mean_quoted(name: str, candidates: Iterable[str]) -> str:
    """The same with the name in quotes, as messages about rules have names."""
    found = nearest(name, candidates)
    return f' (did you mean "{found}"?)' if found else ""


def distance(a: str, b: str) -> int:
    """The number of edits between two words."""
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, char_a in enumerate(a, start=1):
        row = [i]
        for j, char_b in enumerate(b, start=1):
            edits = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (char_a != char_b))
            if i > 1 and j > 1 and char_a == b[j - 2] and a[i - 2] == char_b:
                edits = min(edits, before[j - 2] + 1)
            row.append(edits)
        before, above = above, row
    return above[-1]


def _fold(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _allowed_edits(a: str, b: str) -> int:
    # Two-letter words are too short to compare: ip, id and cr are one edit apart.
    shorter = min(len(a), len(b))
    return 0 if shorter < 3 else max(1, shorter // 3)


def _has_similar_length(a: str, b: str) -> bool:
    return abs(len(a) - len(b)) <= _allowed_edits(a, b)


def _has_similar_letters(a: str, b: str) -> bool:
    """Whether the number of edits may be small enough: each replaces at most one letter by another."""
    return len(set(a) ^ set(b)) <= 2 * _allowed_edits(a, b)


def _is_prefix_of_other(a: str, b: str) -> bool:
    shorter, longer = sorted((a, b), key=len)
    return len(shorter) >= 3 and longer.startswith(shorter)


def _has_another_ending(a: str, b: str) -> bool:
    start = max(6, min(len(a), len(b)) - 2)
    return a[:start] == b[:start]
