"""The state of the render that takes place: the names that a template sees, its account, and the places of fields."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.language.templates.values.cost import MAX_OUTPUT, METER, Exhausted
from ruleop.language.templates.values.data import Lazy
from ruleop.language.templates.values.undefined import Unknown
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON


# -- scope -------------------------------------------------------------------------------------------------------------
#
# From the innermost block to the whole render.

_NOTHING: Final = object()


class Scope:
    """The names of one pass of a loop, one call of a macro or one render; others are those of the scope around it."""

    __slots__ = ("defaults", "names", "outer", "root")

    def __init__(
        self,
        names: dict[str, Any],
        outer: Scope | None = None,
        root: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """`root`: the names of the render, before a template sets any. `defaults`: those of all renders."""
        self.names = names
        self.outer = outer
        if outer is None:
            self.root: Mapping[str, Any] = {} if root is None else root
            self.defaults: Mapping[str, Any] = {} if defaults is None else defaults
        else:
            self.root, self.defaults = outer.root, outer.defaults

    def get(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name, _NOTHING)
            if found is not _NOTHING:
                return found.value() if type(found) is Lazy else found
            scope = scope.outer
        found = self.root.get(name, _NOTHING)
        if found is _NOTHING:
            found = self.defaults.get(name, _NOTHING)
            if found is _NOTHING:
                return Unknown(name=name)
        return found.value() if type(found) is Lazy else found

    def inner(self, names: dict[str, Any] | None = None) -> Scope:
        return Scope({} if names is None else names, self)


# -- state -------------------------------------------------------------------------------------------------------------

Places: TypeAlias = "dict[str | int, Site]"


charge_render: Final = METER.charge
"""Charges for what a render makes: a printed value, a mapping, a list, what a macro gives."""


class Sites:
    """The places of what was rendered."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Places]] = {}  # by the id of each mapping and list, which is kept for that

    def note(self, collection: Any, places: Places) -> None:
        """Notes the places of entries or items."""
        if (known := self._found.get(id(collection))) is not None:
            known[1].update(places)
        else:
            self._found[id(collection)] = (collection, dict(places))

    def of(self, collection: Any) -> Places:
        """The place of each entry or item."""
        return self._found.get(id(collection), (None, {}))[1]


class State(threading.local):
    """One per project and thread, so that two threads may render at once. `with state:` begins an evaluation, whose
    account nested ones share."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drops the state of an evaluation that was interrupted, perhaps where it was to be restored."""
        self.lenient = False  # a value that is not available yet omits its own field or item
        self.weight = 0  # the characters of its values
        self.depth = 0  # of evaluations inside others
        self.renders = 0  # nested calls of render()
        self.before = 0  # the mark of the account at the start of the outermost evaluation
        self.sites: Sites | None = None  # where the places of fields are noted

    def __enter__(self) -> None:
        own = self.__dict__  # that of the thread, which is looked up for each attribute
        if not own["depth"]:
            own["before"] = METER.begin(outermost=True)
        own["depth"] += 1

    def __exit__(self, *_: object) -> None:
        own = self.__dict__
        own["depth"] -= 1
        if not own["depth"]:
            METER.give_back(own["before"])

    def begin(self, *, lenient: bool) -> tuple[bool, int]:
        """Begins the evaluation of documents. Returns the state of that around it, for `end`."""
        own = self.__dict__
        if not own["depth"]:
            own["before"] = METER.begin(outermost=True)
        own["depth"] += 1
        outer = own["lenient"], own["weight"]
        own["lenient"], own["weight"] = lenient, 0
        return outer

    def end(self, outer: tuple[bool, int]) -> None:
        """Ends it, and restores this state."""
        own = self.__dict__
        own["lenient"], own["weight"] = outer
        own["depth"] -= 1
        if not own["depth"]:
            METER.give_back(own["before"])

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Begins an evaluation whose result outlives it, and so may all that it makes."""
        with self:
            mark = METER.begin(outermost=False)
            try:
                yield
            finally:
                METER.retain(mark)

    def made(self, text: str) -> None:
        """Charges for a text that is a value of a document."""
        METER.text(text)
        self.weigh(len(text))

    def weigh(self, characters: int) -> None:
        own = self.__dict__
        own["weight"] = weight = own["weight"] + characters
        if weight > MAX_OUTPUT:
            raise Exhausted(f"the printed values have more than {MAX_OUTPUT:,} characters")

    def note(self, collection: Any, key: str | int, site: Site) -> None:
        """Notes the place of an entry or an item, if anybody asks."""
        if self.sites is not None and site.path:
            self.sites.note(collection, {key: site})


# -- field sites -------------------------------------------------------------------------------------------------------
#
# Finds the line of a template that a field of a rendered object comes from.
#
# Nothing is noted while templates are rendered. For a message about a field, the template is rendered once more, and
# notes the place of each entry and item. A field whose name or value was printed has the line of that `{{ }}`.


@dataclass(frozen=True, slots=True)
class ItemStep:
    """An item of a list, by the fields that identify it, or by its position."""

    position: int  # among the actual items; -1 for a missing one
    keys: tuple[tuple[str, JSON], ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.keys) if self.keys else str(self.position)
        return f"[{inside}]"


FieldPath: TypeAlias = tuple[str | ItemStep, ...]


@dataclass(slots=True)
class Walk:
    """From the root of a document to a field."""

    document: JSON
    sites: Sites

    def to(self, path: FieldPath, data: JSON) -> Site | None:
        """The place of the field, or of its nearest parent in the template; None for fields that it does not render.
        `data`: the object that the path is of, if its lists may have other items."""
        site: Site | None = None
        at = self.document
        for part in path:
            key = part if isinstance(part, str) else _place(part, at if data is None else data)
            found = self.sites.of(at).get(key)
            if found is None:
                return site
            site = found
            at = _member(at, key)
            data = None if data is None else _inside(data, part)
        return site


def _member(data: JSON, key: str | int) -> JSON:
    if isinstance(data, dict):
        return data.get(str(key))
    return data[key] if isinstance(data, list) and isinstance(key, int) and key < len(data) else None


def _place(item: ItemStep, data: JSON) -> int:
    """The position of an item in the rendered list; a large number if it is not there."""
    if not item.keys:
        return item.position if item.position >= 0 else 1 << 30
    for place, each in enumerate(data if isinstance(data, list) else ()):
        if isinstance(each, dict) and all(each.get(name) == value for name, value in item.keys):
            return place
    return 1 << 30


def _inside(data: JSON, part: str | ItemStep) -> JSON:
    if isinstance(part, str):
        return data.get(part) if isinstance(data, dict) else None
    place = _place(part, data)
    return data[place] if isinstance(data, list) and place < len(data) else None
