"""Which known name someone meant. Every refusal of an unknown name ends in "did you mean ...?", and a bad guess is worse than none.

The distance is Damerau-Levenshtein restricted to neighbours (optimal string alignment): a missing, an extra or a wrong letter, or two
swapped ones, cost one each. Case and the separators - and _ cost nothing, because `matchlabels`, `match_labels` and `matchLabels` are
one thought.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` is most probably a slip of, or None if none is near enough. Ties go to the first in alphabetical order.

    Near enough is one slip per three letters, and at least one, so `imag` is `image` but `cpu` is not `ip`. Beyond that, a name that
    was cut short or written longer (`env` for `envVars`, `portNumber` for `port`) counts if three letters or more agree from the start
    and nothing else begins so.
    """
    folded = _fold(name)
    if not folded:
        return None
    known = sorted({candidate for candidate in candidates if candidate and candidate != name})
    near = [(distance(folded, _fold(candidate)), candidate) for candidate in known if _could_be_near(folded, _fold(candidate))]
    near = [(slips, candidate) for slips, candidate in near if slips <= _slips_allowed(folded, _fold(candidate))]
    if near:
        return min(near)[1]
    begun = [candidate for candidate in known if _one_begins_the_other(folded, _fold(candidate))]
    return begun[0] if len(begun) == 1 else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The end of a message about an unknown name: " (did you mean x?)", or nothing."""
    found = nearest(name, candidates)
    return f" (did you mean {found}?)" if found else ""


def distance(a: str, b: str) -> int:
    """How many slips of the pen lie between two words."""
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, left in enumerate(a, start=1):
        row = [i]
        for j, right in enumerate(b, start=1):
            slips = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                slips = min(slips, before[j - 2] + 1)
            row.append(slips)
        before, above = above, row
    return above[-1]


def _fold(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def _slips_allowed(a: str, b: str) -> int:
    # A two-letter word is no evidence for another one: ip, id and cr are one slip apart.
    shorter = min(len(a), len(b))
    return 0 if shorter < 3 else max(1, shorter // 3)


def _could_be_near(a: str, b: str) -> bool:
    return abs(len(a) - len(b)) <= _slips_allowed(a, b)


def _one_begins_the_other(a: str, b: str) -> bool:
    shorter, longer = sorted((a, b), key=len)
    return len(shorter) >= 3 and longer.startswith(shorter)
