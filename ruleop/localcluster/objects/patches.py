"""The patches of the API: JSON patch (RFC 6902), JSON merge patch (RFC 7386), strategic merge patch.

Each function takes the object and the decoded patch, and returns the patched object. It raises Rejected with the status
and the message of the real server. Three responses of the server surprise:

- a JSON patch whose operation fails, a `test` included, is 422 with a message that does not say which.
- `replace` of a missing member adds it, and a `test` for null holds for one.
- a malformed strategic merge patch is mostly a 500.

The package `jsonpatch` differs from the server in the first two, and copies the whole object. Here only the containers
that change are copied, which keeps a write below 0.1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.kubernetes.merge import merge_patched, same, without_nulls
from ruleop.localcluster.objects.decoding import type_name
from ruleop.localcluster.status_errors import Rejected, bad_request, internal

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema import Shape


MAX_COPIED: Final = 3 * 1024 * 1024  # bytes that the `copy` operations of a patch may copy in all


class _PatchError(Exception):
    """An operation that cannot be carried out."""


def json_patch(obj: Object, operations: JSON) -> Object:
    """The object after the operations of a JSON patch, in their order. Raises Rejected."""
    if not isinstance(operations, list):
        raise bad_request(f"a JSON patch must be a list, not {type_name(operations)}")
    for operation in operations:
        _check_operation(operation)
    document: JSON = obj
    copied = 0
    try:
        for operation in operations:
            copied += _copied_size(document, operation)
            document = _operated(document, operation) if copied <= MAX_COPIED else None
    except _PatchError:
        raise _rejected() from None
    if not isinstance(document, dict):
        raise _rejected()
    return document


def _rejected() -> Rejected:
    return Rejected(422, "Invalid", "the server rejected our request due to an error in our request", {})


def merge_patch(obj: Object, patch: JSON) -> Object:
    """The object after a JSON merge patch. Nulls go from what is new, in lists as well. Raises Rejected."""
    if not isinstance(patch, dict):
        raise bad_request(f"a merge patch must be an object, not {type_name(patch)}")
    return merge_patched(obj, patch)


def strategic_merge_patch(obj: Object, patch: JSON, shape: Shape) -> Object:
    """The object of a built-in kind after a strategic merge patch. Raises Rejected."""
    if not isinstance(patch, dict):
        raise bad_request(f"a strategic merge patch must be an object, not {type_name(patch)}")
    return _merged_map(obj, patch, shape)


# JSON patch


def _check_operation(operation: JSON) -> None:
    if operation is None:
        raise _rejected()
    if not isinstance(operation, dict):
        raise bad_request(f"an operation of a JSON patch must be an object, not {type_name(operation)}")
    for name in ("op", "path", "from"):
        value = operation.get(name)
        if value is not None and type(value) is not str:
            raise bad_request(f"{name} of a JSON patch must be a string, not {type_name(value)}")


def _copied_size(document: JSON, operation: Mapping[str, JSON]) -> int:
    source = operation.get("from")
    if operation.get("op") != "copy" or type(source) is not str:
        return 0
    return len(orjson.dumps(_value_at(document, source)))


def _operated(document: JSON, operation: Mapping[str, JSON]) -> JSON:
    kind, path = operation.get("op"), operation.get("path")
    if type(path) is not str:
        raise _PatchError
    match kind:
        case "add":
            return _changed(document, path, _adding(operation.get("value")))
        case "remove":
            return _changed(document, path, _remove)
        case "replace":
            if path == "":
                return operation.get("value")
            return _changed(document, path, _replacing(operation.get("value")))
        case "test":
            found = document if path == "" else _value_at(document, path)
            if not same(found, operation.get("value")):
                raise _PatchError
            return document
        case "move" | "copy":
            source = operation.get("from")
            if type(source) is not str:
                raise _PatchError
            value = _value_at(document, source)
            rest = _changed(document, source, _remove) if kind == "move" else document
            return _changed(rest, path, _adding(value))
    raise _PatchError


_Change = Callable[["dict[str, JSON] | list[JSON]", str], None]


def _parts(path: str) -> list[str]:
    _first, *parts = path.split("/")
    if not parts:
        raise _PatchError
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _value_at(document: JSON, path: str) -> JSON:
    for part in _parts(path):
        document = _child(document, part)
    return document


def _child(container: JSON, key: str) -> JSON:
    if isinstance(container, list):
        return container[_index(key, len(container) - 1)]
    if isinstance(container, Mapping):
        return container.get(key)
    raise _PatchError


def _index(key: str, last: int) -> int:
    """The position that a part of a path names. Negative ones count from the end."""
    try:
        index = int(key)
    except ValueError:
        raise _PatchError from None
    if index < 0:
        index += last + 1
    if not 0 <= index <= last:
        raise _PatchError
    return index


def _changed(document: JSON, path: str, change: _Change) -> JSON:
    return _changed_below(document, _parts(path), change)


def _changed_below(container: JSON, parts: list[str], change: _Change) -> JSON:
    """The container with a change at a path, with all that leads there copied."""
    if not isinstance(container, dict | list):
        raise _PatchError
    copied = container.copy()
    if len(parts) == 1:
        change(copied, parts[0])
    elif isinstance(copied, list):
        index = _index(parts[0], len(copied) - 1)
        copied[index] = _changed_below(copied[index], parts[1:], change)
    else:
        copied[parts[0]] = _changed_below(copied.get(parts[0]), parts[1:], change)
    return copied


def _adding(value: JSON) -> _Change:
    def add(container: dict[str, JSON] | list[JSON], key: str) -> None:
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container)), value)

    return add


def _replacing(value: JSON) -> _Change:
    def replace(container: dict[str, JSON] | list[JSON], key: str) -> None:
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container) - 1)] = value

    return replace


def _remove(container: dict[str, JSON] | list[JSON], key: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise _PatchError
        del container[key]
    else:
        del container[_index(key, len(container) - 1)]


# Strategic merge patch. The order of items is that of the patch, and the live items that it does not name stay as near
# to their places as that allows: a port of apimachinery's strategicpatch.

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def _merged_map(live: Mapping[str, JSON], patch: Mapping[str, JSON], shape: Shape | None) -> dict[str, JSON]:
    if _DIRECTIVE in patch:
        return _directed(patch)
    merged = dict(live)
    patch = _retained(merged, patch)
    patch = _ordered(merged, patch, shape)
    for name, value in patch.items():
        deleting = name.startswith(_DELETE)
        key = name.removeprefix(_DELETE) if deleting else name
        if value is None:
            merged.pop(key, None)
        elif key not in merged or type(merged[key]) is not type(value):
            if not deleting:
                _put(merged, key, without_nulls(value))
        elif isinstance(value, dict):
            inner = _member_shape(shape, key)
            merged[key] = value if _is_replaced(shape, key) else _merged_map(merged[key], value, inner)
        elif isinstance(value, list):
            merged[key] = _merged_list(merged[key], value, _member_shape(shape, key), deleting=deleting)
        else:
            merged[key] = value
    return merged


def _is_replaced(shape: Shape | None, name: str) -> bool:
    """The one map that a strategic merge patch replaces: the selector of a PodDisruptionBudget."""
    return name == "selector" and shape is not None and shape.name.endswith(".PodDisruptionBudgetSpec")


def _member_shape(shape: Shape | None, name: str) -> Shape | None:
    return None if shape is None else shape.fields.get(name, shape.values)


def _directed(patch: Mapping[str, JSON]) -> dict[str, JSON]:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise internal(f"unknown patch type: {directive}")


def _retained(live: dict[str, JSON], patch: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Removes from a live map what `$retainKeys` does not name; the patch without it."""
    if _RETAIN not in patch:
        return patch
    rest = {name: value for name, value in patch.items() if name != _RETAIN}
    retained = patch[_RETAIN]
    if not isinstance(retained, list) or any(
        value is not None and name not in retained and not name.startswith((_DELETE, _ORDER))
        for name, value in rest.items()
    ):
        raise bad_request("invalid patch format of retainKeys")
    for name in [name for name in live if name not in retained]:
        del live[name]
    return rest


def _ordered(live: dict[str, JSON], patch: Mapping[str, JSON], shape: Shape | None) -> Mapping[str, JSON]:
    """Merges the lists whose order `$setElementOrder` gives; the patch without them."""
    names = [name for name in patch if name.startswith(_ORDER)]
    if not names:
        return patch
    rest = {name: value for name, value in patch.items() if name not in names}
    for name in names:
        order, key = patch[name], name.removeprefix(_ORDER)
        changes, before = rest.get(key), live.get(key)
        for each in (order, before, changes):
            if each is not None and not isinstance(each, list):
                raise internal(f"{name} must be a list, not {type_name(each)}")
        inner = _member_shape(shape, key)
        if inner is None:
            raise internal(f'there is no field "{key}" whose order could be set')
        if order and changes and not _is_in_order(changes, order, inner.patch_key):
            raise internal(f"The order in patch list does not match {name}")
        if changes is not None:
            del rest[key]
        if changes is None:
            if before is None:
                continue
            merged = before
        elif before is None:
            merged = _without_directives(changes)
        else:
            merged = _merged_list(before, changes, inner, deleting=False)
        if not before and not changes:
            raise internal("no elements in any of the given slices")
        for item in (*merged, *(order or ()), *(before or ())):
            if isinstance(item, dict):
                _check_key(item, inner.patch_key)  # also where the list has no key: maps of it have no order
        live[key] = _in_order(
            merged, order or [], _server_order(before or [], changes or [], inner.patch_key), inner.patch_key
        )
    return rest


def _is_in_order(changes: list[JSON], order: list[JSON], key: str) -> bool:
    """Whether the items that a patch does not delete are among those of its order, one after the other. The real server
    takes a directive for no item, unless it comes after the end of the order."""
    items = [each for each in changes if not key or _directive_of(each) != "delete"]
    index, place = 0, 0
    while index < len(items) and place < len(order):
        if _directive_of(items[index]) is not None:
            index += 1
            continue
        index += same(_key_of(items[index], key), _key_of(order[place], key))
        place += 1
    return index == len(items) or place < len(order)


def _server_order(live: list[JSON], changes: list[JSON], key: str) -> list[JSON]:
    """The list whose order counts for items that the patch does not name. The real server deletes items in place, so
    that new items take the places of deleted ones in it."""
    deleted = [each[key] for each in changes if _directive_of(each) == "delete" and isinstance(each, dict)]
    if not key or not deleted:
        return live
    kept = [each for each in live if not any(same(_key_of(each, key), name) for name in deleted)]
    known = [_key_of(each, key) for each in kept]
    new = [
        each
        for each in changes
        if _directive_of(each) is None and not any(same(_key_of(each, key), name) for name in known)
    ]
    return [*kept, *new][: len(live)]


def _directive_of(item: JSON) -> JSON:
    return item.get(_DIRECTIVE) if isinstance(item, dict) else None


def _merged_list(live: list[JSON], patch: list[JSON], shape: Shape | None, *, deleting: bool) -> list[JSON]:
    if not deleting and (shape is None or not shape.patch_merge):
        return patch
    if not live and not patch:
        return live
    types = {type(each) for each in (*live, *patch)}
    if len(types) > 1:
        raise internal("list element types are not identical")
    if types != {dict}:
        if deleting:
            return [each for each in live if each not in patch]
        return _in_order(list(dict.fromkeys([*live, *patch])), patch, live, "")
    key = shape.patch_key if shape is not None else ""
    if not key:
        raise internal("cannot merge lists without merge key for ")
    kept, changes, replaced = _special_items(live, patch, key)
    if replaced:
        return _in_order(kept, [], kept, key)
    return _in_order(_merged_items(kept, changes, key, shape), changes, kept, key)


def _special_items(live: list[JSON], patch: list[JSON], key: str) -> tuple[list[JSON], list[JSON], bool]:
    """The live items that are left, the items to merge, and whether the patch replaces the list."""
    kept, changes, replaced = live, [], False
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if _DIRECTIVE not in item:
            changes.append(item)
        elif directive == "delete":
            _check_key(item, key)
            kept = [each for each in kept if key not in each or each[key] != item[key]]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise internal("merging lists cannot yet be specified in the patch")
        else:
            raise internal(f"unknown patch type: {directive}")
    return (changes, [], True) if replaced else (kept, changes, False)


def _merged_items(live: list[JSON], patch: list[JSON], key: str, shape: Shape | None) -> list[JSON]:
    merged = list(live)
    for item in patch:
        _check_key(item, key)
        for index, each in enumerate(merged):
            if key in each and same(each[key], item[key]):
                merged[index] = _merged_map(each, item, shape.items if shape is not None else None)
                break
        else:
            merged.append(item)
    return merged


def _check_key(item: Mapping[str, JSON], key: str) -> None:
    if key not in item:
        raise internal(f"an item does not contain declared merge key: {key}")


def _key_of(item: JSON, key: str) -> JSON:
    if not key:
        return item
    if not isinstance(item, dict):
        raise internal(f"an item with the merge key {key} must be an object, not {type_name(item)}")
    _check_key(item, key)
    return item[key]


def _in_order(merged: list[JSON], order: list[JSON], live: list[JSON], key: str) -> list[JSON]:
    """The items in the order of the patch; each of the others before the first item that follows it in the live
    list."""
    rank, place = _ranks(order, key), _ranks(live, key)
    names = {id(item): _hashable(_key_of(item, key)) for item in merged}
    patched = sorted((item for item in merged if names[id(item)] in rank), key=lambda item: rank[names[id(item)]])
    others = [item for item in merged if names[id(item)] not in rank]
    others.sort(key=lambda item: place.get(names[id(item)], -1))
    found: list[JSON] = []
    while others and patched:
        left, right = place.get(names[id(others[0])]), place.get(names[id(patched[0])])
        first = others if left is not None and right is not None and left < right else patched
        found.append(first.pop(0))
    return [*found, *others, *patched]


def _ranks(items: list[JSON], key: str) -> dict[JSON, int]:
    ranks: dict[JSON, int] = {}
    for index, item in enumerate(items):
        ranks.setdefault(_hashable(_key_of(item, key)), index)
    return ranks


def _hashable(value: JSON) -> JSON:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if isinstance(value, dict | list) else value


def _put(target: dict[str, JSON], name: str, value: JSON) -> None:
    """A member that is new. Directives have nothing to act on, so the parts of the patch that have one go."""
    if isinstance(value, dict) and _DIRECTIVE in value:
        target.pop(name, None)
    else:
        target[name] = _without_directives(value)


def _without_directives(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {
            name: _without_directives(member)
            for name, member in value.items()
            if not (isinstance(member, dict) and _DIRECTIVE in member)
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and _DIRECTIVE in item)]
    return value
