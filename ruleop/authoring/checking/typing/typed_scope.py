"""The names that the templates of a watch see, with their types."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.typing.bodies.schema_nodes import KindSchemas, SchemaNode, metadata_node
from ruleop.authoring.checking.typing.filters import items_of, members_of
from ruleop.authoring.checking.typing.inference import Let
from ruleop.authoring.checking.typing.types import (
    BOOLEAN,
    STRING,
    UNKNOWN,
    Type,
    Undefined,
    join,
    list_of,
    mapping_of,
    of_data,
    of_node,
)
from ruleop.kubernetes.kinds import Kind
from ruleop.language.templates import Origin, syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ruleop.authoring.checking.typing.environments import TypeEnvironment
    from ruleop.authoring.checking.typing.types import Reason
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.watches_yaml import ObserveTable

_SERVER_SET: Final = ("name", "uid", "creationTimestamp", "resourceVersion", "generation")


def resource_names(draft: Draft, kinds: KindSchemas) -> dict[str, Type]:
    """The custom resource and its parts, and `vars`."""
    vars_ = replace(of_data(dict(draft.vars), "vars"), values=UNKNOWN)  # loading reports unknown ones
    crd = kinds.crd(draft.kind)
    node = kinds.node(draft.kind) if crd is not None else None
    metadata = _metadata("metadata", namespaced=crd.namespaced if crd is not None else None)
    if node is None:
        cr = replace(UNKNOWN, path="cr")
        return {
            "cr": cr,
            "metadata": metadata,
            "spec": replace(UNKNOWN, path="spec"),
            "status": replace(UNKNOWN, path="status", origin=Origin.LATER),
            "vars": vars_,
        }
    status = _part(node, "status", origin=Origin.LATER)
    spec = _part(node, "spec")
    if "spec" not in node.required and not node.is_always_set("spec"):
        spec = replace(spec, partial=True, stand_in=Undefined("no-spec", "spec"))
    cr = replace(
        of_node(node, "cr"),
        fields={
            "metadata": _metadata("cr.metadata", namespaced=crd.namespaced if crd is not None else None),
            "status": replace(status, path="cr.status"),
        },
    )
    return {"cr": cr, "metadata": metadata, "spec": spec, "status": status, "vars": vars_}


def _part(node: SchemaNode, name: str, *, origin: Origin = Origin.GIVEN) -> Type:
    """`spec` or `status`, which are always mappings for templates."""
    below = node.member(name)
    if below is not None:
        return of_node(below, name, origin=origin).only({"mapping"})
    if node.is_open:
        return Type(path=name, origin=origin)
    return replace(mapping_of({}), path=name, origin=origin)


def _metadata(path: str, *, namespaced: bool | None) -> Type:
    always = [*_SERVER_SET, *(["namespace"] if namespaced is not False else [])]
    found = of_node(metadata_node(), path)
    below = {name: metadata_node().member(name) for name in always}
    return replace(
        found, fields={name: of_node(each, f"{path}.{name}") for name, each in below.items() if each is not None}
    )


def child_names(
    draft: Draft,
    kinds: KindSchemas,
    conditions: Mapping[str, syntax.Expr],
    is_certain: Callable[[syntax.Expr, TypeEnvironment], bool],
) -> dict[str, Type]:
    """The children, what exists of them, and whether they are ready. `conditions`: the `when` of children by id.
    `is_certain`: whether a condition holds by what is known at a place."""
    names: dict[str, Type] = {}
    live: dict[str, Type] = {}
    for child in draft.everyone:
        nodes = [kinds.node(kind) for kind in sorted(child.kinds)]
        planned = objects_of(nodes, child.id, Origin.LATER, many=child.many)
        names[child.id] = _conditional(child, planned, conditions.get(child.id), is_certain)
        existing = objects_of(nodes, f"live.{child.id}", Origin.LIVE, many=child.many)
        live[child.id] = existing if child.many else existing.maybe(Undefined("live", existing.path))
    ready = {child.id: BOOLEAN for child in draft.everyone}
    return {**names, "live": mapping_of(live), "ready": mapping_of(ready)}


def _conditional(
    child: ChildDraft,
    planned: Type,
    when: syntax.Expr | None,
    is_certain: Callable[[syntax.Expr, TypeEnvironment], bool],
) -> Type:
    """A child that may not be desired: its `when` may be false, or its kind may not be served."""
    optional = child.table.optional and not child.many
    if when is None and not optional:
        return planned
    undesired = planned.maybe(Undefined("undesired" if when is not None else "unserved", planned.path))
    unserved = planned.maybe(Undefined("unserved", planned.path))

    def infer(env: TypeEnvironment) -> Type:
        if when is not None and not is_certain(when, env):
            return undesired
        return (
            unserved if optional and not any(truth and "'has_kind'" in text for text, truth in env.truths) else planned
        )

    return replace(undesired, code=Let(infer, implied=when))


def observed_names(draft: Draft, kinds: KindSchemas) -> dict[str, Type]:
    names: dict[str, Type] = {}
    for entry in draft.observed.values():
        if (table := entry.value) is not None:
            listed = observed_objects(table, kinds, entry.name, many=table.many, named=not table.selected)
            names[entry.name] = listed
    return names


def observed_objects(table: ObserveTable, kinds: KindSchemas, path: str, *, many: bool, named: bool = True) -> Type:
    if table.version is None or table.kind is None:
        return UNKNOWN
    node = kinds.node(Kind(table.group.text, table.version.text, table.kind.text))
    return objects_of([node], path, Origin.LATER, many=many, named=named)


def objects_of(
    nodes: Iterable[SchemaNode | None], path: str, origin: Origin, *, many: bool, named: bool = True
) -> Type:
    item = _always_named(_shared(list(nodes), f"{path}[]" if many else path, origin))
    if many:
        return replace(list_of(item), origin=origin, path=path, named=named)
    return item.maybe(Undefined("later", path)) if origin is Origin.LATER else item


def _shared(nodes: list[SchemaNode | None], path: str, origin: Origin) -> Type:
    """The type of a value of one of several schemas, as a child with a choice of kinds has: a field that all of them
    declare is of one of its types, and nothing is known of the others."""
    known = [node for node in nodes if node is not None]
    if not known or len(known) < len(nodes):
        return Type(path=path, origin=origin)
    first = known[0]
    if all((node.name, node.schema) == (first.name, first.schema) for node in known):
        return of_node(first, path, origin=origin)
    kinds = frozenset[str]().union(*(node.kinds for node in known))
    if kinds == {"list"}:
        return replace(list_of(_shared([node.items for node in known], f"{path}[]", origin)), path=path, origin=origin)
    if kinds != {"mapping"}:
        return Type(kinds, path=path, origin=origin)
    reason: Reason = "live" if origin is Origin.LIVE else "later"
    fields = {
        name: _shared([node.member(name) for node in known], f"{path}.{name}", origin).maybe(
            Undefined(reason, f"{path}.{name}")
        )
        for name in first.names
        if all(name in node.names for node in known)
    }
    return Type(kinds, fields=fields, values=Type(origin=origin), path=path, origin=origin)


def _always_named(item: Type) -> Type:
    """An object, whose kind and name are always set."""
    if item.node is None and item.fields is None:
        return item
    return replace(item, fields={**(item.fields or {}), "apiVersion": STRING, "kind": STRING})


def item_type(iterated: Type) -> Type:
    """The type of an item of `forEach`."""
    found: list[Type] = []
    if "list" in iterated.kinds:
        found.append(items_of(iterated.only({"list"})))
    if "mapping" in iterated.kinds:
        found.append(mapping_of({"key": STRING, "value": members_of(iterated)}))
    return join(found)
