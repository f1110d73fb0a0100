"""What stands where a value is missing, and what that means.

An `Absent` is looked at by `default` and `is defined` only. Whatever else is done to it (printing, comparing, asking for its truth,
looping) raises its fault. That is what makes "not there yet" contagious without a rule for each operator: it ends the evaluation.

Most of them are made for a `default` and thrown away, so the way to the place and the field that may have been meant are worked out only
when the fault is raised.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, Self

from jinja2.runtime import Undefined

from ruleop.templating.values.faults import Fault, NotThereYet

if TYPE_CHECKING:
    from collections.abc import Callable


class Origin(Enum):
    """Where a value was looked for, and so what it means that it is missing."""

    GIVEN = "given"  # the CR and the rule's constants: a mistake
    LATER = "later"  # children, observed resources, status: not there yet
    LIVE = "live"  # `live.x`: waits for nothing, so it has to be asked for with `default`


class Absent(Undefined):
    """Stands where a value is missing; subclasses say what that means. It is a `jinja2.Undefined` so that Jinja's own code knows it as
    one."""

    __slots__ = ("_path", "_steps")

    def __init__(self, path: str | Callable[[], str] = "") -> None:
        self._path = path
        self._steps: tuple[object, ...] = ()

    def path(self) -> str:
        path = self._path if isinstance(self._path, str) else self._path()
        for step in self._steps:
            path = join_path(path, step)
        return path

    def fault(self) -> Fault:
        return Fault(f"{self.path()} has no value")

    def step(self, key: object) -> Absent:
        """What is below something missing is missing in the same way."""
        below = type(self).__new__(type(self))
        below._copy(self)  # noqa: SLF001 - its own kind
        below._steps = (*self._steps, key)  # noqa: SLF001 - its own kind
        return below

    def _copy(self, other: Absent) -> None:
        self._path = other._path

    def below(self, key: object) -> Self:
        """This, seen to be missing at a field of its path."""
        self._steps = (key,)
        return self

    def without_key(self) -> Absent:
        """The same, found with a key that was computed: it may be a value, which no message may say."""
        self._steps = (*self._steps[:-1], None)
        return self

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise self.fault()

    _fail_with_undefined_error = _refuse
    __bool__ = __iter__ = __len__ = __str__ = __hash__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __pos__ = __neg__ = _refuse
    __contains__ = __getitem__ = __call__ = __int__ = __float__ = __complex__ = __index__ = _refuse

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Missing(Absent):
    """A field of the CR or of `vars` that nobody set."""

    __slots__ = ("_hint",)

    def __init__(self, path: str | Callable[[], str] = "", hint: Callable[[], str] = str) -> None:
        super().__init__(path)
        self._hint = hint

    def _copy(self, other: Absent) -> None:
        super()._copy(other)
        self._hint = other._hint if isinstance(other, Missing) else str  # noqa: SLF001 - its own kind

    def fault(self) -> Fault:
        return Fault(f"{self.path()} is not set{self._hint()}; use `default(...)` if it may be missing")


class NoField(Absent):
    """A field of something that has none, such as text."""

    __slots__ = ("_what",)

    def __init__(self, what: str, key: object) -> None:
        super().__init__()
        self._what = what
        self._steps = (key,)

    def _copy(self, other: Absent) -> None:
        super()._copy(other)
        self._what = other._what if isinstance(other, NoField) else ""  # noqa: SLF001 - its own kind

    def fault(self) -> Fault:
        key = self._steps[0]
        return Fault(f"{self._what} has no such field" if key is None else f"{self._what} has no field {key}")


class Later(Absent):
    """A field that something else will fill in."""

    __slots__ = ()

    def fault(self) -> Fault:
        return NotThereYet(self.path())


class Announced(Later):
    """An object that does not exist yet, of which it is known already what it will be called. Everything else of it, and the whole, is not
    there yet: what needs only the name need not wait for the object."""

    __slots__ = ("_known",)

    def __init__(self, path: str, known: Mapping[str, Any]) -> None:
        super().__init__(path)
        self._known: Mapping[str, Any] = known

    def step(self, key: object) -> Any:
        found = self._known.get(key) if isinstance(key, str) else None
        if isinstance(found, str):
            return found
        below = Announced(self.path(), found) if isinstance(found, Mapping) else Later(self.path())
        return below.below(key)


class NotLive(Absent):
    """A field below `live.x` that does not exist now."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault(f"{self.path()} does not exist now, and `live` waits for nothing: say what to use instead with `default(...)`")


class Unwanted(Absent):
    """A child whose `when` is false, and all below it."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault(
            f"{self.path()} has no value because the child {self._path} is not wanted (its `when` is false); test it with `is defined`"
        )


class Broken(Absent):
    """A value that could not be computed; the fault shows when, and only when, somebody uses it."""

    __slots__ = ("_fault",)

    def __init__(self, path: str, fault: Fault) -> None:
        super().__init__(path)
        self._fault = fault

    def _copy(self, other: Absent) -> None:
        super()._copy(other)
        self._fault = other.fault()

    def fault(self) -> Fault:
        """A copy: an exception collects the way of each time that it is raised."""
        return copy.copy(self._fault)


class Omit(Absent):
    """`omit`, and an inline `if` that is false and has no `else`: as a whole value it leaves out its key or item."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault("this leaves its field out (`omit`, or an `if` without `else`), which only a whole value can do")


class Unknown(Absent):
    """A name that nothing has given a value to, such as a `set` in a branch that was not taken. Made by Jinja's generated code."""

    __slots__ = ("_message",)

    def __init__(self, hint: str | None = None, obj: object = None, name: str | None = None, exc: object = None) -> None:  # noqa: ARG002 - Jinja's signature
        super().__init__(name or "")
        self._message = hint

    def _copy(self, other: Absent) -> None:
        super()._copy(other)
        self._message = other._message if isinstance(other, Unknown) else None  # noqa: SLF001 - its own kind

    def fault(self) -> Fault:
        return Fault(self._message or f"{self.path()} has no value here")


OMIT = Omit("omit")


def join_path(path: str, key: object) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[...]"
