"""Names in a new project: of kinds, ids, fields and files, made from names that exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ruleop.errors import RuleopError
from ruleop.language.rules.scopes import RESERVED
from ruleop.language.templates import JINJA_NAMES

if TYPE_CHECKING:
    from collections.abc import Collection


# -- unusable input ----------------------------------------------------------------------------------------------------
#
# The error of inputs that cannot become a project.


class ScaffoldError(RuleopError):
    """The input cannot become a project. The message names what to change."""


# -- naming ------------------------------------------------------------------------------------------------------------


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_UPPER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+", re.ASCII)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TAKEN: Final = RESERVED | JINJA_NAMES


def words(text: str) -> list[str]:
    """The words of a name, in lower case: of `blog-db`, `blogDb`, `BlogDB` and `BLOG_DB`."""
    return [word.lower() for word in _WORD.findall(text)]


def camel(*names: str) -> str:
    """The words as the name of a field or an id: `blogDb`. It starts with a letter."""
    first, *rest = [word for name in names for word in words(name)] or ["value"]
    joined = first + "".join(word.capitalize() for word in rest)
    return joined if joined[0].isalpha() else f"x{joined}"


def pascal(name: str) -> str:
    """The words as a kind: `BlogDb`."""
    joined = "".join(word.capitalize() for word in words(name))
    return joined if joined[:1].isalpha() else f"X{joined}"


def singular(name: str) -> str:
    """The name of one of several: `host` of `hosts`, `policy` of `policies`."""
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    return name if name.endswith("ss") else name.removesuffix("s")


def kebab(name: str) -> str:
    """The name in lower case, as that of a file or an object: `blog-db` of `blogDb` and of `Blog DB`."""
    dashed = _UPPER.sub("-", name).lower()
    return _OTHER.sub("-", dashed).strip("-") or "app"


def free(name: str, taken: Collection[str]) -> str:
    """The name, or the first one with a number behind it that is not taken."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1
    return candidate


def free_id(name: str, taken: Collection[str]) -> str:
    """An id that no other id has, and that is not reserved in expressions."""
    return free(name, {*taken, *_TAKEN})


def expression(*fields: str) -> str:
    """An expression that reads a field: `spec.db.image`, `spec['my-field']`."""
    return fields[0] + "".join(f".{name}" if _IDENTIFIER.fullmatch(name) else f"[{name!r}]" for name in fields[1:])
