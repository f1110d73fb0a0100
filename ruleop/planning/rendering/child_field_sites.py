"""The line of a template that a field comes from, for a message about the field: of a write that the API server
rejected, its answer names the field."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema import UNKNOWN, Shape
from ruleop.language.templates import FieldPath, ItemStep, Tree, Walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Child
    from ruleop.planning.rendering.desired import Desired

MAX_LINES: Final = 500
"""Lines of objects that are traced in one plan: each takes 15 us, and they are one step."""

_STEP: Final = re.compile(r"\[(?:'((?:[^'\\]|\\.)*)'|([^\]]*))\]|([^.\[]+)", re.DOTALL)
_PAIR: Final = re.compile(r'([^=,\s]+)="?([^",]*)"?')


def field_site(child: Child, desired: Desired, fields: Iterable[str], sent: Object | None = None) -> Site | None:
    """The place of the first of these fields that the child's body has, or of its nearest parent there. `sent`: the
    object that the fields are of, if its lists may have other items than the rendered ones."""
    paths = [_path(field, desired.rendered if sent is None else sent, desired.info.shape) for field in fields]
    if not paths:
        return None
    try:
        walks = list(_walks(child, desired))
    except RenderError:  # the message itself is worth more than its line
        return None
    return next(filter(None, (walk.to(path, data) for path in paths for walk, data in walks)), None)


def lines_of(obj: JSON, path: FieldPath = ()) -> Iterator[tuple[FieldPath, JSON]]:
    """Each field and each item of an object, as YAML has a line for it, with its value."""
    steps: Iterable[tuple[str | ItemStep, JSON]] = ()
    if isinstance(obj, dict):
        steps = obj.items()
    elif isinstance(obj, list):
        steps = ((ItemStep(position), each) for position, each in enumerate(obj))
    for step, inner in steps:
        yield (*path, step), inner
        yield from lines_of(inner, (*path, step))


def line_sites(child: Child, desired: Desired) -> tuple[Site | None, ...]:
    """The template's line for each of `lines_of` the rendered object, the first `MAX_LINES`; all from rendering the
    body once more."""
    try:
        walks = list(_walks(child, desired))
    except RenderError:
        return ()
    paths = (path for path, _ in islice(lines_of(desired.rendered), MAX_LINES))
    return tuple(next(filter(None, (walk.to(path, data) for walk, data in walks)), None) for path in paths)


def _walks(child: Child, desired: Desired) -> Iterator[tuple[Walk, JSON]]:
    rendered, key = desired.rendered, desired.key
    documents, sites = child.body.traced(desired.names)
    for document in documents:
        if isinstance(child.body, Tree):  # one object; that of a patch may have another name
            yield Walk(document, sites), rendered
            continue
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if isinstance(metadata, dict) and metadata.get("name") == key.name and Kind.of(document) == desired.kind:
            yield Walk(document, sites), rendered


def _path(field: str, sent: JSON, shape: Shape) -> FieldPath:
    """The path of a field as the API server writes it: `spec.ports[0].port`, `.spec.ports[name="http"]`, `data[a.b]`. A
    position is that in `sent`."""
    return tuple(_steps(field, sent, shape))


def _steps(field: str, data: JSON, shape: Shape) -> Iterator[str | ItemStep]:
    for match in _STEP.finditer(field.removeprefix(".")):
        quoted, inner, name = match.groups()
        if inner is not None and not isinstance(data, dict):
            item = _item(inner, data, shape)
            yield item
            data = data[item.position] if isinstance(data, list) and 0 <= item.position < len(data) else None
            shape = shape.items or UNKNOWN
            continue
        step = quoted or inner or name or ""
        yield step
        data = data.get(step) if isinstance(data, dict) else None
        shape = shape.fields.get(step) or shape.values or UNKNOWN


def _item(inner: str, items: Any, shape: Shape) -> ItemStep:
    """An item by its keys, which are the same in the rendered list; or by its position, if it has none."""
    entries = [each if isinstance(each, dict) else {} for each in items] if isinstance(items, list) else []
    if inner.isdecimal():
        position = int(inner)
        found = entries[position] if position < len(entries) else {}
        keys = {name: found[name] for name in shape.keys if shape.list_type == "map" and name in found}
        is_unique = sum(keys.items() <= each.items() for each in entries) == 1
        return ItemStep(position, tuple(keys.items()) if is_unique else ())
    pairs = dict(_PAIR.findall(inner))
    for position, found in enumerate(entries):
        known = {name: found[name] for name in pairs if name in found}  # the server may have added others
        named = (found.get("metadata") or {}).get("name", found.get("name"))
        if all(str(value) == pairs[name] for name, value in known.items()) if known else named == inner:
            return ItemStep(position, tuple(known.items()))
    return ItemStep(-1)
