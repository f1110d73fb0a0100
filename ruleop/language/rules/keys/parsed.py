"""Parsed files of watches, and each watch joined with the shared values of its files, with the environment variables in
them and the owners that it does not name.

Shared values come from watches.yaml, then from the included file of the watch, then from the watch itself. Inner values
win: a var replaces the var of the same name; a let replaces the let of the same name in its position, where it sees
only earlier names. `apply` is joined key by key, and its lists `ignore` and `own` are concatenated.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ruleop.files import is_utf8
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import JSON, GroupKind, Kind
from ruleop.language.rules.findings import Findings
from ruleop.language.rules.keys.model import JOBS
from ruleop.language.rules.keys.tables import TableOf
from ruleop.language.rules.keys.value_types import NamedEntry, Word, wrong_type
from ruleop.language.rules.keys.watches_yaml import (
    WATCHES,
    ApplyTable,
    ChildTable,
    FileTable,
    IgnoreTable,
    ObserveTable,
    WatchTable,
    kind_in_version,
)
from ruleop.language.templates import NotJson, resolve_scalar
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.language.rules.keys.model import Strategy
    from ruleop.language.rules.keys.value_types import FileReading, PlacedPath, Templated
    from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree, YamlNode


# -- environment variables ---------------------------------------------------------------------------------------------
#
# ${NAME} and ${NAME:-default} in `vars`, the only access of rules to environment variables. The variables that are read
# are recorded, because their values are part of the digest of the project.


# A default ends at the first `}` outside of quotes.
REFERENCE = re.compile(r"""\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-("[^"]*"|'[^']*'|[^}]*))?\}""", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


@dataclass(slots=True)
class EnvVars:
    """The environment variables, and those that were read."""

    variables: Mapping[str, str]
    read: dict[str, str | None] = field(default_factory=dict)
    defaults: dict[str, str | None] = field(default_factory=dict)  # None without one, "" for several

    def get(self, name: str, default: str | None) -> str | None:
        known = self.defaults.get(name, default)
        self.defaults[name] = default if known == default else None if None in {known, default} else ""
        self.read[name] = self.variables.get(name)
        return self.read[name]


@dataclass(frozen=True, slots=True)
class Constants:
    """Reads the constants of a rule, and substitutes environment variables in their strings."""

    environment: EnvVars
    findings: Findings

    def without_values(self) -> Constants:
        """Reads the same constants with the names of variables that are set, instead of their values, which may be
        secret. Mistakes are reported elsewhere."""
        names = {name: f"${{{name}}}" if value else value for name, value in self.environment.variables.items()}
        return Constants(EnvVars(names), Findings({}))

    def read(self, node: YamlNode) -> JSON:
        value = node.value
        if isinstance(value, dict):
            return {name: self.read(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.read(item) for item in value]
        if isinstance(value, str):
            return self._text(value, node.site)
        return value

    def _text(self, text: str, site: Site) -> JSON:
        rest = REFERENCE.sub("", text)
        if "${" in rest:
            self._mistake(f'"{text}" holds a `${{` that is neither ${{NAME}} nor ${{NAME:-default}}', site)
        if "{{" in rest or "{%" in rest:
            message = "vars are constants without templates, so this is plain text: use `let`"
            self.findings.warning("elsewhere", message, site)
        if whole := REFERENCE.fullmatch(text):
            return self._value(whole, site)
        return REFERENCE.sub(lambda match: self._resolve(match[1], match[2], site), text)

    def _value(self, match: re.Match[str], site: Site) -> JSON:
        """The value of a string that is a single reference. It has the type of its default, if that is an unquoted
        number or boolean."""
        name, default = match[1], match[2]
        value = self._resolve(name, default, site)
        if default is None:
            return value
        if default in _BOOLEANS:
            if value.lower() in _BOOLEANS:
                return _BOOLEANS[value.lower()]
            self._mistake(f"the variable {name} must be true or false, like its default", site)
        elif _NUMBER.fullmatch(default):
            with contextlib.suppress(NotJson):
                if _NUMBER.fullmatch(value.strip()):
                    return resolve_scalar(value.strip())
            self._mistake(
                (
                    f"the variable {name} must be a number, like its default; "
                    f'put the default in quotes for text: ${{{name}:-"{default}"}}'
                ),
                site,
            )
        return value

    def _resolve(self, name: str, default: str | None, site: Site) -> str:
        if default is not None and len(default) > 1 and default[0] in "'\"" and default[-1] == default[0]:
            default = default[1:-1]
        value = self.environment.get(name, default)
        if value is not None and not is_utf8(value):
            self._mistake(f"the variable {name} is not valid UTF-8", site)
            return ""
        # As in a shell, `:-` also applies to empty values.
        if value or (value is not None and default is None):
            return value
        if default is not None:
            return default
        self._mistake(f"the variable {name} is not set: set it, or write a default, ${{{name}:-default}}", site)
        return ""

    def _mistake(self, message: str, site: Site) -> None:
        self.findings.mistake("environment", message, site)


# -- owner chains ------------------------------------------------------------------------------------------------------
#
# The kinds whose objects are known to own others, as the controllers of Kubernetes write ownerReferences. The watches
# of `ownedBy` have to be known before there is any object, so owners in between are found by kind.

_POD: Final = Kind("", "v1", "Pod")
_REVISION: Final = Kind("apps", "v1", "ControllerRevision")
_OWNED: Final[Mapping[GroupKind, tuple[Kind, ...]]] = MappingProxyType(
    {
        GroupKind("apps", "Deployment"): (Kind("apps", "v1", "ReplicaSet"),),
        GroupKind("apps", "ReplicaSet"): (_POD,),
        GroupKind("apps", "StatefulSet"): (_POD, _REVISION),
        GroupKind("apps", "DaemonSet"): (_POD, _REVISION),
        GroupKind("batch", "CronJob"): (Kind("batch", "v1", "Job"),),
        GroupKind("batch", "Job"): (_POD,),
        GroupKind("", "ReplicationController"): (_POD,),
        GroupKind("", "Service"): (Kind("discovery.k8s.io", "v1", "EndpointSlice"),),
    }
)
"""By owner. No kind owns itself, also through others."""


def kinds_between(owner: GroupKind, owned: GroupKind) -> tuple[Kind, ...] | None:
    """The kinds of the owners in between, outermost first; empty if the owner owns such objects itself. None if it is
    not known to own any."""
    for kind in _OWNED.get(owner, ()):
        if kind.versionless == owned:
            return ()
        if (inner := kinds_between(kind.versionless, owned)) is not None:
            return (kind, *inner)
    return None


def chain_of(table: ObserveTable, owner: Kind) -> tuple[Kind, ...] | None:
    """The kinds of owners between objects of the kind `owner` and those that are observed; None if it is not known."""
    if "through" in table.key_sites:
        return tuple(map(kind_in_version, table.through))
    return kinds_between(owner.versionless, table.object_kind.versionless)


# -- drafts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared values that apply to a watch."""

    vars: Mapping[str, JSON] = field(default_factory=dict)
    let: tuple[NamedEntry[Templated[Tree]], ...] = ()
    applies: tuple[ApplyTable, ...] = ()  # outermost first
    from_environment: frozenset[str] = frozenset()  # the vars that read environment variables
    public_vars: Mapping[str, JSON] = field(default_factory=dict)  # with names of variables instead of their values

    def within(self, table: FileTable | WatchTable, constants: Constants) -> Shared:
        """The shared values, extended by those of an inner table."""
        own_vars = constants.read(table.vars) if table.vars is not None else {}
        own_reads = {name for name, node in _members(table.vars) if REFERENCE.search(str(node.data()))}
        let = {entry.name: entry for entry in self.let} | {entry.name: entry for entry in table.let}
        return Shared(
            {**self.vars, **own_vars},
            tuple(let.values()),
            (*self.applies, table.apply) if table.apply else self.applies,
            (self.from_environment - own_vars.keys()) | own_reads,
            {
                **self.public_vars,
                **(constants.without_values().read(table.vars) if own_reads and table.vars else own_vars),
            },
        )


def _members(node: YamlNode | None) -> Iterable[tuple[str, YamlNode]]:
    return node.value.items() if node is not None and isinstance(node.value, dict) else ()


@dataclass(frozen=True, slots=True)
class ChildDraft:
    id: str
    site: Site
    table: ChildTable
    final: bool
    applies: tuple[ApplyTable, ...]  # outermost first; the last may be the child's own; none of one with `patch`

    @property
    def body(self) -> Templated[TextTemplate] | Templated[Tree] | None:
        given = self.table.objects
        return self.table.template or self.tree or (given.body if given is not None else None)

    @property
    def tree(self) -> Templated[Tree] | None:
        """The object, or the fields of one, that is in the file of watches."""
        return self.table.object or (self.table.patch.body if self.table.patch is not None else None)

    @property
    def has_items(self) -> bool:
        return bool({"forEach", "objects"} & self.table.key_sites.keys())

    @property
    def given_kinds(self) -> list[tuple[Kind, Site]]:
        """The kinds of `objects`."""
        return [(kind_in_version(word), word.site) for word in self.table.kinds]

    @property
    def kinds(self) -> frozenset[Kind]:
        if self.table.kinds:
            return frozenset(kind for kind, _ in self.given_kinds)
        return self.body.compiled.kinds if self.body else frozenset()

    @property
    def many(self) -> bool:
        return (
            self.has_items
            or self.table.for_each_of is not None
            or (self.table.template is not None and self.table.template.compiled.many)
            or (self.table.patch is not None and self.table.patch.selector is not None)
        )

    @property
    def loops(self) -> tuple[NamedEntry[Templated[Expression]], ...]:
        """The loops of `forEach` with the names of their items, outermost first; and that of `objects`."""
        if (given := self.table.objects) is not None:
            return (NamedEntry("item", self.site, given.each),)
        alone = self.table.item_name or Word("item", self.site)
        return tuple(
            each if each.name else replace(each, name=alone.text, site=alone.site) for each in self.table.for_each or ()
        )

    @property
    def run(self) -> Templated[StringTemplate] | None:
        """The request id or the schedule: an object is made once for each run."""
        return self.table.once or self.table.schedule

    @property
    def strategy(self) -> Strategy | None:
        if self.table.patch is not None:
            return "server-side"
        if self.run is not None:
            return "create-only"
        return next((apply.strategy for apply in reversed(self.applies) if apply.strategy), None)

    @property
    def create_only(self) -> bool:
        if self.strategy is not None:
            return self.strategy == "create-only"
        return bool(self.kinds) and all(kind.versionless == JOBS for kind in self.kinds)

    @property
    def on_immutable(self) -> Templated[StringTemplate] | None:
        return next((apply.on_immutable for apply in reversed(self.applies) if apply.on_immutable), None)

    @property
    def ignore(self) -> tuple[IgnoreTable, ...]:
        return tuple(ignored for apply in self.applies for ignored in apply.ignore or ())

    @property
    def own(self) -> tuple[PlacedPath, ...]:
        return tuple(owned for apply in self.applies for owned in apply.own or ())


@dataclass(frozen=True, slots=True)
class Draft:
    """A parsed watch, before checks that involve several values."""

    table: WatchTable
    kind: Kind
    vars: Mapping[str, JSON]
    let: tuple[NamedEntry[Templated[Tree]], ...]
    children: Mapping[str, ChildDraft]
    final: Mapping[str, ChildDraft]
    observed: Mapping[str, NamedEntry[ObserveTable]]
    from_environment: frozenset[str] = frozenset()  # the vars that read environment variables
    public_vars: Mapping[str, JSON] = field(default_factory=dict)  # with names of variables instead of their values

    def looped(self, child: ChildDraft) -> ChildDraft:
        """The child whose loops give this one its items: itself, or the child that it names in `forEachOf`."""
        other = child.table.for_each_of
        return child if other is None else self.children.get(other.text, child)

    def peers(self, child: ChildDraft) -> Mapping[str, ChildDraft]:
        """The children that are rendered together with this one. One with `forEachOf` is rendered alone."""
        if not child.final:
            return self.children
        together = child.table.for_each_of is None
        return {id_: each for id_, each in self.final.items() if together and each.table.for_each_of is None}

    @property
    def is_builtin(self) -> bool:
        """Whether the API server has the watched kind without a CRD."""
        return builtin_resource(self.kind.versionless) is not None

    @property
    def everyone(self) -> Iterator[ChildDraft]:
        yield from self.children.values()
        yield from self.final.values()


def join(table: WatchTable, shared: Shared, constants: Constants) -> Draft | None:
    """A watch joined with the shared values of its files; None if its kind is invalid."""
    if table.version is None or table.kind is None:
        return None
    shared = shared.within(table, constants)
    return Draft(
        table=table,
        kind=Kind(table.group.text, table.version.text, table.kind.text),
        vars=shared.vars,
        let=shared.let,
        children=_children(table.children, shared, final=False),
        final=_children(table.finalize, shared, final=True),
        observed={entry.name: entry for entry in table.observe},
        from_environment=shared.from_environment,
        public_vars=shared.public_vars,
    )


def _children(entries: tuple[NamedEntry[ChildTable], ...], shared: Shared, *, final: bool) -> dict[str, ChildDraft]:
    found: dict[str, ChildDraft] = {}
    for entry in entries:
        if (table := entry.value) is not None:
            applies = (*shared.applies, table.apply) if table.apply is not None else shared.applies
            found[entry.name] = ChildDraft(
                entry.name, entry.site, table, final, () if table.patch is not None else applies
            )
    return found


def read_file(node: YamlNode, reading: FileReading) -> FileTable | None:
    """Parses a file of watches in either form."""
    if isinstance(node.value, list):
        return FileTable(site=node.site, key_sites={}, watches=WATCHES.read(node, "", reading) or ())
    if isinstance(node.value, dict) and "kind" in node.value and "watches" not in node.value:
        message = "a watch must be an item of a list: start it with `- `, and indent its keys"
        reading.findings.mistake("wrong-type", message, node.site)
        return None
    if isinstance(node.value, dict):
        return TableOf(FileTable).read(node, "", reading)
    wrong_type(node, "a file of watches", 'a list of watches, or a mapping with the key "watches"', reading)
    return None
