"""The values that a template sees, and what stands in for one that is missing.

A template gets plain data only. Mappings and lists of the cluster's objects are handed out as read-only views, for three reasons: a field
named `items` must be the field and never a method; nothing may be changed; and when something is missing, the answer depends on where it
was looked for. Under `spec` it is somebody's mistake, under a child it is not there *yet*, and under an unwanted child it is not wanted. So a
view knows its origin and the way to it, and gives the right kind of `Absent`.

An `Absent` is looked at by `default` and `is defined` only. Whatever else is done to it (printing, comparing, asking for its truth, looping)
raises its fault. That is what makes "not there yet" contagious without a rule for each operator: it ends the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn

import jinja2
from jinja2.runtime import Undefined

from ruleop.kinds import JSON
from ruleop.schema.nearest import nearest


class Fault(jinja2.TemplateRuntimeError):
    """Why an expression has no value. `site` and `expression` are filled in by whoever knows where it stands."""

    kind = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.reason = message


class NotThereYet(Fault):
    """The value will come: what needs it waits for `path`."""

    kind = "later"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not there yet")
        self.path = path


class Origin(Enum):
    """Where a value was looked for, and so what it means that it is missing."""

    GIVEN = "given"  # the CR and the rule's constants: a mistake
    LATER = "later"  # children, observed resources, status: not there yet
    LIVE = "live"  # `live.x`: waits for nothing, so it has to be asked for with `default`


class Absent(Undefined):
    """Stands where a value is missing; subclasses say what that means. It is a `jinja2.Undefined` so that Jinja's own code knows it as one."""

    __slots__ = ("_path",)

    def __init__(self, path: str = "") -> None:
        super().__init__(name=path)
        self._path = path

    def fault(self) -> Fault:
        return Fault(f"{self._path} has no value")

    def step(self, key: object) -> Absent:
        """What is below something missing is missing in the same way."""
        below = type(self).__new__(type(self))
        for slot in self._all_slots():
            if hasattr(self, slot):
                setattr(below, slot, getattr(self, slot))
        below._path = _join(self._path, key)  # noqa: SLF001
        return below

    @classmethod
    def _all_slots(cls) -> Iterator[str]:
        for base in cls.__mro__:
            yield from getattr(base, "__slots__", ())

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise self.fault()

    _fail_with_undefined_error = _refuse
    __bool__ = __iter__ = __len__ = __str__ = __repr__ = __hash__ = _refuse  # type: ignore[assignment]
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse  # type: ignore[assignment]
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse  # type: ignore[assignment]
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __pos__ = __neg__ = _refuse  # type: ignore[assignment]
    __contains__ = __getitem__ = __call__ = __int__ = __float__ = __complex__ = __index__ = _refuse  # type: ignore[assignment]


class Missing(Absent):
    """A field of the CR or of `vars` that nobody set."""

    __slots__ = ("_hint",)

    def __init__(self, path: str, hint: str = "") -> None:
        super().__init__(path)
        self._hint = hint

    def fault(self) -> Fault:
        return Fault(f"{self._path} is not set{self._hint}; use `default(...)` if it may be missing")


class Later(Absent):
    """A field that something else will fill in."""

    __slots__ = ()

    def fault(self) -> Fault:
        return NotThereYet(self._path)


class NotLive(Absent):
    """A field below `live.x` that does not exist now."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault(f"{self._path} does not exist now, and `live` waits for nothing: say what to use instead with `default(...)`")


class Unwanted(Absent):
    """A child whose `when` is false, and all below it."""

    __slots__ = ("_child",)

    def __init__(self, child: str) -> None:
        super().__init__(child)
        self._child = child

    def fault(self) -> Fault:
        return Fault(f"{self._path} has no value because the child {self._child} is not wanted (its `when` is false); test it with `is defined`")


class Broken(Absent):
    """A value that could not be computed; the fault shows when, and only when, somebody uses it."""

    __slots__ = ("_fault",)

    def __init__(self, path: str, fault: Fault) -> None:
        super().__init__(path)
        self._fault = fault

    def fault(self) -> Fault:
        return self._fault


class Omit(Absent):
    """`omit`, and an inline `if` that is false and has no `else`: as a whole value it leaves out its key or item."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault("this leaves its field out (`omit`, or an `if` without `else`), which only a whole value can do")


class Unknown(Absent):
    """A name that nothing has given a value to, such as a `set` in a branch that was not taken. Made by Jinja's generated code."""

    __slots__ = ("_message",)

    def __init__(self, hint: str | None = None, obj: object = None, name: str | None = None, exc: object = None) -> None:  # noqa: ARG002
        super().__init__(name or "")
        self._message = hint

    def fault(self) -> Fault:
        return Fault(self._message or f"{self._path} has no value here")


OMIT = Omit("omit")


def _join(path: str, key: object) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[...]"


# -- views -------------------------------------------------------------------------------------------------------------------------------


class View:
    """A container of somebody else's data, read-only."""

    __slots__ = ("data", "key", "origin", "parent")

    def __init__(self, data: Any, key: object, origin: Origin = Origin.GIVEN, parent: View | None = None) -> None:
        self.data = data
        self.key = key
        self.origin = origin
        self.parent = parent

    def path(self) -> str:
        return str(self.key) if self.parent is None else _join(self.parent.path(), self.key)

    def missing(self, key: object) -> Absent:
        """What it means that `key` is not here."""
        path = _join(self.path(), key)
        if self.origin is Origin.LATER:
            return Later(path)
        if self.origin is Origin.LIVE:
            return NotLive(path)
        hint = ""
        if isinstance(self.data, Mapping) and isinstance(key, str):
            close = nearest(key, self.data)
            hint = f" (did you mean {_join(self.path(), close)}?)" if close else f" ({self._existing()})"
        elif isinstance(self.data, Sequence):
            hint = f" ({self.path()} has {len(self.data)} items)"
        return Missing(path, hint)

    def _existing(self) -> str:
        names = ", ".join(str(name) for name in list(self.data)[:8])
        return f"{self.path()} has {names}" if names else f"{self.path()} is empty"

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
    """A mapping, of which every key can be had as a field, whatever it is called."""

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
            key = int(key)  # map(attribute='a.0.b') splits at the dots
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
    """A list of objects, of which one can also be had by its name or by `Kind/name`."""

    __slots__ = ()

    def field(self, key: object) -> Any:
        if isinstance(key, str) and not key.isdigit():
            kind, _, name = key.rpartition("/")
            for number, obj in enumerate(self.data):
                if obj.get("metadata", {}).get("name") == name and kind in {"", obj.get("kind")}:
                    return self.wrap(number, obj)
            return self.missing(key)
        return ListView.field(self, key)


class Lazy:
    """A value that is worked out when it is first asked for: a `let` that a template does not read costs nothing, and harms nobody."""

    __slots__ = ("_force", "_name", "_value")

    def __init__(self, name: str, force: Callable[[], Any]) -> None:
        self._name = name
        self._force: Callable[[], Any] | None = force
        self._value: Any = None

    def value(self) -> Any:
        if self._force is not None:
            force, self._force = self._force, None
            self._value = Broken(self._name, Fault(f"{self._name} needs itself"))
            try:
                self._value = force()
            except Fault as fault:
                self._value = Broken(self._name, fault)
        return self._value


def view(name: str, data: JSON, origin: Origin = Origin.GIVEN) -> Any:
    """`data` as a template sees it under `name`."""
    if isinstance(data, dict):
        return MapView(data, name, origin)
    if isinstance(data, list):
        return ListView(data, name, origin)
    return data


def plain(value: Any) -> JSON:
    """A template's value as JSON, sharing what is JSON already. Whatever is absent in it raises its fault."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or kind is float or value is None:
        return value
    if isinstance(value, View):
        return _unmixed(value.data)
    if isinstance(value, Absent):
        raise value.fault()
    if kind is dict or isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items() if item is not OMIT}
    if kind is list or kind is tuple or isinstance(value, (set, frozenset, Iterator)) or kind is range or _is_items(value):
        return [plain(item) for item in value if item is not OMIT]
    if hasattr(value, "as_text"):
        return value.as_text()
    if isinstance(value, (str, int, float)):  # a subclass of ours, such as a literal of a template
        return str(value) if isinstance(value, str) else value
    raise Fault(f"a {kind.__name__} is no data: only text, numbers, booleans, lists and mappings can be used")


def _is_items(value: object) -> bool:
    return type(value).__name__ in {"dict_keys", "dict_values", "dict_items", "ItemsView", "KeysView", "ValuesView"}


def _unmixed(data: JSON) -> JSON:
    """A view may hold other views at its top (`cr` holds `status`, whose origin differs)."""
    if type(data) is dict and any(isinstance(item, (View, Lazy, Absent)) for item in data.values()):
        return {key: plain(item.value() if isinstance(item, Lazy) else item) for key, item in data.items()}
    return data


def _key(key: object) -> str:
    if type(key) is str:
        return key
    return scalar_text(key)


def scalar_text(value: Any) -> str:
    """How a scalar stands inside longer text: as YAML would print it. Anything else has no such form."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is float:
        return float_text(value)
    if hasattr(value, "as_text"):
        return str(value.as_text())
    if isinstance(value, Absent):
        raise value.fault()
    if value is None:
        raise Fault("null inside longer text: use `default('', true)` to print nothing")
    if isinstance(value, str):
        return str(value)
    what = "a mapping" if isinstance(value, Mapping) else "a list"
    raise Fault(f"{what} inside longer text: print one of its fields, or the whole with `to_json` or `to_yaml`")


def float_text(value: float) -> str:
    """The shortest text that reads as the same number in JSON and YAML: 1.5, 1e+21."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124
        raise Fault("a number that JSON cannot hold (infinite, or not a number)")
    return repr(value)
