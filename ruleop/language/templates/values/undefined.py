"""Undefined values: what a missing field evaluates to, with the reason why it is missing.

Only `default` and `is defined` accept an `UndefinedValue`. All other operations (printing, comparing, testing its
truth, looping) raise its fault. So a value that is not available yet ends the evaluation, without a rule for each
operator.

Most undefined values are replaced by a `default`, so the path and the similar names are computed only when the fault is
raised.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, Self

from jinja2.runtime import Undefined

from ruleop.language.templates.values.faults import Fault, NotThereYet
from ruleop.messages import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

_PUBLIC_ROOTS = frozenset({"cr", "metadata", "spec", "status", "vars"})


class Origin(Enum):
    """The origin of a value, which decides why a field of it is missing."""

    GIVEN = "given"  # the CR and the rule's constants: a mistake
    LATER = "later"  # children, observed resources, status: not available yet
    LIVE = "live"  # `live.x`: never waits, so it needs a `default`


class UndefinedValue(Undefined):
    """A missing value; subclasses have the reason. A `jinja2.Undefined`, so that Jinja's code treats it as
    undefined."""

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
        return Fault(f"{self.path()} is undefined")

    def step(self, key: object) -> UndefinedValue:
        """The undefined value for a field below this one, which is missing for the same reason."""
        below = type(self).__new__(type(self))
        below._copy(self)  # noqa: SLF001 - the same class
        below._steps = (*self._steps, key)  # noqa: SLF001 - the same class
        return below

    def _copy(self, other: UndefinedValue) -> None:
        self._path = other._path

    def below(self, key: object) -> Self:
        """Sets the field of the path that is missing."""
        self._steps = (key,)
        return self

    def without_key(self) -> UndefinedValue:
        """Removes a computed key from the path: it may be a value, which must not be in a message."""
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


class Missing(UndefinedValue):
    """A field of the CR or of `vars` that is not set."""

    __slots__ = ("_hint",)

    def __init__(self, path: str | Callable[[], str] = "", hint: Callable[[], str] = str) -> None:
        super().__init__(path)
        self._hint = hint

    def _copy(self, other: UndefinedValue) -> None:
        super()._copy(other)
        self._hint = other._hint if isinstance(other, Missing) else str  # noqa: SLF001 - the same class

    def fault(self) -> Fault:
        path, advice = self.path(), "use `default(...)` if it may be missing"
        found = f"{path} is not set{self._hint()}; {advice}"
        # Any other mapping may be computed from a Secret, and the hint has names of its fields
        is_public = re.split(r"[.\[]", path, maxsplit=1)[0] in _PUBLIC_ROOTS
        return Fault(found, redacted=found if is_public else f"a field is not set; {advice}")


class NoField(UndefinedValue):
    """A field of a value without fields, such as text."""

    __slots__ = ("_what",)

    def __init__(self, what: str, key: object) -> None:
        super().__init__()
        self._what = what
        self._steps = (key,)

    def _copy(self, other: UndefinedValue) -> None:
        super()._copy(other)
        self._what = other._what if isinstance(other, NoField) else ""  # noqa: SLF001 - the same class

    def fault(self) -> Fault:
        key = self._steps[0]
        return Fault(f"{self._what} has no such field" if key is None else f"{self._what} has no field {key}")


class Later(UndefinedValue):
    """A field that is not available yet."""

    __slots__ = ()

    def fault(self) -> Fault:
        return NotThereYet(self.path())


class Announced(Later):
    """An object that does not exist yet, but whose name is known. Templates that need only the name do not wait for the
    object; everything else of it is not available yet."""

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


class NotLive(UndefinedValue):
    """A field below `live.x` that does not exist."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault(f"{self.path()} does not exist, and `live` does not wait: set a fallback with `default(...)`")


class Disabled(UndefinedValue):
    """A child whose `when` is false, and all fields of it."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault(
            f"{self.path()} is undefined because `when` of the child {self._path} is false; test it with `is defined`"
        )


class Broken(UndefinedValue):
    """A value that could not be computed. Its fault is raised only when the value is used."""

    __slots__ = ("_fault",)

    def __init__(self, path: str, fault: Fault) -> None:
        super().__init__(path)
        self._fault = fault

    def _copy(self, other: UndefinedValue) -> None:
        super()._copy(other)
        self._fault = other.fault()

    def fault(self) -> Fault:
        """A copy, because an exception collects a traceback each time it is raised."""
        return copy.copy(self._fault)


class Omit(UndefinedValue):
    """`omit`, or an inline `if` that is false and has no `else`: as a whole value it omits its key or item."""

    __slots__ = ()

    def fault(self) -> Fault:
        return Fault(
            "this omits its field (`omit`, or an `if` without `else`), so it must be the whole value of the field"
        )


class Unknown(UndefinedValue):
    """A name without a value, such as a `set` in a branch that was not taken."""

    __slots__ = ("_message",)

    def __init__(self, hint: str | None = None, name: str | None = None) -> None:
        super().__init__(name or "")
        self._message = hint

    def _copy(self, other: UndefinedValue) -> None:
        super()._copy(other)
        self._message = other._message if isinstance(other, Unknown) else None  # noqa: SLF001 - the same class

    def fault(self) -> Fault:
        return Fault(self._message or f"{self.path()} is undefined here")


OMIT = Omit("omit")


def join_path(path: str, key: object) -> str:
    if isinstance(key, str):
        key = shortened(key)
        if key.isidentifier():
            return f"{path}.{key}"
    return f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[...]"
