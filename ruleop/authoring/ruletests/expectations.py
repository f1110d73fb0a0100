"""Compares the state after a step with its `expect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ruleop.authoring.ruletests.results import (
    CaseDifference,
    CaseFailure,
    Mismatch,
    masked,
    masks_for,
    mismatches,
    without_secret_data,
)
from ruleop.authoring.ruletests.state import child_of, named
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import item_key
from ruleop.kubernetes.schema import UNKNOWN, unknown_to_shape
from ruleop.language.secrets.secret_values import leaves_of
from ruleop.nearest import did_you_mean
from ruleop.planning.changes import NOTHING
from ruleop.planning.model.marks import MANAGED_BY, RESERVED, RULEOP
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.authoring.ruletests.dev_mode import DevMode
    from ruleop.authoring.ruletests.format import ExpectedConditionTable, ExpectTable
    from ruleop.authoring.ruletests.plan_mode import PlanMode
    from ruleop.authoring.ruletests.state import Action, After
    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.schema import Shape
    from ruleop.language.rules import Child
    from ruleop.language.rules.keys.value_types import NamedEntry, Word
    from ruleop.language.templates import YamlNode


World: TypeAlias = "PlanMode | DevMode"
"""Where a case runs: planning without a cluster, or an operator with a cluster in memory. The steps of a case call its
methods, and its expectations compare the result."""


def bare(obj: Object, expected: YamlNode) -> dict[str, Any]:
    """The object without what ruleop writes itself. Identity may be left out of an exact expectation."""
    members = expected.value if isinstance(expected.value, dict) else {}
    inner = members["metadata"].value if "metadata" in members else {}
    named_metadata = inner if isinstance(inner, dict) else {}
    metadata: dict[str, Any] = {}
    for name in ("name", "namespace"):
        if name in named_metadata:
            metadata[name] = obj["metadata"].get(name, NOTHING)
    for name in ("labels", "annotations"):
        own = {key: value for key, value in (obj["metadata"].get(name) or {}).items() if not _is_mark(key, value)}
        if own:
            metadata[name] = own
    kept = {name: value for name, value in obj.items() if name not in {"metadata", "status"}}
    for name in ("apiVersion", "kind"):
        if name not in members:
            kept.pop(name, None)
    return {**kept, "metadata": metadata} if metadata or "metadata" in members else kept


def _is_mark(key: str, value: str) -> bool:
    """Whether ruleop writes this label or annotation itself."""
    return key.startswith(RESERVED) or (key == MANAGED_BY and value == RULEOP)


def without_filled(found: JSON, sent: JSON, created: JSON, shape: Shape = UNKNOWN) -> JSON:
    """The value without what the server fills in. `created` is what it makes of the value that is sent."""
    if isinstance(found, dict) and isinstance(sent, dict) and isinstance(created, dict):
        return {
            name: without_filled(each, sent.get(name), created.get(name), _inner(shape, name))
            for name, each in found.items()
            if name in sent or created.get(name, NOTHING) != each
        }
    if not (isinstance(found, list) and isinstance(sent, list) and isinstance(created, list)):
        return found
    inner = shape.items or UNKNOWN
    if shape.list_type == "map":
        before, after = ({item_key(each, shape): each for each in items} for items in (sent, created))
        keys = [(item_key(each, shape), each) for each in found]
        return [
            without_filled(each, before.get(key), after.get(key), inner)
            for key, each in keys
            if key in before or after.get(key, NOTHING) != each
        ]
    if len(found) == len(sent) == len(created):
        return [without_filled(*each, inner) for each in zip(found, sent, created, strict=True)]
    return found


def _inner(shape: Shape, name: str) -> Shape:
    return shape.fields.get(name) or shape.values or UNKNOWN


_OWN_STATUS: Final = frozenset({"conditions", "observedGeneration"})


def failures(expect: ExpectTable | None, after: After, world: World, *, site: Site) -> Iterator[CaseFailure]:
    """The expectations that do not hold, without values of Secrets. An unexpected error is a failure. `site`: of the
    step."""
    found = [*_failures(expect, after, world, site=site)]
    if found:
        nodes = [entry.value for entry in expect.children or ()] + [expect.status] if expect is not None else []
        masks = masks_for(after, {text for node in nodes if node is not None for text in leaves_of(node.data())})
        yield from (masked(each, masks) for each in found)


def _failures(expect: ExpectTable | None, after: After, world: World, *, site: Site) -> Iterator[CaseFailure]:
    yield from _errors(expect, after, site)
    if expect is None:
        return
    checker = _Checker(expect, after, world)
    for key in expect.key_sites:
        check = _CHECKS.get(key)
        if check is not None:
            yield from check(checker)


def _errors(expect: ExpectTable | None, after: After, site: Site) -> Iterator[CaseFailure]:
    parts = expect.error if expect is not None else None
    for error in after.errors:
        if not any(part.text in str(error) for part in parts or ()):
            at = expect.key_sites.get("error", expect.site) if expect is not None else site
            yield CaseFailure("error", f"not expected: {error}", at, source=error.site)
    for part in parts or ():
        if not any(part.text in str(error) for error in after.errors):
            found = "there is no error" if not after.errors else "no error contains it"
            yield CaseFailure("error", f'expected "{part.text}", but {found}', part.site)


@dataclass(frozen=True, slots=True)
class _Missing:
    """The reason that a child has no object, and the place in the rules that decides it."""

    why: str
    site: Site | None = None


class _Checker:
    def __init__(self, expect: ExpectTable, after: After, world: World) -> None:
        self.expect, self.after, self.world = expect, after, world
        self.by_id: dict[str, list[tuple[ObjectKey, Object]]] = {}
        for id_, key, obj in after.children():
            self.by_id.setdefault(id_, []).append((key, obj))

    # -- children ------------------------------------------------------------------------------------------------------

    def children(self) -> Iterator[CaseFailure]:
        listed: set[ObjectKey] = set()
        entries = self.expect.children or ()
        site = self.expect.key_sites["children"]
        for entry in entries:
            if entry.value is not None:
                yield from self._child(entry, entry.value, listed)
        if self.expect.exact or not entries:
            for id_, key, _ in self.after.children():
                if key not in listed:
                    name = id_ if len(self.by_id[id_]) == 1 else f"{key.kind}/{key.name}"
                    yield CaseFailure(f"children.{name}", f"{key.kind}/{key.name} exists, and is not expected", site)

    def _child(self, entry: NamedEntry[YamlNode], expected: YamlNode, listed: set[ObjectKey]) -> Iterator[CaseFailure]:
        what = f"children.{entry.name}"
        found = self._found(entry.name)
        if isinstance(found, _Missing):
            yield CaseFailure(what, found.why, entry.site, source=found.site)
            return
        if len(found) > 1:
            names = ", ".join(f"{key.kind}/{key.name}" for key, _ in found)
            yield CaseFailure(what, f"has {len(found)} objects; name one of them: {names}", entry.site)
            return
        [(key, obj)] = found
        listed.add(key)
        kind = Kind.of(obj)
        shown = self._exact(key, obj, expected) if self.expect.exact else obj
        differing = [
            CaseDifference(without_secret_data(each, obj), self.world.source(key, each.path))
            for each in mismatches(
                expected,
                shown if isinstance(shown, dict) else dict(shown),
                self.world.kinds.shape_of(kind),
                exact=self.expect.exact,
            )
        ]
        if differing:
            yield CaseFailure(what, f"{key.kind}/{key.name} differs", entry.site, tuple(differing))
        for text in _unknown_nulls(expected, self.world.kinds.shape_of(kind)):
            yield CaseFailure(what, f"{key.kind}/{key.name}: {text}", entry.site)

    def _exact(self, key: ObjectKey, obj: Object, expected: YamlNode) -> Object:
        """The object without what is not compared."""
        rendered = (each for _, _, each in self.after.rendered if ObjectKey.of(each) == key)
        sent = next(rendered, None) or {**obj, "metadata": {}, **expected.data()}
        created = self.world.kinds.created(sent, obj)
        return bare(without_filled(obj, sent, created, self.world.kinds.shape_of(Kind.of(obj))), expected)

    def _found(self, name: str) -> list[tuple[ObjectKey, Object]] | _Missing:
        """The objects of a child, or why there are none."""
        if "/" in name:
            objects = named(self.after.objects.values(), name)
            missing = self._unknown(name) or _Missing(f"{name} does not exist{self._existing()}")
            return [(ObjectKey.of(obj), obj) for obj in objects] or missing
        if name in self.by_id:
            return self.by_id[name]
        if found := [each for each in self.by_id.get(child_of(name), ()) if self.after.items.get(each[0]) == name]:
            return found
        return self._unknown(name) or self._why(name)

    def _unknown(self, name: str) -> _Missing | None:
        """The mistake in a name that no child can have; None if a child can have it."""
        if "/" not in name:
            ids, name = list(self._children()), child_of(name)
            return None if name in ids else _Missing(f"the rule has no child {name}{did_you_mean(name, ids)}")
        kind = name.partition("/")[0]
        kinds = {each.kind for child in self._children().values() for each in child.kinds}
        kinds |= {key.kind for key in self.after.objects}
        return None if kind in kinds else _Missing(f"no child has the kind {kind}{did_you_mean(kind, kinds)}")

    def _existing(self) -> str:
        names = [f"{key.kind}/{key.name}" for _, key, _ in self.after.children()]
        return f"; there are {', '.join(names)}" if names else ""

    def _children(self) -> dict[str, Child]:
        rule = self.after.rule
        return {child.id: child for child in rule.every_child} if rule is not None else {}

    def _why(self, name: str) -> _Missing:
        """The reason that a child has no object."""
        if self.after.resource is None:
            return _Missing("does not exist: the CR is gone")
        for error in self.after.errors:
            if error.child == name:
                return _Missing(f"does not exist: {error.message}", error.site)
        for wait in self.after.waits:
            if wait.child == name:
                return _Missing(f"does not exist: waits for {wait.for_what}", wait.site)
        if name != child_of(name):
            items = [text for key, text in self.after.items.items() if key in self.after.objects]
            there = sorted(each for each in items if child_of(each) == child_of(name))
            return _Missing(f"does not exist; there are {', '.join(there)}" if there else "does not exist")
        when = self._children()[name].when
        why = self.after.reports.get(name, "not created")
        return _Missing(f"does not exist: {why}", when.site if when is not None else None)

    def absent(self) -> Iterator[CaseFailure]:
        for word in self.expect.absent:
            found = self._found(word.text)
            if isinstance(found, _Missing):
                unknown = self._unknown(word.text)
                if unknown is not None:
                    yield CaseFailure("absent", unknown.why, word.site)
            else:
                names = ", ".join(f"{key.kind}/{key.name}" for key, _ in found)
                yield CaseFailure(f"absent.{word.text}", f"exists: {names}", word.site)

    # -- the CR --------------------------------------------------------------------------------------------------------

    def status(self) -> Iterator[CaseFailure]:
        expected = self.expect.status
        if expected is None:
            return
        resource = self.after.resource
        if resource is None:
            yield CaseFailure("status", "the CR is gone", expected.site)
            return
        status = resource.get("status") or {}
        own = {name: value for name, value in status.items() if name not in _OWN_STATUS}
        shape = self.world.kinds.shape_of(Kind.of(resource)).fields.get("status", UNKNOWN)
        found = tuple(
            CaseDifference(each, self.world.source(ObjectKey.of(resource), each.path))
            for each in mismatches(expected, own, shape, exact=self.expect.exact)
        )
        if found:
            yield CaseFailure("status", "differs", self.expect.key_sites["status"], found)
        for text in _unknown_nulls(expected, shape):
            yield CaseFailure("status", text, expected.site)

    def conditions(self) -> Iterator[CaseFailure]:
        known = {str(each["type"]): each for each in self.after.conditions}
        rule = self.after.rule
        sites = {each.type: each.site for each in rule.status.conditions} if rule is not None else {}
        for entry in self.expect.conditions or ():
            if entry.value is None:
                continue
            if entry.name not in known:
                hint = did_you_mean(entry.name, known) or (f"; there are {', '.join(known)}" if known else "")
                yield CaseFailure(f"conditions.{entry.name}", f"the CR has no such condition{hint}", entry.site)
                continue
            differing = tuple(_condition(entry.value, known[entry.name], sites.get(entry.name)))
            if differing:
                message = str(known[entry.name].get("message") or "")
                yield CaseFailure(f"conditions.{entry.name}", message or "differs", entry.site, differing)

    def gone(self) -> Iterator[CaseFailure]:
        resource, site = self.after.resource, self.expect.key_sites["gone"]
        if self.expect.gone and resource is not None:
            ready = next((each for each in self.after.conditions if each["type"] == "Ready"), {})
            why = str(ready.get("message") or ready.get("reason") or "")
            yield CaseFailure("gone", f"the CR still exists{f': {why}' if why else ''}", site)
        elif self.expect.gone is False and resource is None:
            yield CaseFailure("gone", "the CR is gone", site)

    # -- what was done -------------------------------------------------------------------------------------------------

    def actions(self) -> Iterator[CaseFailure]:
        expected, found = self.expect.actions or (), self.after.actions
        site = self.expect.key_sites["actions"]
        if found is None:
            yield CaseFailure("actions", "are known only in mode: plan", site)
            return
        names = _action_names(found)
        if len(expected) != len(names) or any(
            word.text not in each for word, each in zip(expected, names, strict=False)
        ):
            shown = [each[0] for each in names]
            mismatch = Mismatch((), [word.text for word in expected], shown, site)
            yield CaseFailure("actions", "differ", site, (CaseDifference(mismatch),))

    def waits(self) -> Iterator[CaseFailure]:
        expected = self.expect.waits or ()
        if not expected:
            for wait in self.after.waits:
                site = self.expect.key_sites["waits"]
                yield CaseFailure(f"waits.{wait.child}", f"waits for {wait.for_what}", site, source=wait.site)
        for entry in expected:
            part: Word | None = entry.value
            reasons = [wait.for_what for wait in self.after.waits if wait.child == entry.name]
            if part is None or any(part.text in reason for reason in reasons):
                continue
            if reasons:
                message = f'expected "{part.text}", but it waits for {" and for ".join(reasons)}'
            elif (unknown := self._unknown(entry.name)) is not None:
                message = unknown.why
            else:
                message = f"does not wait: {self.after.reports.get(entry.name, 'it is not planned')}"
            yield CaseFailure(f"waits.{entry.name}", message, entry.site)


_CHECKS: Final[Mapping[str, Callable[[_Checker], Iterator[CaseFailure]]]] = {
    "children": _Checker.children,
    "absent": _Checker.absent,
    "status": _Checker.status,
    "conditions": _Checker.conditions,
    "gone": _Checker.gone,
    "actions": _Checker.actions,
    "waits": _Checker.waits,
}


def _condition(
    expected: ExpectedConditionTable, found: Mapping[str, Any], source: Site | None
) -> Iterator[CaseDifference]:
    for name, word, equal in (
        ("status", expected.status, True),
        ("reason", expected.reason, True),
        ("message", expected.message, False),
    ):
        value = str(found.get(name) or "")
        if word is not None and (word.text != value if equal else word.text not in value):
            yield CaseDifference(Mismatch((name,), word.text, value, word.site), source)


def _action_names(actions: Iterable[Action]) -> list[tuple[str, ...]]:
    actions = list(actions)
    objects: dict[str, set[ObjectKey]] = {}
    for each in actions:
        objects.setdefault(each.child, set()).add(each.key)
    places = {child: len(keys) for child, keys in objects.items() if child}
    return [each.names(places) for each in actions]


def _unknown_nulls(expected: YamlNode, shape: Shape) -> Iterator[str]:
    """Fields that are expected to be missing and that the kind does not have: probably misspelt."""
    data = expected.data()
    for finding in unknown_to_shape(data, shape) if isinstance(data, dict) else ():
        value: Any = data
        for part in finding.path:
            value = value[part]
        if value is None and finding.path[0] not in {"apiVersion", "kind", "metadata"}:
            yield str(finding)
