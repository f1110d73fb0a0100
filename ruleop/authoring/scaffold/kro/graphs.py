"""A ResourceGraphDefinition as its author wrote it, with the place of each part.

The expressions in a text, `${...}`, are found as kro finds them (pkg/graph/parser/cel.go): braces are counted, except
within double quotes. What has no closing brace is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ruleop.authoring.scaffold.from_sample import check_kind
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules import Findings
from ruleop.language.rules.keys.schema_keys import FieldReader
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.authoring.offline import Document
    from ruleop.kubernetes.schema import FieldPath, Schema
    from ruleop.language.templates import YamlNode

_START: Final = "${"


@dataclass(frozen=True, slots=True)
class Cel:
    """The text of an expression, without `${` and `}`."""

    text: str


def parts(text: str) -> list[str | Cel]:
    """The text and the expressions of it, in order. A text without expressions is one part."""
    found: list[str | Cel] = []
    plain, position = 0, 0
    while (start := text.find(_START, position)) >= 0:
        end = _end(text, start + len(_START))
        if end is None:
            position = start + 1
            continue
        if start > plain:
            found.append(text[plain:start])
        found.append(Cel(text[start + len(_START) : end]))
        plain = position = end + 1
    if plain < len(text) or not found:
        found.append(text[plain:])
    return found


def only_expression(text: str) -> Cel | None:
    """The expression that is the whole text, if it is one."""
    found = parts(text)
    return found[0] if len(found) == 1 and isinstance(found[0], Cel) else None


def _end(text: str, position: int) -> int | None:
    """Where the closing brace is."""
    depth, is_quoted = 1, False
    while position < len(text):
        character = text[position]
        if is_quoted and character == "\\":
            position += 1
        elif character == '"':
            is_quoted = not is_quoted
        elif not is_quoted and character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return position
        position += 1
    return None


DEFINITION: Final = "ResourceGraphDefinition"
GROUP: Final = "kro.run"
_BARE_DEFAULT: Final = re.compile(r"([^|]*\|(?:[^=]*\s)?default=)([^\s\"'\[{=][^\"=\\]*\s[^\"=\\]*\S)")
"""A default of several words without quotes, as older examples of kro have it."""
_RESOURCE_KEYS: Final = frozenset({"id", "template", "externalRef", "readyWhen", "includeWhen", "forEach"})


@dataclass(frozen=True, slots=True)
class KroResource:
    """One of the resources. `template` or `external` is None."""

    id: str
    path: FieldPath
    template: Mapping[str, Any] | None
    external: Mapping[str, Any] | None
    ready_when: tuple[str, ...]
    include_when: tuple[str, ...]
    for_each: tuple[tuple[str, str], ...]  # the names of the iterators, and their lists
    unknown: tuple[str, ...]  # keys of later versions of kro


@dataclass(frozen=True, slots=True)
class KroGraph:
    document: Document
    kind: Kind
    schema: Mapping[str, Any]  # spec.schema
    spec: Schema  # its spec as JSON Schema
    resources: tuple[KroResource, ...]
    repaired: tuple[FieldPath, ...]  # fields of the schema whose default had to be put in quotes

    def place(self, path: FieldPath) -> str:
        """The file and line of a part."""
        site = self.document.site(path)
        return f"{site.path}:{site.line}"


def read_graph(document: Document) -> KroGraph:
    """Raises ScaffoldError where kro would refuse the form of the definition."""
    spec = _mapping(document, document.data.get("spec"), ("spec",))
    schema = _mapping(document, spec.get("schema"), ("spec", "schema"))
    columns = _list(document, schema.get("additionalPrinterColumns"), ("spec", "schema", "additionalPrinterColumns"))
    for index, column in enumerate(columns):
        _mapping(document, column, ("spec", "schema", "additionalPrinterColumns", index))
    for key in ("types", "status"):
        _mapping(document, schema.get(key) or {}, ("spec", "schema", key))
    names = {"group": schema.get("group") or GROUP, **{key: schema.get(key) for key in ("apiVersion", "kind")}}
    for key, name in names.items():
        if not isinstance(name, str):
            _refuse(document, ("spec", "schema", key), f"{key} is missing or not a string")
    kind = Kind(*map(str, names.values()))
    try:
        check_kind(kind)
    except ScaffoldError as error:
        _refuse(document, ("spec", "schema"), str(error))
    resources = _list(document, spec.get("resources"), ("spec", "resources"))
    found = [_resource(document, each, ("spec", "resources", index)) for index, each in enumerate(resources)]
    seen: set[str] = set()
    for each in found:
        if each.id in seen:
            _refuse(document, each.path, f"the id {each.id!r} is used twice")
        seen.add(each.id)
    words, repaired = _repaired(document.node, ("spec", "schema"))
    read = words.data() if words is not None else {}
    assert isinstance(read, dict)
    return KroGraph(document, kind, read, _spec_schema(words), tuple(found), tuple(repaired))


def _resource(document: Document, value: Any, path: FieldPath) -> KroResource:
    written = _mapping(document, value, path)
    if not isinstance(written.get("id"), str) or not written["id"].isidentifier():
        _refuse(document, (*path, "id"), "id is missing or not an identifier")
    given = [key for key in ("template", "externalRef") if written.get(key) is not None]
    if len(given) != 1:
        _refuse(document, path, f"{written['id']} needs either a template or an externalRef")
    body = _mapping(document, written[given[0]], (*path, given[0]))
    for key in ("apiVersion", "kind"):
        if not isinstance(body.get(key), str) or not body[key]:
            _refuse(document, (*path, given[0]), f"{key} is missing or not a string")
    return KroResource(
        id=written["id"],
        path=path,
        template=body if given == ["template"] else None,
        external=body if given == ["externalRef"] else None,
        ready_when=_texts(document, written.get("readyWhen"), (*path, "readyWhen")),
        include_when=_texts(document, written.get("includeWhen"), (*path, "includeWhen")),
        for_each=_iterators(document, written.get("forEach"), (*path, "forEach")),
        unknown=tuple(str(key) for key in written if key not in _RESOURCE_KEYS),
    )


def _iterators(document: Document, value: Any, path: FieldPath) -> tuple[tuple[str, str], ...]:
    found = []
    for index, each in enumerate(_list(document, value, path)):
        entry = _mapping(document, each, (*path, index))
        for name, source in entry.items():
            if len(entry) > 1 or not name.isidentifier() or not isinstance(source, str):
                _refuse(document, (*path, index), "an entry of forEach is one name with an expression")
            found.append((name, source))
    return tuple(found)


def _texts(document: Document, value: Any, path: FieldPath) -> tuple[str, ...]:
    found = _list(document, value, path)
    for index, each in enumerate(found):
        if not isinstance(each, str):
            _refuse(document, (*path, index), "not an expression in ${}")
    return tuple(found)


def _repaired(node: YamlNode | None, path: FieldPath) -> tuple[YamlNode | None, list[FieldPath]]:
    """The schema, in which each default that is several words is in quotes, and the paths of these fields."""
    if node is not None:
        node = node.member(*map(str, path))
    found: list[FieldPath] = []

    def visit(node: YamlNode, path: FieldPath) -> YamlNode:
        if isinstance(node.value, dict):
            return replace(node, value={key: visit(each, (*path, key)) for key, each in node.value.items()})
        matched = _BARE_DEFAULT.fullmatch(node.value) if isinstance(node.value, str) else None
        if matched is None:
            return node
        found.append(path)
        return replace(node, value=f'{matched[1]}"{matched[2]}"')

    return visit(node, path) if node is not None else None, found


def _spec_schema(schema_node: YamlNode | None) -> Schema:
    """The schema of the spec, by the reader of `schema` in watches.yaml, whose words are kro's."""
    types, spec = (schema_node and schema_node.member(each) for each in ("types", "spec"))
    findings = Findings({})
    named = types.value if types is not None and isinstance(types.value, dict) else {}
    reader = FieldReader(named, findings)
    reader.read_types()
    found = reader.mapping(spec, ("spec",)) if spec is not None else {"type": "object"}
    for each in findings.sorted():
        raise ScaffoldError(f"{each.site.path}:{each.site.line}: {each.message}")
    return found


def _mapping(document: Document, value: Any, path: FieldPath) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(document, path, f"{path[-1]} is not a mapping")
    return value


def _list(document: Document, value: Any, path: FieldPath) -> Sequence[Any]:
    if value is not None and not isinstance(value, list):
        _refuse(document, path, f"{path[-1]} is not a list")
    return value or ()


def _refuse(document: Document, path: FieldPath, message: str) -> NoReturn:
    site = document.site(path)
    raise ScaffoldError(f"{site.path}:{site.line}: {message}")
