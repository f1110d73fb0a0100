"""Compiled expressions, strings, template files and trees. Each is rendered with a scope, a mapping of names to values,
and raises `Waiting` or `RenderError`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from ruleop.core.templating.template_tree.faults import located
from ruleop.core.templating.template_tree.members import add_member, spread_into
from ruleop.core.templating.values.cost import METER
from ruleop.core.templating.values.data import noun, plain, scalar_text
from ruleop.core.templating.values.faults import Fault, NotThereYet, Waiting
from ruleop.core.templating.values.text import Dump, Part, Slot, Text, flatten_parts
from ruleop.core.templating.values.undefined import OMIT, Broken, Omit, UndefinedValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.core.errors import RuleError, Site
    from ruleop.core.kinds import JSON, Kind
    from ruleop.core.templating.compile.references import Reads, Reference
    from ruleop.core.templating.template_tree.expressions import Compute
    from ruleop.core.templating.template_tree.state import Sites
    from ruleop.core.templating.template_tree.templates import File, Templates
    from ruleop.core.templating.tree.yaml_node import YamlNode


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    templates: Templates = field(repr=False)
    site: Site
    reads: Reads = field(repr=False)

    @property
    def names(self) -> frozenset[str]:
        return self.reads.names

    @property
    def references(self) -> tuple[Reference, ...]:
        return self.reads.references

    @property
    def calls(self) -> tuple[tuple[str, Site], ...]:
        return self.reads.calls

    @property
    def assigned(self) -> tuple[tuple[str, Site], ...]:
        return self.reads.assigned


@dataclass(frozen=True, slots=True, eq=False)
class TextTemplate(_Compiled):
    """A template file that renders to objects."""

    name: str
    files: frozenset[str]
    kinds: frozenset[Kind] = frozenset()
    many: bool = False

    def render(self, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        """The documents. `lenient`: a value that is not available yet omits its own field or item."""
        return self.templates.render(self.name, scope, lenient=lenient)

    def traced(self, scope: Mapping[str, Any]) -> tuple[list[JSON], Sites]:
        """The documents, with the place of each of their fields."""
        return self.templates.traced(self.name, scope)


@dataclass(frozen=True, slots=True, eq=False)
class Expression(_Compiled):
    """An expression over a scope."""

    compute: Compute = field(repr=False)
    units: int = field(repr=False)
    source: str

    def value(self, scope: Mapping[str, Any]) -> Any:
        """The value with its views, for use as a value of another scope."""
        templates = self.templates
        with templates.state, located(self.site, self.source):
            METER.spend(self.units)
            value = self.compute(templates.scope(scope))
            if isinstance(value, UndefinedValue) and value is not OMIT:
                raise value.fault()
            return value

    def evaluate(self, scope: Mapping[str, Any]) -> JSON:
        """The value as JSON; None for `omit`."""
        with self.templates.state:
            value = self.value(scope)
            with located(self.site, self.source):
                return None if isinstance(value, Omit) else plain(value)

    def truth(self, scope: Mapping[str, Any]) -> bool:
        with self.templates.state:
            value = self.value(scope)
            with located(self.site, self.source):
                return False if isinstance(value, Omit) else bool(value)


@dataclass(frozen=True, slots=True, eq=False)
class StringTemplate(_Compiled):
    """A string of watches.yaml. A single slot keeps the type of its value; anything else is text."""

    written: File | None = field(repr=False)  # None if it has no templates
    source: str
    quotation: str = field(init=False, repr=False)  # the text that messages quote: the expression, if it is one

    def __post_init__(self) -> None:
        text = self.source.strip()
        is_expression = text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1
        object.__setattr__(self, "quotation", text[2:-2].strip() if is_expression else text)

    @property
    def constant(self) -> str | None:
        return self.source if self.written is None else None

    def evaluate(self, scope: Mapping[str, Any]) -> JSON | Omit:
        """The value, or OMIT if the field is omitted."""
        with self.templates.state, located(self.site, self.quotation):
            value = self.view(scope)
            if value is None or value is OMIT:
                return OMIT
            return plain(value)

    def view(self, scope: Mapping[str, Any]) -> Any:
        """As `evaluate`, but a single slot keeps its value with its views."""
        if self.written is None:
            return self.source
        with located(self.site):
            parts = self._parts(scope)
        if len(parts) == 1 and isinstance(parts[0], Slot):
            return self._placed(parts[0].value)
        return Text(parts)

    def _parts(self, scope: Mapping[str, Any]) -> tuple[Part, ...]:
        assert self.written is not None
        METER.spend(8)
        parts: list[Part] = []
        self.written.form.write(self.templates.scope(scope), parts)
        return flatten_parts(parts)

    def _placed(self, value: Any) -> Any:
        """An undefined value keeps this place: who reads it later reports the error here, once."""
        if not isinstance(value, UndefinedValue) or value is OMIT or isinstance(fault := value.fault(), NotThereYet):
            return value
        return Broken(value.path(), fault.at(self.site, self.quotation))

    def mapping(self, scope: Mapping[str, Any]) -> dict[str, JSON]:
        """The mapping to be spread for a key without a value. Empty for null, and for text, which is an ordinary
        key."""
        with self.templates.state, located(self.site, self.quotation):
            parts = self._parts(scope)
            if len(parts) != 1 or not isinstance(parts[0], Slot):
                Text(parts).as_text()  # raises the fault of a slot in it
                return {}
            value = parts[0].value.data if isinstance(parts[0].value, Dump) else parts[0].value
            if value is None or value is OMIT:
                return {}
            data = plain(value)
            if not isinstance(data, dict):
                raise Fault(f"a key without a value spreads a mapping, and this is {noun(data)}")
            return data

    def string(self, scope: Mapping[str, Any]) -> str:
        """The value as text, for reasons, messages and names; '' if it is omitted."""
        value = self.evaluate(scope)
        with located(self.site, self.quotation):
            return "" if isinstance(value, Omit) else scalar_text(value)


@dataclass(frozen=True, slots=True)
class Member:
    key: str | StringTemplate
    site: Site  # of the key
    value: Any


@dataclass(frozen=True, slots=True)
class SlottedKeys:
    """A mapping whose keys contain templates."""

    members: tuple[Member, ...]


_COMPOUND = frozenset({dict, list, StringTemplate, SlottedKeys})


@dataclass(frozen=True, slots=True, eq=False)
class Tree(_Compiled):
    """A value of watches.yaml whose strings contain templates: an `object`, a `status`, a `let`."""

    many: ClassVar[bool] = False

    built: Any
    constant: bool
    kinds: frozenset[Kind]
    kind_mistake: RuleError | None
    node: YamlNode = field(repr=False)  # as it is written

    def evaluate(self, scope: Mapping[str, Any], *, lenient: bool = False) -> JSON | Omit:
        """The value with its strings evaluated. `lenient`: a value that is not available yet omits its own field or
        item."""
        with self.templates.state:
            return self._value(self.built, scope, lenient)

    def member(self, member: Any, scope: Mapping[str, Any]) -> JSON | Omit:
        """One member of what was built, leniently; a mistake in it is none of the others'."""
        with self.templates.state:
            return self._value(member, scope, lenient=True)

    def render(self, scope: Mapping[str, Any], *, lenient: bool = False) -> list[JSON]:
        value = self.evaluate(scope, lenient=lenient)
        return [] if isinstance(value, Omit) or value is None else [value]

    def view(self, scope: Mapping[str, Any]) -> Any:
        """As `evaluate`, but a tree that is a single string keeps the views of its slot (for `let`)."""
        with self.templates.state:
            return (
                self.built.view(scope)
                if isinstance(self.built, StringTemplate)
                else self._value(self.built, scope, lenient=False)
            )

    def _value(self, built: Any, scope: Mapping[str, Any], lenient: bool) -> Any:
        kind = type(built)
        if kind is StringTemplate:
            try:
                return built.evaluate(scope)
            except Waiting:
                if lenient:
                    return OMIT
                raise
        if kind is SlottedKeys:
            return self._slotted_mapping(built, scope, lenient)
        if kind is dict:
            result = {}
            for key, member in built.items():
                value = self._value(member, scope, lenient) if type(member) in _COMPOUND else member
                if value is not OMIT and value is not None:
                    result[key] = value
            return result
        if kind is list:
            values = (self._value(item, scope, lenient) for item in built)
            return [value for value in values if value is not OMIT and value is not None]
        return built

    def _slotted_mapping(self, built: SlottedKeys, scope: Mapping[str, Any], lenient: bool) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for member in built.members:
            try:
                self._add_member(result, member, scope, lenient)
            except Waiting:
                if not lenient:
                    raise
        return result

    def _add_member(self, result: dict[str, Any], member: Member, scope: Mapping[str, Any], lenient: bool) -> None:
        key = member.key
        computed = isinstance(key, StringTemplate)
        if isinstance(key, StringTemplate) and member.value is None:
            members = key.mapping(scope)
            with located(key.site, key.quotation):
                spread_into(result, members)
            return
        name, value = self._value(key, scope, lenient), self._value(member.value, scope, lenient)
        if name is OMIT or value is OMIT or value is None:
            return
        with located(member.site):
            add_member(result, scalar_text(name), value, computed=computed)
