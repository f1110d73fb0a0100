"""Whether a configuration fits its schema, before it is applied: structured-merge-diff's own checks and messages.

These are stricter than decoding: unknown fields and repeated items are errors whatever the field validation, with a
status of 500.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ruleop.errors import RuleopError
from ruleop.localcluster.objects.fieldsets import InvalidFieldsError, element_text, item_element
from ruleop.localcluster.objects.go_text import go_text
from ruleop.localcluster.status_errors import internal

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Kind, Object
    from ruleop.kubernetes.schema.shape import Shape
    from ruleop.localcluster.objects.decoding import DecodingError
    from ruleop.localcluster.status_errors import Rejected


class NotTypedError(RuleopError):
    """An object does not fit a schema."""


def check_typed(obj: Object, shape: Shape) -> None:
    """Raises NotTypedError with all problems."""
    problems: list[str] = []
    _check(obj, shape, "", problems)
    if problems:
        raise NotTypedError(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *problems]))


def check_config(config: Object, shape: Shape, kind: Kind) -> None:
    """Raises Rejected with all problems."""
    try:
        check_typed(config, shape)
    except NotTypedError as error:
        text = str(error)
    else:
        return
    raise internal(f"failed to create typed patch object ({_title(config, kind)}): {text}")


def not_converted(kind: Kind, config: Object, error: DecodingError) -> Rejected:
    """The response to a configuration whose result cannot be decoded."""
    return internal(
        f"failed to convert new object ({_title(config, kind)}) to proper version: unable to convert unstructured "
        f"object to {kind.group}/{kind.version}, Kind={kind.kind}: {error.conversion}"
    )


def _title(config: Object, kind: Kind) -> str:
    metadata = config.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    return f"{_text(names.get('namespace'))}/{_text(names.get('name'))}; {kind.group}/{kind.version}, Kind={kind.kind}"


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _check(value: JSON, shape: Shape, path: str, problems: list[str]) -> None:
    if value is None or shape.type == "any":
        return
    if shape.type == "scalar":
        if problem := _scalar_problem(value, shape):
            problems.append(f"{path}: {problem}")
    elif shape.type == "object":
        _check_map(value, shape, path, problems)
    else:
        _check_list(value, shape, path, problems)


def _check_map(value: JSON, shape: Shape, path: str, problems: list[str]) -> None:
    if type(value) is not dict:
        problems.append(f"{path}: expected map, got {_go_value(value)}")
        return
    declared, others = shape.fields, shape.values
    for name, member in value.items():
        inner = declared.get(name, others)
        if inner is None:
            if not shape.preserve_unknown:
                problems.append(f"{path}.{name}: field not declared in schema")
        elif member is not None and (type(member) is not str or inner.scalar != "string"):
            _check(member, inner, f"{path}.{name}", problems)


def _check_list(value: JSON, shape: Shape, path: str, problems: list[str]) -> None:
    if type(value) is not list:
        problems.append(f"{path}: expected list, got {_go_value(value)}")
        return
    items = shape.items
    if shape.list_type == "atomic":
        for index, item in enumerate(value):
            if items is not None:
                _check(item, items, f"{path}[{index}]", problems)
        return
    seen = set()
    for index, item in enumerate(value):
        try:
            element = item_element(item, shape)
        except InvalidFieldsError as error:
            problems.append(f"{path}: element {index}: {error}")
            return
        if element in seen:
            problems.append(f"{path}: duplicate entries for key {element_text(element)}")
        seen.add(element)
        if items is not None and (type(item) is not str or items.scalar != "string"):
            _check(item, items, path + element_text(element), problems)


def _scalar_problem(value: JSON, shape: Shape) -> str:
    kind = type(value)
    match shape.scalar:
        case "integer" | "number" if kind is not int and kind is not float:
            return f"expected numeric (int or float), got {_go_kind(value)}"
        case "string" if kind is not str and shape.format in ("", "byte"):
            return f"expected string, got &value.valueUnstructured{{Value:{_go_literal(value)}}}"
        case "boolean" if kind is not bool:
            return f"expected boolean, got {_go_value(value)}"
    if kind in (dict, list) and shape.format != "int-or-string":  # which is checked only when it is decoded
        return f"expected any scalar, got {_go_value(value)}"
    return ""


def _go_value(value: JSON) -> str:
    """A value in the format `%v`."""
    return f"&{{{go_text(value)}}}"


def _go_literal(value: JSON) -> str:
    """A value in the format `%#v`."""
    if isinstance(value, dict):
        members = ", ".join(f"{json.dumps(name)}:{_go_member(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_member, value))}}}"
    return json.dumps(value)


def _go_member(value: JSON) -> str:
    return "interface {}(nil)" if value is None else _go_literal(value)


def _go_kind(value: JSON) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool"}
    return names.get(type(value), "<nil>")
