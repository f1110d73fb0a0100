"""The functions of templates: what each gives, and where its result comes from.

The environment of templates has Jinja's functions, a project those of its files, and the scope of a custom resource the
others, because their results depend on the cluster, a seed or the clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Function(NamedTuple):
    """`gives` is in words of `declared_kinds`. A costly function is computed by this `package` of Python: until the
    object is created, it returns a placeholder."""

    gives: str
    of: Literal["jinja", "project", "block", "scope"] = "scope"
    changes: Literal["", "with time", "on every call"] = ""
    is_secret: bool = False
    package: str = ""
    fields: tuple[str, ...] = ()  # of a mapping of strings


FUNCTIONS: Final[Mapping[str, Function]] = {
    "range": Function("list of integer", "jinja"),
    "dict": Function("mapping", "jinja"),
    "namespace": Function("other", "jinja"),
    "cycler": Function("other", "jinja"),
    "joiner": Function("other", "jinja"),
    "file": Function("string", "project"),
    "render": Function("string", "project"),
    "super": Function("string", "block"),
    "caller": Function("string", "block"),
    "has_kind": Function("boolean"),
    "duration": Function("number"),
    "after": Function("boolean", changes="with time"),
    "within": Function("boolean", changes="with time"),
    "now": Function("string", changes="on every call"),
    "random_password": Function("string", changes="on every call", is_secret=True),
    "htpasswd": Function("string", changes="on every call", is_secret=True, package="bcrypt"),
    **dict.fromkeys(
        ("genCA", "genSignedCert", "genSelfSignedCert"),
        Function("mapping", changes="on every call", is_secret=True, package="cryptography", fields=("Cert", "Key")),
    ),
}

FUNCTION_NAMES: Final = frozenset(name for name, each in FUNCTIONS.items() if each.of != "block")
SCOPE_FUNCTIONS: Final = frozenset(name for name, each in FUNCTIONS.items() if each.of == "scope")
TIME_FUNCTIONS: Final = frozenset(name for name, each in FUNCTIONS.items() if each.changes == "with time")
"""A plan that has called one of them is made again when its result changes."""
NONDETERMINISTIC: Final = frozenset(name for name, each in FUNCTIONS.items() if each.changes == "on every call")
"""Allowed only in children that are created once and never updated."""
SECRET_FUNCTIONS: Final = frozenset(name for name, each in FUNCTIONS.items() if each.is_secret)
"""Functions whose results are secret wherever they are used."""
