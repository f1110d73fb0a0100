"""The state of the render that takes place."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.language.templates.values.cost import MAX_OUTPUT, METER, Exhausted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.errors import Site

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
