"""The slots of a child that print data of the custom resource, and the fields that the data comes from.

Values are followed through `let`, the items of `forEach`, variables, loops and macros. What a condition decides is not
followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.crd import declares, definition_of
from ruleop.language.rules.scopes import possible_in, written
from ruleop.language.templates.compile import origins_of, slots_from
from ruleop.language.templates.filters.registry import filters_that_give

if TYPE_CHECKING:
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.schema import Schema
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import SlotPlace, YamlNode, syntax
    from ruleop.language.templates.bodies.body import Body

Path = tuple[str | None, ...]
"""A field of the CR, such as ("spec", "image"); a computed step is None. ("item",) is an item of
`forEach`, and ("other", "db", "spec") a field of another object."""
IsSource = Callable[[Path], bool]
_Origins = Mapping["SlotPlace", "frozenset[Path]"]

NUMBERS: Final = filters_that_give(frozenset({"integer", "number"})) | {"sum"}
"""Filters whose results are numbers. `sum` also gives lists, with `start=[]`."""
_LET, _OTHER, _ITEM = "let", "other", "item"


@dataclass(slots=True)
class Sources:
    """Of one watch."""

    watch: Watch
    loaded: Loaded
    _origins: dict[tuple[int, frozenset[str], frozenset[str], bool], _Origins] = field(default_factory=dict)
    _free: dict[frozenset[Path], IsSource] = field(default_factory=dict)

    @property
    def body_parts(self) -> list[RulePart]:
        return [part for part in self.watch.parts if part.body]

    def bodies(self, part: RulePart) -> tuple[Body, ...]:
        return possible_in(part, self.loaded.library).bodies

    @property
    def crd(self) -> CustomResourceDefinition | None:
        return definition_of(self.watch.rule.kind, self.loaded.project.crds)

    @property
    def crd_file(self) -> str:
        """The file of crds/ that has the kind; "" if there is none."""
        kind = self.watch.rule.kind
        words = (rf"\bkind\W+{re.escape(kind.kind)}\b", rf"\bgroup\W+{re.escape(kind.group)}")
        files = (path for path in self.loaded.files if path.startswith("crds/"))
        return next((path for path in files if all(re.search(word, self.loaded.files[path]) for word in words)), "")

    def places(
        self,
        part: RulePart,
        is_source: IsSource,
        *,
        clean: frozenset[str] = frozenset(),
        functions: frozenset[str] = frozenset(),
        by_item: bool = False,
    ) -> frozenset[SlotPlace]:
        """The slots whose values come from fields that `is_source` accepts, or from results of `functions`. After the
        filters of `clean` they do not. `by_item`: an item of `forEach` is a field of its own."""
        lets = {each.let: each for each in self.watch.parts if each.let}
        found: dict[Path, bool] = {}

        def accepts(path: Path) -> bool:
            if path[0] == "cr":
                path = path[1:] or ("spec",)
            known = found.get(path)
            if known is None:
                found[path] = False  # a let that reads itself is a mistake of its own
                known = found[path] = of_let(path) if path[0] == _LET else is_source(path)
            return known

        def of_let(path: Path) -> bool:
            """Whether the part of a let contains one of the slots."""
            let = lets[path[1] or ""]
            sites = {site for _, site in _part_of(let.node, path[2:]).texts()}
            inside = {
                place: paths for place, paths in self._origins_in(let, clean=clean).items() if place.site in sites
            }
            return bool(slots_from(inside, accepts))

        return slots_from(self._origins_in(part, clean=clean, functions=functions, by_item=by_item), accepts)

    def _origins_in(
        self,
        part: RulePart,
        *,
        clean: frozenset[str],
        functions: frozenset[str] = frozenset(),
        by_item: bool = False,
    ) -> _Origins:
        key = id(part), clean, functions, by_item
        found = self._origins.get(key)
        if found is None:
            names = self._names(part, by_item=by_item)
            trees = [*written(part, self.loaded.library), *([] if by_item or part.let else self._loop(part))]
            found = self._origins[key] = origins_of(trees, names, clean=clean, functions=functions)
        return found

    def schema(self, path: Path) -> Schema | None:
        """The schema of a field of the CR; None if it is unknown."""
        version = self.crd.version(self.watch.rule.kind.version) if self.crd is not None else None
        found: Any = version.schema if version is not None else None
        for step in path:
            if not isinstance(found, Mapping):
                return None
            found = _below(found, step)
        return found if isinstance(found, Mapping) and found else None

    def is_of_spec(self, path: Path) -> bool:
        """Whether a CR can have the field: the API server drops what the CRD does not declare."""
        if path[0] != "spec":
            return False
        version = self.crd.version(self.watch.rule.kind.version) if self.crd is not None else None
        known = takewhile(lambda step: step is not None, path)
        return version is None or declares(version.schema, tuple(step for step in known if step))

    def free(self, part: RulePart) -> IsSource:
        """Whether the author of a CR decides the text of a field: neither the CRD bounds it, nor does `validate` or
        `when` of the child read it. The same function for equal children."""
        checked = frozenset(
            reference.path[1:] if reference.path[0] == "cr" else reference.path
            for each in self.watch.parts
            if each.key == "validate" or (each.key == "when" and each.child is part.child)
            for reference in each.compiled.references
        )
        return self._free.setdefault(checked, partial(self._is_free, checked))

    def _is_free(self, checked: frozenset[Path], path: Path) -> bool:
        if not self.is_of_spec(path) or is_bounded(self.schema(path)) or self._has_rule(path):
            return False
        return all(each[: len(path)] != path for each in checked)

    def _has_rule(self, path: Path) -> bool:
        """Whether a rule of the CRD about one of its parents mentions the field."""
        name = next((step for step in reversed(path) if step), "")
        parents = (self.schema(path[:length]) or {} for length in range(len(path)))
        rules = (each.get("rule", "") for parent in parents for each in parent.get("x-kubernetes-validations") or ())
        return any(re.search(rf"\b{re.escape(name)}\b", rule) for rule in rules)

    def _plain_names(self) -> dict[str, list[Path]]:
        draft = self.watch.draft
        others = [*draft.children, *draft.final, *draft.observed, "live", "ready", "this"]
        names: dict[str, list[Path]] = {name: [(_OTHER, name)] for name in others}
        return names | {name: [(name,)] for name in ("cr", "metadata", "spec", "status")}

    def _names(self, part: RulePart, *, by_item: bool) -> dict[str, list[Path]]:
        names = self._plain_names() | {each.let: [(_LET, each.let)] for each in self.watch.parts if each.let}
        if part.view.index:
            names["index"] = [(_ITEM, "index")]
        if by_item:
            names |= {item: [(_ITEM, item)] for item in part.view.items}
        return names

    def _loop(self, part: RulePart) -> list[syntax.Template]:
        """Loops that give the items of `forEach` their values."""
        loops = [each for each in self.watch.parts if each.gives_items_to(part)]
        return [self.loaded.library.written_string(each.loop_text, each.site) for each in loops]


def _part_of(node: YamlNode, steps: Iterable[str | None]) -> YamlNode:
    """The part of a let that a path names, as far as it is written out."""
    for step in steps:
        if isinstance(node.value, dict) and step in node.value:
            node = node.value[step]
    return node


def is_bounded(schema: Schema | None) -> bool:
    """Whether the schema of a field excludes arbitrary text."""
    if schema is None:
        return False
    if schema.get("enum") or schema.get("pattern") or schema.get("x-kubernetes-validations"):
        return True
    kind = schema.get("type")
    if kind == "array":
        return is_bounded(schema.get("items"))
    if kind == "object":
        inner = list((schema.get("properties") or {}).values())
        inner += [others] if isinstance(others := schema.get("additionalProperties"), Mapping) else []
        return bool(inner) and all(map(is_bounded, inner)) and not schema.get("x-kubernetes-preserve-unknown-fields")
    return kind in ("boolean", "integer", "number")


def _below(schema: Mapping[str, Any], step: str | None) -> Any:
    """The schema of a field or an item. An item of a mapping is its value, or in a loop a key and a value."""
    properties = schema.get("properties") or {}
    if step is not None and step in properties:
        return properties[step]
    if step is None and "items" in schema:
        return schema["items"]
    others = schema.get("additionalProperties")
    if step is None and isinstance(others, Mapping):
        in_loop = {"key": {"type": "string"}, "value": others}
        return {**others, "properties": {**in_loop, **(others.get("properties") or {})}}
    return others if isinstance(others, Mapping) else None
