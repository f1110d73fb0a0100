"""The data that templates see.

Mappings and lists of objects are read-only views, for three reasons: a field named `items` must be the field and never
a method; nothing may be changed; and the meaning of a missing field depends on its origin. Below `spec` it is a
mistake, below a child it is not available *yet*, and below a child whose `when` is false it does not exist. So a view
has an origin and a path, and returns the matching kind of `UndefinedValue`.

`plain` converts the values of a template back to JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from ruleop.errors import RenderError
from ruleop.language.templates.values.cost import (
    ITEM_BYTES,
    MAX_DEPTH,
    MAX_OUTPUT,
    METER,
    MISSING_BYTES,
    NODE,
    NODE_BYTES,
    ROW_BYTES,
    TEXT_READ,
    Exhausted,
    hints,
    measure,
)
from ruleop.language.templates.values.faults import Fault, fault_of
from ruleop.language.templates.values.undefined import (
    OMIT,
    Broken,
    Later,
    Missing,
    NotLive,
    Origin,
    UndefinedValue,
    join_path,
)
from ruleop.messages import shortened
from ruleop.nearest import nearest

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON

_UNDEFINED: dict[Origin, type[UndefinedValue]] = {Origin.LATER: Later, Origin.LIVE: NotLive}


class View:
    """A read-only container."""

    __slots__ = ("data", "key", "origin", "parent")

    def __init__(self, data: Any, key: object, origin: Origin = Origin.GIVEN, parent: View | None = None) -> None:
        self.data = data
        self.key = key
        self.origin = origin
        self.parent = parent

    def path(self) -> str:
        return str(self.key) if self.parent is None else join_path(self.parent.path(), self.key)

    def missing(self, key: object) -> UndefinedValue:
        """The undefined value for a missing `key`."""
        METER.charge(MISSING_BYTES)
        found = (
            _UNDEFINED[self.origin](self.path)
            if self.origin is not Origin.GIVEN
            else Missing(self.path, partial(self._missing_hint, key))
        )
        return found.below(key)

    def _missing_hint(self, key: object) -> str:
        """The end of the message about a missing key: the similar or existing names."""
        if not hints().takes(1):
            return ""
        if not isinstance(self.data, Mapping):
            return f" ({self.path()} has {len(self.data)} items)"
        close = nearest(key, self.data) if isinstance(key, str) else None
        if close:
            return f" (did you mean {join_path(self.path(), close)}?)"
        names = ", ".join(shortened(str(name)) for name in islice(self.data, 8))
        return f" ({self.path()} has {names})" if names else f" ({self.path()} is empty)"

    def wrap(self, key: object, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return MapView(value, key, self.origin, self)
        if kind is list:
            return ListView(value, key, self.origin, self)
        return value

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __eq__(self, other: object) -> bool:
        return bool(plain(self) == plain(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self.path()}>"


class MapView(View, Mapping[str, Any]):
    """A mapping whose keys are all accessible as fields, whatever their names."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        return self.wrap(key, self.data[key])

    def field(self, key: object) -> Any:
        try:
            value = self.data[key]
        except (KeyError, TypeError):
            return self.missing(key)
        kind = type(value)
        if kind is str or kind is int:
            return value
        return self.wrap(key, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self.data

    __eq__ = View.__eq__
    __hash__ = None  # type: ignore[assignment]


class ListView(View, Sequence[Any]):
    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.wrap(number, self.data[number]) for number in range(*index.indices(len(self.data)))]
        return self.wrap(index, self.data[index])

    def field(self, key: object) -> Any:
        if isinstance(key, str) and key.isdigit():
            key = int(key)  # map(attribute='a.0.b') splits at dots
        if isinstance(key, int) and not isinstance(key, bool):
            try:
                return self[key]
            except IndexError:
                return self.missing(key)
        return self.missing(key)

    def __iter__(self) -> Iterator[Any]:
        for number, value in enumerate(self.data):
            kind = type(value)
            yield value if kind is str or kind is int else self.wrap(number, value)

    def __contains__(self, item: object) -> bool:
        return plain(item) in self.data

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Any) -> list[Any]:
        return [*other, *self]

    __eq__ = View.__eq__
    __hash__ = None  # type: ignore[assignment]


class ObjectsView(ListView):
    """A list of objects that are also accessible by name or `Kind/name`. A string is never a position: an object may be
    named 1."""

    __slots__ = ("_positions",)

    def __init__(self, data: Any, key: object, origin: Origin = Origin.GIVEN, parent: View | None = None) -> None:
        super().__init__(data, key, origin, parent)
        self._positions: dict[str, int] | None = None

    def field(self, key: object) -> Any:
        if isinstance(key, str):
            number = self._position(key)
            return self.missing(key) if number is None else self.wrap(number, self.data[number])
        return ListView.field(self, key)

    def _position(self, key: str) -> int | None:
        """The position of the first object with this name. All names are indexed at the first access."""
        if self._positions is None:
            self._positions = self._indexed()
        return self._positions.get(key.removeprefix("/"))

    def _indexed(self) -> dict[str, int]:
        METER.charge(2 * ITEM_BYTES * len(self.data))
        found: dict[str, int] = {}
        for number, obj in enumerate(self.data):
            name = obj.get("metadata", {}).get("name")
            found.setdefault(str(name), number)
            found.setdefault(f"{obj.get('kind')}/{name}", number)
        return found


PARTIAL = frozenset({"apiVersion", "kind", "metadata"})


class PartialMapView(MapView):
    """An object of which only the metadata is known, because the rules read nothing else. Reading another field is an
    internal error, not a field that is missing."""

    __slots__ = ()

    def field(self, key: object) -> Any:
        if key not in PARTIAL:
            raise Fault(
                f"internal error: {self.path()} was loaded as metadata only, but the template reads other fields"
            )
        return MapView.field(self, key)


class PartialListView(ListView):
    __slots__ = ()

    def wrap(self, key: object, value: Any) -> Any:
        return PartialMapView(value, key, self.origin, self) if isinstance(value, dict) else View.wrap(self, key, value)


class PartialObjectsView(PartialListView, ObjectsView):
    __slots__ = ()


class Lazy:
    """A value that is computed on first use: a `let` that a template does not read costs nothing, and its errors have
    no effect."""

    __slots__ = ("_force", "_name", "_value")

    def __init__(self, name: str, force: Callable[[], Any]) -> None:
        self._name = name
        self._force: Callable[[], Any] | None = force
        self._value: Any = None

    def value(self) -> Any:
        if self._force is not None:
            force, self._force = self._force, None
            self._value = Broken(self._name, Fault(f"{self._name} depends on itself"))
            try:
                self._value = force()
            except Fault as fault:
                self._value = Broken(self._name, fault)
            except RenderError as error:
                self._value = Broken(self._name, fault_of(error))
        return self._value


def view(name: str, data: JSON, origin: Origin = Origin.GIVEN) -> Any:
    """A view of `data` with the path `name`."""
    if isinstance(data, dict):
        return MapView(data, name, origin)
    if isinstance(data, list):
        return ListView(data, name, origin)
    return data


def partial_view(name: str, data: JSON, origin: Origin = Origin.GIVEN) -> Any:
    """A view of an object, or of a list of objects, of which only the metadata is known."""
    return PartialListView(data, name, origin) if isinstance(data, list) else PartialMapView(data, name, origin)


def loop_items(value: Any) -> Iterator[tuple[int | str, Any]] | None:
    """The items of `forEach`, each with its position or key: those of a list, the entries of a mapping by their keys,
    none of null; None if the value has no items."""
    if value is None or value is OMIT:
        return iter(())
    if isinstance(value, Mapping):
        return ((key, {"key": key, "value": value[key]}) for key in sorted(value))
    if isinstance(value, str) or not isinstance(value, Iterable):
        return None
    return enumerate(value)


def plain(value: Any) -> JSON:
    """A template's value as JSON, which shares parts that are JSON already. Undefined values in it raise their
    faults."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is MapView or kind is ListView:
        return _without_views(value.data)
    return _Converter().of(value, 0)[0]


def plain_and_weight(value: Any) -> tuple[JSON, int]:
    """The value as JSON, and its approximate number of characters."""
    if isinstance(value, View):
        data = _without_views(value.data)
        try:
            # Data of the cluster is a tree, so the JSON encoder can measure it, which is faster than Python code.
            weight = len(orjson.dumps(data))
        except TypeError:
            weight = measure(data)[1]
        METER.charge(weight // TEXT_READ)
        return data, weight
    if type(value) is dict and set(map(type, value)) == _TEXT == set(map(type, value.values())):
        # Such as labels and ConfigMaps: no copy needed
        return value, sum(map(len, value.values())) + NODE * len(value)
    return _Converter().of(value, 0)


_TEXT = {str}


class _Converter:
    """Converts a value to JSON and measures it. Lists that contain one another several times can represent far more
    data than they occupy, so each is converted once, but counted every time."""

    __slots__ = ("converted",)

    def __init__(self) -> None:
        self.converted: dict[int, tuple[JSON, int, object]] = {}  # with the original, so that its id is not reused

    def of(self, value: Any, depth: int) -> tuple[JSON, int]:
        kind = type(value)
        if kind is str:
            return value, len(value)
        if kind is bool or value is None:
            return value, NODE
        if kind is int or kind is float:
            return json_number(value), NODE
        if isinstance(value, UndefinedValue):
            raise value.fault()
        if hasattr(value, "as_json"):
            return value.as_json(), NODE
        if hasattr(value, "as_text"):
            return self.of(value.as_text(), depth)
        if isinstance(value, str):  # a subclass, such as a literal of a template
            return str(value), len(value)
        known = self.converted.get(id(value))
        if known is None:
            self.converted[id(value)] = known = (*self._container(value, depth), value)
        return known[0], known[1]

    def _container(self, value: Any, depth: int) -> tuple[JSON, int]:
        if depth > MAX_DEPTH:
            raise Exhausted(f"data nested deeper than {MAX_DEPTH} levels")
        weight = NODE
        result: Any
        if isinstance(value, View):
            result, weight = plain_and_weight(value)
        elif isinstance(value, Mapping):
            METER.charge(ROW_BYTES + ITEM_BYTES * len(value))
            result = {}
            for key, item in value.items():
                if item is not OMIT:
                    name = _key(key)
                    if name in result:
                        raise Fault("two keys of a mapping are the same when converted to text")
                    result[name], more = self.of(item, depth + 1)
                    weight += more + NODE
        elif isinstance(value, (list, tuple, range)):
            METER.charge(NODE_BYTES + ITEM_BYTES * len(value))
            result = []
            for item in value:
                if item is not OMIT:
                    converted, more = self.of(item, depth + 1)
                    result.append(converted)
                    weight += more
        else:
            raise Fault(f"{noun(value)} is not data: only text, numbers, booleans, lists and mappings can be used")
        if weight > MAX_OUTPUT:
            raise Exhausted(f"data of more than {MAX_OUTPUT:,} characters")
        return result, weight


def _without_views(data: JSON) -> JSON:
    """The data of a view without nested views at its top (`cr` contains `status`, whose origin differs)."""
    if type(data) is dict and any(isinstance(item, (View, Lazy, UndefinedValue)) for item in data.values()):
        return {key: plain(item.value() if isinstance(item, Lazy) else item) for key, item in data.items()}
    return data


def _key(key: object) -> str:
    return key if type(key) is str else scalar_text(key)


def json_number(value: float) -> int | float:
    """The number, if JSON can represent it."""
    if type(value) is int:
        if not -(2**63) <= value < 2**64:
            raise Fault("a number that JSON cannot represent (more than 64 bits)")
    elif value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - only NaN differs from itself
        raise Fault("a number that JSON cannot represent (infinite, or not a number)")
    return value


def scalar_text(value: Any) -> str:
    """A scalar as a part of longer text, as in YAML. Raises Fault for anything else."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(json_number(value))
    if kind is float:
        return float_text(value)
    if hasattr(value, "as_text"):
        return str(value.as_text())
    if isinstance(value, UndefinedValue):
        raise value.fault()
    if value is None:
        raise Fault("null inside longer text: use `default('', true)` to print nothing")
    if isinstance(value, str):
        return str(value)
    raise Fault(f"{noun(value)} inside longer text: print one of its fields, or the whole with `to_json` or `to_yaml`")


def float_text(value: float) -> str:
    """The shortest text that is the same number in JSON and YAML: 1.5, 1e+21."""
    return repr(json_number(value))


def is_list(value: object) -> bool:
    return isinstance(value, (list, tuple, range, ListView))


def noun(value: object) -> str:
    """The type of a value for a message, which must not contain the value itself."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float, Fraction)):
        return "a number"
    if isinstance(value, str) or hasattr(value, "as_text"):
        return "text"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    return "a function"
