"""A reference of the kinds of a project in Markdown, for the people who write custom resources.

Text of a project is text in it: nothing is read as HTML, a link or the end of a cell.

The fields of a schema are rows of a table: path, type, default, constraints, description.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.authoring.checking.refused_objects import read_examples
from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.graph import kinds_of, written_names
from ruleop.authoring.scaffold import instance, rules_text
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules import Findings, ItemEnd, Once, Patched, Scheduled
from ruleop.language.rules.keys.simple_schema import IMMUTABLE_RULE
from ruleop.language.templates import syntax
from ruleop.language.templates.resource_reader import read_resources
from ruleop.planning.model.marks import SKIP_FINALIZE, SWITCHES
from ruleop.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.kubernetes.crd import CrdVersion, CustomResourceDefinition
    from ruleop.kubernetes.kinds import JSON, GroupKind, Object
    from ruleop.kubernetes.schema import Schema
    from ruleop.language.rules import Child, Condition
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.templates import Expression


_MARKUP: Final = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ACTIVE: Final = re.compile(r"[\\`*_\[\]|~&<>:@]")  # also what begins or ends an address


def prose(text: str) -> str:
    """Plain text as one line."""
    line = escape(_MARKUP.sub(r"\\\g<0>", printable(" ".join(text.split()))), quote=False)
    return re.sub(r"^([-+#>]|\d+[.)])", r"\\\1", line)


def code(text: str) -> str:
    """A span of code as one line, also in a cell of a table, where a backtick span cannot have a `|`."""
    line = printable(" ".join(text.split()))
    if "|" in line:
        return f"<code>{_ACTIVE.sub(lambda found: f'&#{ord(found[0])};', line)}</code>"
    fence = _fence(line, 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def block(text: str, language: str) -> str:
    fence = _fence(text, 3)
    return f"{fence}{language}\n{text}{fence}\n"


def _fence(text: str, least: int) -> str:
    return "`" * max([least, *(len(found) + 1 for found in re.findall("`+", text))])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Without the columns that are empty; "" without rows. Cells are Markdown already."""
    every = [*rows]
    kept = [number for number, _ in enumerate(header) if any(row[number] for row in every)]
    lines = [header, ["---"] * len(header), *every] if every else []
    return "".join(f"| {' | '.join(line[number] for number in kept)} |\n" for line in lines)


HEADER: Final = ("field", "type", "default", "constraints", "description")
_MAX_FIELDS: Final = 60  # below one field: a type of the API, such as a whole Pod, would hide the others
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_BOUNDS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "length at least",
    "maxLength": "length at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "minProperties": "entries at least",
    "maxProperties": "entries at most",
}


class Row(NamedTuple):
    field: str
    type: str
    default: str
    constraints: str
    description: str


def rows(schema: Schema, path: str, *, required: bool = False) -> list[Row]:
    """The field and all below. Of items and of a whole section, only what adds to it."""
    inner = [row for name, below, needed in _below(schema, path) for row in rows(below, name, required=needed)]
    constraints = [*(["required"] if required else ()), *_constraints(schema)]
    if len(inner) > _MAX_FIELDS and "." in path:
        constraints.append(f"{len(inner)} fields")
        inner = []
    default = code(json.dumps(schema["default"], ensure_ascii=False)) if "default" in schema else ""
    described = prose(str(schema.get("description") or ""))
    is_bare = not (default or constraints or described) and ("." not in path or path.endswith(("[]", ".*")))
    own = [] if is_bare else [Row(code(path), code(type_of(schema)), default, "; ".join(constraints), described)]
    return [*own, *inner]


def type_of(schema: Schema) -> str:
    """In the words of SimpleSchema."""
    values, items = schema.get("additionalProperties"), schema.get("items")
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("type") == "array":
        return f"[]{type_of(items if isinstance(items, dict) else {})}"
    if isinstance(values, dict):
        return f"map[string]{type_of(values)}"
    of_type = str(schema.get("type") or ("object" if "properties" in schema else "any"))
    return f"{of_type} ({schema['format']})" if schema.get("format") and of_type == "string" else of_type


def cel_messages(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations") or ():
        if " ".join(rule["rule"].split()) == IMMUTABLE_RULE:
            yield "immutable"
        else:
            yield prose(rule["message"]) if rule.get("message") else code(rule["rule"])


def _below(schema: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    needed = schema.get("required") or ()
    for name, below in (schema.get("properties") or {}).items():
        yield f"{path}.{name}", below, name in needed
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(item := schema.get(key), dict):
            yield f"{path}{suffix}", item, False


def _constraints(schema: Schema) -> Iterator[str]:
    if values := schema.get("enum"):
        yield f"one of {', '.join(code(_plain(value)) for value in values)}"
    if pattern := schema.get("pattern"):
        yield f"matches {code(pattern)}"
    for key, words in _BOUNDS.items():
        if (bound := schema.get(key)) is not None and not isinstance(bound, bool):
            exclusive = schema.get(f"exclusive{key.capitalize()}") is True
            yield f"{_BOUNDS[f'exclusive{key.capitalize()}'] if exclusive else words} {_plain(bound)}"
    if schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set":
        yield "no item twice"
    if keys := schema.get("x-kubernetes-list-map-keys"):
        yield f"each item has another {', '.join(map(code, keys))}"
    if schema.get("nullable"):
        yield "may be null"
    if schema.get(_OPEN):
        yield "any fields"
    yield from cel_messages(schema)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


PAGE_MARK: Final = f"<!--{MARK.removeprefix('#')} docs"
REASONS: Final = {
    "Ready": "All objects exist as described, and are ready.",
    "Progressing": "All objects are written; some are not ready yet.",
    "Waiting": "An object waits for another, or for a value. The message names it.",
    "Invalid": "The resource breaks a rule of its kind. Nothing was changed.",
    "RenderFailed": "An object cannot be made of this resource.",
    "TooManyObjects": "A selector matches more objects than fields can be set of.",
    "ApplyFailed": "The API server rejected an object.",
    "StatusRefused": "The API server rejected the status.",
    "Forbidden": "The operator lacks a permission, or a policy or quota rejected an object.",
    "ErrResourceExists": "The name of an object is used by another one, which is left alone.",
    "ChildFailed": "An object has failed, by its own status.",
    "OnceFailed": "Work that is done once for each request has failed.",
    "FieldConflict": "Fields of an object are repeatedly changed by somebody else, or held.",
    "Paused": "The resource was paused before it was ever reconciled.",
    "Deleting": "The resource is being deleted.",
    "Finalizing": "The work before the deletion is being done.",
    "Finalized": "That work is done.",
}
"""The reasons of the condition Ready."""
_STANDARD: Final = (
    ("Ready", "The objects exist as described, and are ready."),
    ("Reconciling", "The operator is working, or waits."),
    ("Stalled", "An error needs a person. The message of Ready has it."),
    ("Paused", "The annotation stops all changes."),
)
_LET: Final = re.compile(r"\{\{ (\w+) \}\}")


def kind_docs(loaded: Loaded, crds: Sequence[Object]) -> str:
    kinds: dict[GroupKind, list[Watch]] = {}
    for watch in loaded.watches:
        kinds.setdefault(watch.rule.kind.versionless, []).append(watch)
    known = {(crd.group, crd.kind): crd for crd in map(parse_crd, crds)}
    pages = [_Page(loaded, watches, known.get((kind.group, kind.kind))).text() for kind, watches in kinds.items()]
    names = "".join(f"- [{kind.kind}](#{kind.kind.lower()})\n" for kind in kinds) if len(kinds) > 1 else ""
    head = f"{PAGE_MARK}` from the rules: change them there. -->\n\n# Custom resources\n"
    return "\n".join(filter(None, [head, names, *pages, _of_all()]))


def _of_all() -> str:
    reasons = ((code(reason), meaning) for reason, meaning in REASONS.items())
    switches = ((code(name), meaning) for name, meaning in SWITCHES.items())
    return (
        f"## All kinds\n\n### Conditions\n\n{table(('condition', 'when it is True'), _STANDARD)}\n"
        f"The reasons of Ready:\n\n{table(('reason', 'meaning'), reasons)}\n"
        f"### Annotations\n\nThese can be set on each resource.\n\n{table(('annotation', 'meaning'), switches)}"
    )


class _Page:
    """The section of one kind."""

    def __init__(self, loaded: Loaded, watches: list[Watch], crd: CustomResourceDefinition | None) -> None:
        self.loaded, self.watches, self.crd = loaded, watches, crd
        self.kind = watches[0].rule.kind
        served = [each for each in crd.versions if each.served] if crd is not None else []
        own = [each for each in served if each.name == self.kind.version]
        self.versions = [*own, *(each for each in served if each not in own)]

    def text(self) -> str:
        sections = [f"## {self.kind.kind}\n", *self._about(), *self._examples()]
        for version in self.versions:
            sections += self._fields(version)
        sections += [*self._conditions(), *self._rules(), *self._objects(), *self._deletion()]
        return "\n".join(sections)

    def _about(self) -> Iterator[str]:
        crd, kind = self.crd, self.kind
        if crd is None:
            yield f"{code(kind.api_version)}. Its fields are not described in this project.\n"
            return
        if description := self.versions[0].schema.get("description") if self.versions else "":
            yield f"{prose(description)}\n"
        scope = "namespaced" if crd.namespaced else "cluster-scoped"
        names = ", ".join(map(code, (crd.plural, crd.singular, *crd.short_names)))
        yield f"API {code(kind.api_version)}, {scope}. For kubectl: {names}.\n"
        for version in self.versions:
            if version.deprecated:
                yield f"{code(version.name)} is deprecated. {prose(version.deprecation_warning)}".rstrip() + "\n"

    def _examples(self) -> Iterator[str]:
        found = [each for each in examples(self.loaded) if Kind.of(each) == self.kind]
        found = sorted(({**each, "status": {}} for each in found), key=_size)
        if not found and self.versions:
            spec = self.versions[0].schema.get("properties", {}).get("spec")
            small = {"apiVersion": self.kind.api_version, "kind": self.kind.kind, "metadata": {"name": "example"}}
            found = [small if spec is None else {**small, "spec": instance(spec, "spec")}]
        titles = ("A small one:", "One with more:") if len(found) > 1 else ("An example:",)
        for title, each in zip(titles, (found[0], found[-1]) if found else (), strict=False):
            shown = {key: value for key, value in each.items() if key != "status"}
            yield f"{title}\n\n{block(rules_text(shown), 'yaml')}"

    def _fields(self, version: CrdVersion) -> Iterator[str]:
        of = f" of {version.name}" if len(self.versions) > 1 else ""
        properties = version.schema.get("properties") or {}
        name = (properties.get("metadata") or {}).get("properties", {}).get("name")
        shown = rows(name, "metadata.name") if name else []
        shown += (
            rows(properties["spec"], "spec", required="spec" in version.schema.get("required", ()))
            if "spec" in properties
            else []
        )
        if shown:
            yield f"### Fields{of}\n"
            yield table(HEADER, shown)
        if whole := [*cel_messages(version.schema)]:
            yield "The API server also requires:\n\n" + "".join(f"- {each}\n" for each in whole)
        status = (properties.get("status") or {}).get("properties") or {}
        fields = [row for key, each in status.items() if key != "conditions" for row in rows(each, f"status.{key}")]
        if fields:
            yield f"### Status{of}\n"
            yield table(HEADER, fields)
        if version.printer_columns:
            columns = (
                (prose(each.name), code(each.json_path), "with `-o wide`" if each.priority else "")
                for each in version.printer_columns
            )
            yield f"### Columns of kubectl get{of}\n\n{table(('column', 'field', 'shown'), columns)}"

    def _conditions(self) -> Iterator[str]:
        found = [
            (code(each.type), self._code(each.status), ", ".join(map(code, self._reasons(each))))
            for watch in self.watches
            for each in watch.rule.status.conditions
        ]
        if any(watch.rule.rollout is not None for watch in self.watches):
            found.append((code("Rollout"), "It has the newest rules, or its turn is to come.", "`Current`, `HeldBack`"))
        if found:
            yield "### Conditions\n"
            yield "Besides [those of all kinds](#all-kinds):\n"
            yield table(("condition", "when it is True", "reasons"), found)

    def _reasons(self, condition: Condition) -> list[str]:
        """The reasons that the rules write out."""
        if condition.reason is None:
            return ["Holds", "DoesNotHold", "Unknown"]
        if (constant := condition.reason.constant) is not None:
            return [constant]
        tree = self.loaded.library.written_string(condition.reason.source, condition.reason.site)
        ends = [end for each in syntax.find(tree, syntax.Conditional) for end in (each.then, each.otherwise)]
        return list(dict.fromkeys(str(end.value) for end in ends if isinstance(end, syntax.Const)))

    def _rules(self) -> Iterator[str]:
        found = [each for watch in self.watches for each in watch.rule.validate]
        if found:
            yield "### Rules\n"
            yield "A resource that breaks one is not ready, with the reason Invalid. Its objects stay as they are.\n"
            yield "".join(
                f"- {self._code(each.rule, end=',')} must hold: {prose(each.message.source).rstrip('.')}.\n"
                for each in found
            )

    def _objects(self) -> Iterator[str]:
        found = [self._object(child, watch) for watch in self.watches for child in watch.rule.every_child]
        if found:
            yield "### Objects\n"
            yield "They are created, kept as described, and deleted with the resource; `{{ … }}` is a value.\n"
            yield table(("object", "kind", "name", "when", "notes"), found)

    def _object(self, child: Child, watch: Watch) -> tuple[str, ...]:
        names = [self._with_lets(name, watch) for name in written_names(child.id, watch, self.loaded)]
        notes = []
        if watch.rule.name:
            notes.append(f"of the rule {code(watch.rule.name)}")
        match child.form:
            case ItemEnd(of=other):
                notes.append(f"made when one of {code(other)} is to be deleted, which waits until it is ready")
            case Patched(target=target):
                which = "all that match its selector" if target.many else "it"
                notes.append(f"not created or deleted: only fields of {which} are set, until the resource is deleted")
            case Once(request=request):
                notes.append(f"made once for each {code(request.source)}")
            case Scheduled(text=text):
                notes.append(f"made at each time of the schedule {code(text.source)}")
            case _ if child.final:
                notes.append("made when the resource is deleted")
            case _ if all(child.strategy_for(kind) == "create-only" for kind in child.kinds):
                renewed = ", but for new random values" if child.rotation is not None else ""
                notes.append(f"not changed after its creation{renewed}")
        if child.for_each:
            loops = (f"each {code(loop.name)} in {code(loop.over.source)}" for loop in child.for_each)
            notes.append(f"one for {' and '.join(loops)}")
        if child.depends_on:
            notes.append(f"after {', '.join(map(code, child.depends_on))} is ready")
        if child.optional:
            is_one = isinstance(child.form, Patched) and not child.form.target.many
            notes.append("only if it exists" if is_one else "only if the cluster has this kind")
        when = self._code(child.when) if child.when is not None else ""
        return code(child.id), kinds_of(child.kinds), ", ".join(map(code, filter(None, names))), when, "; ".join(notes)

    def _with_lets(self, text: str, watch: Watch) -> str:
        """The text with the values of names that are only in the rules."""

        def replaced(found: re.Match[str]) -> str:
            tree = watch.rule.let.get(found[1])
            return tree.only.source if tree is not None and tree.only is not None else found[0]

        return _LET.sub(replaced, text)

    def _code(self, expression: Expression, end: str = "") -> str:
        """The expression, and what the names in it are that are only in the rules, with this end."""
        lets = {name: tree.only for watch in self.watches for name, tree in watch.rule.let.items()}
        named = [
            f"{code(name)} is {code(only.quotation)}"
            for name, only in lets.items()
            if name in expression.names and only is not None
        ]
        return code(expression.source) + (f", where {' and '.join(named)}{end}" if named else "")

    def _deletion(self) -> Iterator[str]:
        children = [child for watch in self.watches for child in watch.rule.every_child]
        policies = [(child, child.deletion.policy) for child in children]
        stays = [(child, policy) for child, policy in policies if policy is not None and policy.constant != "delete"]
        final = [child for child in children if child.final]
        if final:
            yield (
                "The resource is gone when the objects that are made on deletion are ready. The annotation"
                f" {code(SKIP_FINALIZE)} gives up on them.\n"
            )
        for child in children:
            if child.deletion.after:
                yield f"{code(child.id)} is deleted after {', '.join(map(code, sorted(child.deletion.after)))}.\n"
        if stays:
            yield "These stay when the resource is deleted:\n"
            yield "".join(
                f"- {code(child.id)} ({kinds_of(child.kinds)})"
                f"{'' if policy.constant else f', where {code(policy.quotation)} is `orphan`'}\n"
                for child, policy in stays
            )


def _size(value: JSON) -> int:
    inner: Any = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inner))


# -- samples -----------------------------------------------------------------------------------------------------------
# A custom resource of each kind: one of examples/, or a small one that satisfies the schema.


def samples(loaded: Loaded, crds: Sequence[Object]) -> list[Object]:
    """In the order of the CRDs: one for each version that is served."""
    written = {(str(each.get("apiVersion")), str(each.get("kind"))): each for each in reversed(list(examples(loaded)))}
    found = []
    for crd in map(parse_crd, crds):
        for version in crd.versions:
            if not version.served:
                continue
            key = (f"{crd.group}/{version.name}", crd.kind)
            small = {"apiVersion": key[0], "kind": key[1], "metadata": {"name": "example"}}
            fields = (version.schema.get("properties") or {}).get("spec")
            found.append(written.get(key) or (small if fields is None else {**small, "spec": instance(fields, "spec")}))
    return found


def examples(loaded: Loaded) -> Iterator[Object]:
    for path, text in read_examples(Path(loaded.project.root), Findings({})).items():
        documents, mistakes = read_resources(text, path)
        for node in documents if not mistakes else ():
            document = node.data()
            if isinstance(document, dict):
                yield document
