"""Holds the objects of a plan to the schemas of their kinds: those of Kubernetes, and the CRDs of the project.

The operator leaves this to the API server. Offline commands have none, and say here what it would refuse or drop.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.object_names import is_label_field
from ruleop.authoring.offline import dropped, rejections
from ruleop.kubernetes.builtin.builtin_types import typed_schema, typed_shape
from ruleop.kubernetes.crd import default, definition_of, prune
from ruleop.kubernetes.kinds import Kind, Object
from ruleop.kubernetes.names import VALUE_IN_WORDS, is_label_key, is_label_value
from ruleop.kubernetes.schema import SchemaFinding, format_value, unknown_to_shape, validate
from ruleop.kubernetes.validation import creation_errors
from ruleop.language.templates import TextTemplate
from ruleop.language.templates.bodies.body import BodyMembers, BodySpread, Items
from ruleop.language.templates.bodies.documents import possible_of
from ruleop.planning import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.errors import Site
    from ruleop.language.rules import Child, Project, Rule
    from ruleop.language.templates.bodies.body import FieldPath, Node
    from ruleop.planning import Plan

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
