"""Objects that the API server would refuse: those of a plan, the custom resources in examples/, and literals in bodies
that have the right types, such as a schedule in words or a port out of range.

The operator leaves this to the API server. Offline commands have none.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.object_names import is_label_field
from ruleop.authoring.offline import (
    EPOCH,
    SUFFIXES,
    OfflineKinds,
    as_live,
    documents_in,
    dropped,
    identified,
    prepare,
    rejections,
    undecided,
    watched_kind,
)
from ruleop.errors import Site
from ruleop.files import read_inside, why_unreadable
from ruleop.kubernetes.builtin.builtin_types import typed_schema, typed_shape
from ruleop.kubernetes.crd import default, definition_of, prune
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.names import VALUE_IN_WORDS, is_label_key, is_label_value
from ruleop.kubernetes.schema import UNKNOWN, SchemaFinding, format_value, is_type, unknown_to_shape, validate
from ruleop.kubernetes.validation import creation_errors
from ruleop.language.rules import MAX_CRD_BYTES
from ruleop.language.templates import TextTemplate
from ruleop.language.templates.bodies.body import BodyMembers, BodySpread, Items, Scalar
from ruleop.language.templates.bodies.documents import possible_of
from ruleop.planning import FixedObjects, Observed, Problem, choose_rule, plan
from ruleop.planning.model.actions import distinct
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ruleop.authoring.checking.dataflow import Sources
    from ruleop.authoring.offline import Document
    from ruleop.kubernetes.schema import Shape
    from ruleop.kubernetes.validation import FieldError
    from ruleop.language.rules import Child, Findings, Project, Rule
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates.bodies.body import Body, FieldPath, Node, Printed
    from ruleop.planning import Plan


# -- objects of a plan -------------------------------------------------------------------------------------------------
# They are held to the schemas of their kinds: those of Kubernetes, and the CRDs of the project.

_possible: Final = functools.lru_cache(maxsize=32)(possible_of)
"""Kept, because reading a template takes much longer than planning, and mistakes seldom come alone."""
_BYTES: Final[Mapping[str, Any]] = {"properties": {"x": {"type": "string", "format": "byte"}}}
_NOUNS: Final = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list"}


def with_violations(plan: Plan, rule: Rule, project: Project) -> Plan:
    """The plan, with a problem for each field that its kind does not have or does not accept."""
    children = {child.id: child for child in rule.every_child}
    problems = [problem for id_, _, obj in plan.rendered for problem in _problems(children[id_], obj, project)]
    return replace(plan, problems=(*plan.problems, *dict.fromkeys(problems))) if problems else plan


def _problems(child: Child, obj: Object, project: Project) -> Iterator[Problem]:
    kind = Kind.of(obj)
    is_secret = child.secrecy.holds or child.secrecy.reads
    for finding in violations(obj, project):
        if child.apply.strategy == "server-side" and finding.message.startswith(("is required", "Required value")):
            continue  # another manager may set it
        message = _without_value(finding, obj) if is_secret else finding.message
        text = f"{kind.kind}/{obj['metadata'].get('name', '')}: {finding.location}: {message}"
        yield Problem(child.id, "Invalid", text, _site(child, kind, finding.path))


def violations(obj: Object, project: Project) -> list[SchemaFinding]:
    """Fields and values that the API server would refuse or drop. None for an unknown kind."""
    kind = Kind.of(obj)
    schema, shape = typed_schema(kind), typed_shape(kind)
    if schema is not None and shape is not None:
        found = [each for each in validate(obj, schema) if not _is_read_leniently(each, obj)]
        found += [*unknown_to_shape(obj, shape), *_invalid_labels(obj.get("spec"), ("spec",), kind)]
        # The server compares fields with each other once all have the right types.
        return found or [SchemaFinding(path_of(each.field), each.message) for each in creation_errors(obj)]
    crd = definition_of(kind, project.crds)
    version = crd.version(kind.version) if crd is not None else None
    if version is None:
        return []
    return [
        *rejections(default(prune(obj, version.schema), version.schema), version.schema),
        *dropped(project, obj),
    ]


def path_of(field: str) -> FieldPath:
    """A field as the API server writes it, such as spec.ports[0].name or data[a.b]."""
    steps = re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", field)
    return tuple(name or (int(key) if key.isdecimal() else key) for name, key in steps)


def _invalid_labels(value: Any, path: FieldPath, kind: Kind) -> Iterator[SchemaFinding]:
    """Of pod templates and selectors of a built-in kind. Planning refuses invalid labels of the object itself."""
    if isinstance(value, str):
        if is_label_field(path, kind) and not (is_label_key(str(path[-1])) and is_label_value(value)):
            yield SchemaFinding(path, f"must be a label, not {format_value(value)}: use {VALUE_IN_WORDS}")
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _invalid_labels(member, (*path, name), kind)


def _is_read_leniently(finding: SchemaFinding, obj: Object) -> bool:
    """Whether the server accepts a value of a built-in kind though its schema does not: an empty string is none, and
    base64 may have line breaks."""
    value = _value_at(obj, finding.path)
    if not isinstance(value, str) or not finding.message.startswith(("must be one of", "must be a byte")):
        return False
    unbroken = re.sub(r"[\r\n]", "", value)
    return not unbroken or (unbroken != value and not validate({"x": unbroken}, _BYTES))


def _without_value(finding: SchemaFinding, obj: Object) -> str:
    """The message with the type of the value in place of the value."""
    text, found, _ = finding.message.partition(", not ")
    if not found:
        return text.partition(": ")[0]
    return f"{text}, not {_NOUNS.get(type(_value_at(obj, finding.path)), 'a mapping')}"


def _value_at(obj: Object, path: FieldPath) -> Any:
    value: Any = obj
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        else:
            value = value[step] if isinstance(value, list) and isinstance(step, int) else None
    return value


def _site(child: Child, kind: Kind, path: FieldPath) -> Site:
    """The place in the template that sets the field, or else the template."""
    if not isinstance(child.body, TextTemplate):
        return child.body.site
    best, site = 0, child.body.site
    for body in _possible(child.body.file).bodies:
        depth, place = _place(body.document, path)
        if body.kind == kind and depth > best and place.line:
            best, site = depth, place
    return site


def _place(node: Node, path: FieldPath) -> tuple[int, Site]:
    """The place of a field or of its nearest parent, and how many steps lead there. An item of a list is like the
    first one where a body has fewer."""
    site = node.site
    for depth, step in enumerate(path):
        items = [each for each in node.members if not isinstance(each, BodySpread)] if isinstance(node, Items) else []
        entry = node.entries.get(str(step)) if isinstance(node, BodyMembers) else None
        if entry is not None:
            node, site = entry.value, entry.key.site
        elif items and isinstance(step, int):
            node = items[step] if step < len(items) else items[0]
            site = node.site
        else:
            return depth, site
    return len(path), site


# -- literals in bodies ------------------------------------------------------------------------------------------------
# A body with a stand-in for each slot is validated as a new object is. An error is reported only if it cannot depend on
# a slot: it is about a literal, and stays if slots have other values or that of the literal; or about a missing field
# beside which there are literals alone. It has to be in all bodies that have its place, as some may never be rendered.

_NOT_FOUND: Final = "FieldValueNotFound"
_REQUIRED: Final = "FieldValueRequired"
_LABELS: Final = ("metadata", "labels")
_SELECTOR: Final = ("spec", "selector")
_VOLUMES: Final = frozenset({"volumes", "volumeClaimTemplates"})
_NO_TEXT: Final = frozenset({"byte", "date-time"})


@dataclass(frozen=True, slots=True)
class _StandIns:
    """Stand-ins for the values of a body's slots: words and numbers. Slots of other expressions have other words."""

    word: str
    number: int
    differ: bool = True


_ROUNDS: Final = (_StandIns("a", 2), _StandIns("b", 3000))


def check_refused_objects(sources: Sources, findings: Findings) -> None:
    for part in sources.body_parts:
        visits: Counter[Site] = Counter()
        found: Counter[tuple[Site, str]] = Counter()
        for body in sources.bodies(part):
            example = _Example.of(body, _ROUNDS[0])
            visits.update({place.site for place in example.places.values()})
            found.update(_certain(body, example, part))
        for (site, message), times in found.items():
            if times == visits[site]:
                findings.mistake("invalid-literal", message, site)


def _certain(body: Body, example: _Example, part: RulePart) -> set[tuple[Site, str]]:
    """The places and texts of the errors that no slot can change."""
    errors = example.errors()
    if not errors:
        return set()
    is_partial = part.child is not None and part.child.strategy == "server-side"
    others = _Example.of(body, _ROUNDS[1]).errors()
    return {
        (site, f"{each.field}: {each.message}")
        for each in errors
        if each in others
        and not (is_partial and each.reason == _REQUIRED)
        and (site := _certain_site(body, example, each))
    }


def _certain_site(body: Body, example: _Example, error: FieldError) -> Site | None:
    """The place of an error; None if a slot might change it."""
    path = path_of(error.field)
    if path[:1] == ("metadata",):
        return None
    place, parent = example.places.get(path), example.places.get(path[:-1])
    if place is None:
        is_missing = error.reason == _REQUIRED and parent is not None and example.is_whole(path[:-1])
        return parent.site if parent is not None and is_missing else None
    if not example.is_literal(path) or (path[-2:] == _LABELS and not example.is_literal(_SELECTOR)):
        return None
    if error.reason == _NOT_FOUND and not example.knows_volumes():
        return None
    value = example.at(path)
    if isinstance(value, str | int):
        same = _StandIns(str(value), value if isinstance(value, int) else 2, differ=False)
        if error not in _Example.of(body, same).errors():
            return None
    return place.site


@dataclass(frozen=True, slots=True)
class _Place:
    site: Site
    is_literal: bool  # a scalar without slots, or a mapping or list without members that are left out
    is_scalar: bool = False


def _has_type(value: Any, shape: Shape) -> bool:
    types = (shape.scalar,) if shape.scalar else ("string", "number")
    return shape.type == "any" or (shape.type == "scalar" and any(is_type(value, each) for each in types))


@dataclass(slots=True)
class _Example:
    """The object of a body with stand-ins for its slots. Fields for which nothing can stand are left out."""

    body: Body
    slots: _StandIns
    numbers: dict[str, int]  # of the expressions in it
    obj: dict[str, Any] = field(default_factory=dict)
    has_right_types: bool = True
    places: dict[FieldPath, _Place] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Body, slots: _StandIns) -> _Example:
        """Without an object, if the kind is not one of Kubernetes."""
        expressions = dict.fromkeys(each.place.expression for found in body.fields for each in found.slots)
        numbers = {expression: number for number, expression in enumerate(expressions)}
        found, shape = cls(body, slots, numbers), typed_shape(body.kind)
        if shape is not None and isinstance(body.document, BodyMembers):
            found.obj = {"metadata": {}, **found.mapping(body.document, shape, (), body.document.site)}
        return found

    def errors(self) -> list[FieldError]:
        """Those of an object that its schema allows. They are few: so its schema is asked last."""
        found = creation_errors(self.obj) if self.obj and self.has_right_types else []
        schema = typed_schema(self.body.kind) if found else None
        return [] if schema is None or validate(self.obj, schema) else found

    def is_literal(self, path: FieldPath) -> bool:
        """Whether nothing at a path and below it depends on a slot."""
        return all(each.is_literal for at, each in self.places.items() if at[: len(path)] == path)

    def is_whole(self, path: FieldPath) -> bool:
        """Whether no member of a mapping is left out, and its scalars are literals."""
        nearby = {at: each for at, each in self.places.items() if at[: len(path)] == path and len(at) <= len(path) + 1}
        return all(each.is_literal for at, each in nearby.items() if at == path or each.is_scalar)

    def knows_volumes(self) -> bool:
        """Whether no volume is left out, nor a part of one."""
        above = [at for at in self.places if not _VOLUMES.isdisjoint(at) or at[-1:] in {("spec",), ("template",)}]
        return all(self.places[at].is_literal for at in above if not self.places[at].is_scalar)

    def at(self, path: FieldPath) -> Any:
        value: Any = self.obj
        for step in path:
            value = value[step]
        return value

    def value(self, node: Node, shape: Shape, path: FieldPath, site: Site) -> Any:
        if isinstance(node, BodyMembers):
            return self.mapping(node, shape, path, site)
        if isinstance(node, Items):
            self.has_right_types &= shape.type in ("list", "any")
            found: list[Any] = []
            for item in node.members:
                member = (
                    self.value(item, shape.items or UNKNOWN, (*path, len(found)), item.site)
                    if not isinstance(item, BodySpread)
                    else None
                )
                found += [] if member is None else [member]
            self.places[path] = _Place(site, is_literal=len(found) == len(node.members))
            return found
        found_value = node.value if node.is_literal else self.stand_in(node, shape)
        if found_value is not None:
            self.has_right_types &= _has_type(found_value, shape)
            self.places[path] = _Place(site, node.is_literal, is_scalar=True)
        return found_value

    def mapping(self, node: BodyMembers, shape: Shape, path: FieldPath, site: Site) -> dict[str, Any]:
        self.has_right_types &= shape.type in ("object", "any")
        values: dict[str, Any] = {}
        for key, entry in node.entries.items():
            inner = shape.fields.get(key) or shape.values or UNKNOWN
            values[key] = self.value(entry.value, inner, (*path, key), entry.key.site)
        found = {key: value for key, value in values.items() if value is not None}
        nulls = [entry for entry in node.entries.values() if isinstance(entry.value, Scalar) and _is_null(entry.value)]
        self.places[path] = _Place(site, is_literal=len(found) + len(nulls) == len(node.members))
        return found

    def stand_in(self, node: Scalar, shape: Shape) -> str | int | None:
        if shape.format in _NO_TEXT:
            return None
        if shape.enum:
            return shape.enum[0 if self.slots.number < _ROUNDS[1].number else -1]
        if shape.scalar == "string":
            return "".join(each if isinstance(each, str) else self.word(each) for each in node.pieces)
        if shape.scalar in ("integer", "number") or shape.format in ("quantity", "int-or-string"):
            text = "".join(each if isinstance(each, str) else str(self.slots.number) for each in node.pieces)
            return self.slots.number if node.whole else text
        return None

    def word(self, printed: Printed) -> str:
        if not self.slots.differ:
            return self.slots.word
        return f"{self.slots.word}{self.numbers[printed.place.expression]}"


def _is_null(node: Scalar) -> bool:
    return node.is_literal and node.value is None


# -- examples ----------------------------------------------------------------------------------------------------------
# Plans the custom resources in examples/, as a cluster would: those that fail are findings at their place.
#
# Other objects in examples/ exist already, as with `ruleop plan --with`. Subfolders and tests of rules are not read.

FOLDER: Final = "examples"
_TEST: Final = ".test.yaml"


def read_examples(root: Path, findings: Findings) -> dict[str, str]:
    """The texts of the files in examples/ by their paths. A file that cannot be read is empty."""
    folder = root / FOLDER
    if not folder.is_dir():
        return {}
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix in SUFFIXES and not entry.is_dir())
    return {
        f"{FOLDER}/{name}": _text(root, f"{FOLDER}/{name}", findings)
        for name in names
        if not name.startswith(".") and not name.endswith(_TEST)
    }


def _text(root: Path, path: str, findings: Findings) -> str:
    try:
        return read_inside(root / path, root, MAX_CRD_BYTES).decode("utf-8-sig")
    except OSError as error:
        findings.mistake("unreadable", why_unreadable(error), Site(path))
    except UnicodeDecodeError:
        findings.mistake("unreadable", "is not valid UTF-8", Site(path))
    return ""


def check_examples(loaded: Loaded, texts: Mapping[str, str], findings: Findings) -> None:
    documents: list[Document] = []
    for path, text in texts.items():
        found, mistakes = documents_in(text, path)
        findings.take(mistakes, "example")
        documents += found
    kinds = OfflineKinds(loaded.project)
    versions = {rule.kind.versionless: rule.kind for rule in loaded.project.rules}
    watched, others = [], []
    for each in documents:
        kind = Kind.of(each.data)
        if watched_kind(loaded.project, kind) is not None:
            watched.append(each)
            continue
        if kind.versionless in versions:
            message = f"{kind.kind} is watched in {versions[kind.versionless].api_version}, not in {kind.api_version}"
            findings.mistake("example", message, each.site(("apiVersion",)))
        others.append(each.data)
    live = as_live([each for each in others if _has_name(each)], kinds)
    stored = [(each, _stored(each, live, kinds, loaded, findings)) for each in watched]
    taken = [(document, resource) for document, resource in stored if resource is not None]
    objects = FixedObjects([*live, *(resource for _, resource in taken)])
    observed = Observed(objects, kinds, now=EPOCH, seed=b"")
    for document, resource in taken:
        _plan(document, resource, observed, loaded, findings)


def _has_name(obj: Any) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _stored(
    document: Document, live: list[dict[str, Any]], kinds: OfflineKinds, loaded: Loaded, findings: Findings
) -> Any:
    """The custom resource as the API server would store it; None if it would refuse it."""
    resource, refused = prepare(loaded.project, identified(document.data, live, kinds))
    for finding in refused:
        findings.mistake("example", str(finding), document.site(finding.path))
    for finding in dropped(loaded.project, document.data) if _has_name(document.data) else ():
        findings.mistake("example", str(finding), document.site(finding.path))
    for finding in undecided(loaded.project, resource):
        findings.warning("example", str(finding), document.site(finding.path))
    return None if refused else resource


def _plan(document: Document, resource: dict[str, Any], observed: Observed, loaded: Loaded, findings: Findings) -> None:
    rule = choose_rule(loaded.project.rules, resource)
    if rule is None:
        message = "no rule selects this custom resource (see selector and namespaces)"
        findings.mistake("example", message, document.node.site)
        return
    example = Site(document.node.site.path, document.node.site.line)
    for problem in distinct(with_violations(plan(rule, resource, observed), rule, loaded.project).problems):
        message = f"{problem.child}: {problem.message} (with {example})"
        findings.mistake("example", message, problem.site or document.node.site)
