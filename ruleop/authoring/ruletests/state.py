"""The state after a step: what exists, what was written, and what the last pass reported."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ruleop.errors import RuleopError, Site
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.secrets.masks import NO_MASKS, Masks
from ruleop.language.templates import FieldPath, Walk
from ruleop.planning import read_record
from ruleop.planning.model.actions import State
from ruleop.planning.model.managers import managers_on
from ruleop.planning.model.marks import PART_OF, Owner, claim_on
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Rule
    from ruleop.language.templates import TextTemplate, Tree
    from ruleop.language.templates.tree.templates import Rendering
    from ruleop.planning import Wait


# -- provenance --------------------------------------------------------------------------------------------------------
# Finds the line of a template that a field of a test's objects comes from: the pass is planned again, and shows each
# template's documents with their places.


@dataclass(slots=True)
class Provenance:
    """Where the fields of one pass come from. `plan_again` renders everything once more."""

    rule: Rule
    plan_again: Callable[[], object]
    _traced: list[Rendering] | None = field(default=None)

    def of(
        self, key: ObjectKey, path: FieldPath, cr: ObjectKey, owned: Iterable[tuple[str, ObjectKey, object]]
    ) -> Site | None:
        """The place of a field of the CR's status, or of a child's object. `owned`: with the ids of their children."""
        if key == cr:
            body = self.rule.status.body
            return self._in_body(body, path, None) if body is not None else None
        ids = {other: id_ for id_, other, _ in owned}
        child = next((each for each in self.rule.every_child if each.id == ids.get(key)), None)
        if child is None:
            return None
        return self._in_body(child.body, path, key)

    def _in_body(self, body: TextTemplate | Tree, path: FieldPath, key: ObjectKey | None) -> Site | None:
        """`key`: of one of several objects."""
        for rendered, documents, sites in self._renderings():
            if rendered is body.file:
                for document in documents:
                    if _is(document, key) if key is not None else not path or path[0] in document:
                        return Walk(document, sites).to(path, document)
        return None

    def _renderings(self) -> Sequence[Rendering]:
        if self._traced is None:
            found: list[Rendering] = []
            self._traced = found
            bodies = (*(child.body for child in self.rule.every_child), self.rule.status.body)
            templates = next((each.templates for each in bodies if each is not None), None)
            if templates is not None:
                templates.trace = found
                try:
                    self.plan_again()
                except RuleopError:
                    pass  # the failure itself says what is wrong
                finally:
                    templates.trace = None
        return self._traced


def _is(document: JSON, key: ObjectKey) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        return False
    return Kind.of(document).versionless == key.group_kind and document["metadata"].get("name") == key.name


# -- state -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Action:
    """A write, as tests name it."""

    verb: str  # of a planned write: create, patch, delete, ...
    child: str  # "" for the CR and its finalizer
    key: ObjectKey
    item: str = ""  # the name of the object by its item, such as access[joe]

    def names(self, places: Mapping[str, int]) -> tuple[str, ...]:
        """The names of the action, the clearest first. `places`: the number of objects of each child in this step."""
        if not self.verb.endswith("finalizer"):
            found = [f"{self.verb} {self.item}"] if self.item else []
            found += [f"{self.verb} {self.child}"] if places.get(self.child) == 1 else []
            return (*found, f"{self.verb} {self.key.kind}/{self.key.name}")
        return (self.verb,)


@dataclass(frozen=True, slots=True)
class Error:
    """An error of the last pass."""

    message: str
    child: str = ""
    site: Site | None = None

    def __str__(self) -> str:
        return f"{self.child}: {self.message}" if self.child else self.message


@dataclass(frozen=True, slots=True)
class After:
    """The state after a step."""

    rule: Rule | None
    owner: Owner | None
    resource: Object | None  # None: it is gone
    objects: Mapping[ObjectKey, Object] = field(default_factory=dict)
    actions: tuple[Action, ...] | None = ()  # None: not known
    waits: tuple[Wait, ...] = ()
    errors: tuple[Error, ...] = ()
    conditions: tuple[Mapping[str, Any], ...] = ()
    reports: Mapping[str, str] = field(default_factory=dict)  # child -> why it has no object, or its state
    rendered: tuple[tuple[str, str, Object], ...] = ()  # (id, template, object) in apply order
    items: Mapping[ObjectKey, str] = field(default_factory=dict)  # names of objects by their items, such as access[joe]
    masks: Callable[[], Masks] = lambda: NO_MASKS
    """The masks for a failure that is shown: of values that templates computed from Secrets. They take another plan."""

    def children(self) -> Iterator[tuple[str, ObjectKey, Object]]:
        """The objects that the CR owns or sets fields of, with the ids of their children."""
        if self.owner is not None:
            yield from owned(self.objects.values(), self.owner)


def owned(objects: Iterable[Object], owner: Owner) -> Iterator[tuple[str, ObjectKey, Object]]:
    """The objects of a CR, and those whose fields it sets, with the ids of their children."""
    for obj in objects:
        key = ObjectKey.of(obj)
        yield from ((each.child, key, obj) for each in managers_on(obj) if each.part_of == owner.part_of)
        if ((obj.get("metadata") or {}).get("labels") or {}).get(PART_OF) == owner.part_of and claim_on(
            obj, key, owner
        ).owned:
            record = read_record(obj)
            yield record.id if record is not None else "", key, obj


def child_of(name: str) -> str:
    """The id of a child, whose object is named by its item: that of access[joe] is access."""
    return name.partition("[")[0]


def named(objects: Iterable[Object], name: str) -> list[Object]:
    """The objects that Kind/name or Kind/namespace/name stands for."""
    kind, *namespace, last = name.split("/")
    return [
        obj
        for obj in objects
        if Kind.of(obj).kind == kind
        and obj["metadata"]["name"] == last
        and (not namespace or obj["metadata"].get("namespace") == namespace[0])
    ]


def described(state: State, message: str) -> str:
    """The state of a child in words."""
    return message or ("`when` is false" if state is State.UNWANTED else state.value)
