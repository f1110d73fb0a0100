"""YAML for people to edit, with templates in it: blocks, one item a line, comments.

The data is plain JSON, in which `Expr` and `Joined` stand for what a template computes, and `Noted` puts a comment
above a key or an item. Literal text that Jinja would read as a tag is written so that it renders as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.language.templates import yaml_text
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


# -- trees -------------------------------------------------------------------------------------------------------------
#
# Paths in plain data: names of fields and indexes of items.


TreePath: TypeAlias = tuple[str | int, ...]


def walk(value: Any, path: TreePath = ()) -> Iterator[tuple[TreePath, Any]]:
    """Every value in the data with its path, parents first."""
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from walk(member, (*path, key))


def value_at(tree: Any, path: TreePath) -> Any:
    """The value at a path; None if there is none."""
    for part in path:
        if isinstance(tree, dict) if isinstance(part, str) else isinstance(tree, list) and part < len(tree):
            tree = tree.get(part) if isinstance(tree, dict) else tree[part]
        else:
            return None
    return tree


def items_at(tree: Any, path: TreePath) -> list[Any]:
    """The list at a path; empty if there is none."""
    found = value_at(tree, path)
    return found if isinstance(found, list) else []


def replaced(tree: Any, changes: dict[TreePath, Any], path: TreePath = ()) -> Any:
    """A copy of the data with other values at some paths. What is below a changed path is not read."""
    if path in changes:
        return changes[path]
    if isinstance(tree, dict):
        return {key: replaced(member, changes, (*path, key)) for key, member in tree.items()}
    if isinstance(tree, list):
        return [replaced(member, changes, (*path, index)) for index, member in enumerate(tree)]
    return tree


def without(tree: Any, path: TreePath) -> Any:
    """A copy of the data without the field or item at a path."""
    first, *rest = path
    if isinstance(tree, dict):
        if not rest:
            return {key: member for key, member in tree.items() if key != first}
        return {key: without(member, tuple(rest)) if key == first else member for key, member in tree.items()}
    if not rest:
        return [member for index, member in enumerate(tree) if index != first]
    return [without(member, tuple(rest)) if index == first else member for index, member in enumerate(tree)]


# -- yaml layout -------------------------------------------------------------------------------------------------------


_TAG: Final = re.compile(r"\{[{%#]")
_CHOICE: Final = re.compile(r"\b(if|or|and|not)\b")
_UNSAFE_IN_BLOCK: Final = re.compile("[^\\S\n ]|[\ufeff]")
_NOT_IN_FLOW: Final = re.compile(r"[,:?\[\]{}\n]")
_INDENT: Final = 2
_SHORT: Final = 60


@dataclass(frozen=True, slots=True)
class WrittenExpr:
    """The value of an expression, with its type."""

    code: str


@dataclass(frozen=True, slots=True)
class WrittenText:
    """Text with values of expressions in it. Of a single expression: its value as text, whatever its type."""

    parts: tuple[str | WrittenExpr, ...]


@dataclass(frozen=True, slots=True)
class Noted:
    """A value with a comment above its key, or above it as an item of a list."""

    comment: str
    value: Any


def template_text(value: Any) -> str:
    """A file of templates/."""
    return _document(value, is_template=True)


def rules_text(value: Any) -> str:
    """watches.yaml, or another file that is plain YAML: an expression in it is a quoted string."""
    return _document(value, is_template=False)


def _document(value: Any, *, is_template: bool) -> str:
    """`is_template`: Jinja reads the text before the YAML parser does."""
    return "".join(f"{line}\n" for line in _lines(value, is_template))


def _lines(value: Any, is_template: bool) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, member in value.items():
            yield from _entry(f"{_scalar(key, is_template)}:", member, is_template)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _item(item, is_template)
    else:
        yield _flow(value, is_template)


def _entry(key: str, value: Any, is_template: bool) -> Iterator[str]:
    if isinstance(value, Noted):
        yield from _comment(value)
        value = value.value
    if isinstance(value, (Mapping, list)) and value and not _is_short(value, is_template):
        yield key
        yield from (f"{'':{_INDENT}}{line}" if line else "" for line in _lines(value, is_template))
    elif (block := _block(value, is_template)) is not None:
        header, lines = block
        yield f"{key} {header}"
        yield from (f"{'':{_INDENT}}{line}" if line else "" for line in lines)
    else:
        yield f"{key} {_flow(value, is_template)}"


def _comment(value: Noted) -> Iterator[str]:
    return (f"# {line}".rstrip() for line in value.comment.split("\n"))


def _item(value: Any, is_template: bool) -> Iterator[str]:
    if isinstance(value, Noted):
        yield from _comment(value)
        value = value.value
    if isinstance(value, Mapping) and value and not isinstance(next(iter(value.values())), Noted):
        lines = list(_lines(value, is_template))
    elif isinstance(value, (Mapping, list)) and value:
        yield "-"
        yield from (f"{'':{_INDENT}}{line}" if line else "" for line in _lines(value, is_template))
        return
    elif (block := _block(value, is_template)) is not None:
        lines = [block[0], *block[1]]
    else:
        lines = [_flow(value, is_template)]
    yield f"- {lines[0]}"
    yield from (f"{'':{_INDENT}}{line}" if line else "" for line in lines[1:])


def _flow(value: Any, is_template: bool) -> str:
    if isinstance(value, Mapping):
        return "{}"
    return (
        f"[{', '.join(_scalar(each, is_template) for each in value)}]"
        if isinstance(value, list)
        else _scalar(value, is_template)
    )


def _is_short(value: Any, is_template: bool) -> bool:
    """Whether a list reads well in one line: a few plain words or numbers."""
    if not isinstance(value, list) or not all(isinstance(each, (str, int, float)) for each in value):
        return False
    items = [_scalar(each, is_template) for each in value]
    return len(", ".join(items)) <= _SHORT and not any(_NOT_IN_FLOW.search(item) for item in items)


def _scalar(value: Any, is_template: bool) -> str:
    if isinstance(value, WrittenExpr):
        return f"{{{{ {value.code} }}}}" if is_template else _quoted(f"{{{{ {value.code} }}}}")
    if isinstance(value, WrittenText):
        return _joined(value, is_template)
    if isinstance(value, str) and is_template and _TAG.search(value):
        return f"{{{{ {_literal(value)} }}}}"
    return yaml_text(value)


def _quoted(text: str) -> str:
    if '"' in text or "\\" in text:
        doubled = text.replace("'", "''")
        return f"'{doubled}'"
    return f'"{text}"'


def _joined(value: WrittenText, is_template: bool) -> str:
    match value.parts:
        case [WrittenExpr(code)] if '"' not in code:
            return _quoted(f"{{{{ {code} }}}}")
    if not is_template:
        return _quoted("".join(map(_part, value.parts)))
    literals = [part for part in value.parts if isinstance(part, str)]
    if not _is_template_text(value) or not all(part.isprintable() for part in literals):
        return f"{{{{ {' ~ '.join(map(_code, value.parts)) or _literal('')} }}}}"
    # A letter takes the place of each expression to see whether the text around them needs quotes.
    outline = "".join("x" if isinstance(part, WrittenExpr) else part for part in value.parts)
    if yaml_text(outline) == outline:
        return "".join(map(_part, value.parts))
    doubled = "".join(_part(part if isinstance(part, WrittenExpr) else part.replace("'", "''")) for part in value.parts)
    return f"'{doubled}'"


def _escaped_tag(found: re.Match[str]) -> str:
    return f"{{{{ '{found.group()}' }}}}"


def _part(part: str | WrittenExpr) -> str:
    return f"{{{{ {part.code} }}}}" if isinstance(part, WrittenExpr) else part


def _code(part: str | WrittenExpr) -> str:
    if isinstance(part, str):
        return _literal(part)
    return f"({part.code})" if _CHOICE.search(part.code) else part.code


def _is_template_text(value: WrittenText) -> bool:
    """Whether the text around the expressions is only text to Jinja."""
    outline = "".join("{{" if isinstance(part, WrittenExpr) else part for part in value.parts)
    return (
        len(_TAG.findall(outline)) == sum(isinstance(part, WrittenExpr) for part in value.parts)
        and "{{{" not in outline
    )


def _literal(text: str) -> str:
    """A string of Jinja."""
    return "'" + text.encode("unicode_escape").decode("ascii").replace("'", "\\'") + "'"


def _block(value: Any, is_template: bool) -> tuple[str, list[str]] | None:
    """The header and the lines of a block scalar, for text of several lines; None where a block would not be exact."""
    if isinstance(value, str):
        text, raw = value, is_template and _TAG.search(value) is not None
    elif isinstance(value, WrittenText) and is_template:
        text, raw = (
            "".join(_TAG.sub(_escaped_tag, part) if isinstance(part, str) else _part(part) for part in value.parts),
            False,
        )
        if "{{{" in text:
            return None
    else:
        return None
    lines = text.removesuffix("\n").split("\n")
    exact = len(lines) > 1 and lines[-1] and all(not line or line.strip(" ") for line in lines)
    if (
        not exact
        or not lines[0]
        or lines[0][0] == " "
        or _UNSAFE_IN_BLOCK.search(text)
        or not text.replace("\n", "").isprintable()
    ):
        return None
    if raw:
        if re.search(r"\{%[-+]?\s*endraw", text):
            return None
        lines = ["{% raw %}", *lines, "{% endraw %}"]
    return ("|" if text.endswith("\n") else "|-"), lines
