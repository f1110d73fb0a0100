"""Tables: mappings with keys of the language. Each is a frozen dataclass whose fields are declared with `key`. The
declaration is the only definition of the name, type, default and meaning of a key, for parsing as well as for the JSON
Schema."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload

from ruleop.language.rules.findings import format_list
from ruleop.language.rules.keys.value_types import FileReading, ValueType, wrong_type
from ruleop.nearest import did_you_mean_quoted, nearest
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.templates import YamlNode

T = TypeVar("T")
R = TypeVar("R", bound="Table")


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    type: ValueType[Any]
    doc: str
    default: JSON = None  # as written in YAML
    required: bool = False


@overload
def key(name: str, type: ValueType[T], doc: str, *, required: bool = ...) -> T | None: ...
@overload
def key(name: str, type: ValueType[T], doc: str, *, default: JSON) -> T: ...
def key(name: str, type: ValueType[Any], doc: str, *, default: JSON = None, required: bool = False) -> Any:  # noqa: A002 - the clearest name
    """Declares a key of a table. Without a default, the value is None if the key is missing."""
    value = None if default is None else type.of(default)
    return dataclasses.field(default=value, metadata={"key": Key(name, type, doc, default, required)})


class Constraint(ABC):
    """A constraint on the keys of a table."""

    @abstractmethod
    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        """The message and the key it concerns ("" for the table), if the constraint is violated."""

    @abstractmethod
    def schema(self) -> dict[str, JSON]: ...


@dataclass(frozen=True, slots=True)
class ExactlyOne(Constraint):
    keys: tuple[str, ...]

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        found = [name for name in self.keys if name in members]
        if len(found) == 1:
            return None
        if found:
            return f"has both {format_list(found[:2])}: remove one of them", found[1]
        return f"needs {format_list(self.keys, last='or')}", ""

    def schema(self) -> dict[str, JSON]:
        return {"oneOf": [{"required": [name]} for name in self.keys]}


@dataclass(frozen=True, slots=True)
class AtMostOne(Constraint):
    keys: tuple[str, ...]

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        found = [name for name in self.keys if name in members][:2]
        if len(found) > 1:
            return f"has both {format_list(found)}: remove one of them", found[1]
        return None

    def schema(self) -> dict[str, JSON]:
        pairs: list[JSON] = [{"required": [*pair]} for pair in combinations(self.keys, 2)]
        return {"not": pairs[0] if len(pairs) == 1 else {"anyOf": pairs}}


@dataclass(frozen=True, slots=True)
class Needs(Constraint):
    key: str
    other: str
    or_else: str = ""  # a key that will do as well

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        if self.key in members and members.keys().isdisjoint({self.other, self.or_else}):
            instead = f' or "{self.or_else}"' if self.or_else else ""
            return f'has "{self.key}", which requires "{self.other}"{instead}', self.key
        return None

    def schema(self) -> dict[str, JSON]:
        if not self.or_else:
            return {"dependentRequired": {self.key: [self.other]}}
        return {"dependentSchemas": {self.key: {"anyOf": [{"required": [self.other]}, {"required": [self.or_else]}]}}}


@dataclass(frozen=True, slots=True)
class NotBesideMapping(Constraint):
    """The key has no meaning where the value of the other key is a mapping."""

    key: str
    other: str

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        if self.key in members and self.other in members and isinstance(members[self.other].value, dict):
            return f'has "{self.key}", and the names in "{self.other}": remove "{self.key}"', self.key
        return None

    def schema(self) -> dict[str, JSON]:
        mapping: JSON = {"properties": {self.other: {"type": "object"}}, "required": [self.other]}
        return {"if": mapping, "then": {"not": {"required": [self.key]}}}


@dataclass(frozen=True, slots=True)
class Excludes(Constraint):
    """Keys that have no meaning beside another one."""

    key: str
    others: tuple[str, ...]
    why: str

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        found = next((name for name in self.others if name in members), "")
        if self.key in members and found:
            return f'has "{self.key}" and "{found}": remove "{found}", because {self.why}', found
        return None

    def schema(self) -> dict[str, JSON]:
        return {"if": {"required": [self.key]}, "then": {"properties": dict.fromkeys(self.others, False)}}


@dataclass(frozen=True, slots=True)
class Table:
    """A parsed mapping with known keys. `key_sites` has all keys of the mapping, valid or not, with their sites."""

    TITLE: ClassVar[str]  # the name of the table in messages
    DEFINITION: ClassVar[str]  # its name in the JSON Schema
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = ()

    site: Site
    key_sites: dict[str, Site]


def keys(table: type[Table]) -> Iterator[tuple[str, Key]]:
    """The fields of a table and their keys."""
    for field in dataclasses.fields(table):
        if "key" in field.metadata:
            yield field.name, field.metadata["key"]


# -- keys of other tools -----------------------------------------------------------------------------------------------
#
# Unknown keys with the keys that do the same: those of former versions, and those of other operators' files. People
# paste them: the file of Operator SDK has the same name, and a child has much in common with a task of Ansible or a
# resource of kro.

_NO_PLAYBOOKS: Final = "ruleop runs no playbooks and roles: write the objects as templates under `children`"
_NO_CHARTS: Final = "ruleop runs no charts: `ruleop init --from-manifests` makes templates of what a chart renders"
_ALWAYS: Final = "ruleop always does: remove the key"
_FOR_EACH: Final = "write `forEach`, with an expression"
_WAIT: Final = "write `waitFor` in the child that waits, or `readyWhen`"
_LOOKUP: Final = "name the object under `observe` in the watch"
_READ: Final = "other children read this child by its id"
_NO_STEPS: Final = "write each object under `children`: ruleop finds the order"

_OF_A_WATCH: Final = {
    # Operator SDK: Ansible and Helm
    "playbook": _NO_PLAYBOOKS,
    "role": _NO_PLAYBOOKS,
    "chart": _NO_CHARTS,
    "overrideValues": "write `vars`, or defaults in the templates",
    "watchDependentResources": _ALWAYS,
    "watchClusterScopedResources": "write `reach: cluster`",
    "watchAnnotationsChanges": _ALWAYS,
    "maxRunnerArtifacts": "ruleop starts no runner: remove the key",
    "snakeCaseParameters": "names of fields stay as they are in the CR: remove the key",
    "markUnsafe": "values of a CR are never templates: remove the key",
    "blacklist": "write `apply.ignore` in the child, or leave the kind out",
    "dryRunOption": "use `ruleop run --dry-run`",
    "finalizer": "write `finalize`; ruleop sets its finalizer itself",
    # kro
    "resources": "write `children`, a mapping of ids",
    "apiVersion": "write `group` and `version`",
    # Crossplane
    "compositeTypeRef": "write `group`, `version` and `kind`",
    "pipeline": _NO_STEPS,
    # Metacontroller
    "parentResource": "write `group`, `version` and `kind`",
    "childResources": "write `children`: ruleop finds their kinds",
    "hooks": "ruleop calls no hooks: write `children`, `status` and `finalize`",
    "resyncPeriodSeconds": "write `reconcilePeriod: 10m`",
}
_OF_A_CHILD: Final = {
    # Ansible
    **dict.fromkeys(("loop", "with_items", "with_dict", "with_list", "with_subelements", "with_sequence"), _FOR_EACH),
    "loop_control": "write `as` for the name of an item",
    "register": _READ,
    "until": _WAIT,
    "wait": _WAIT,
    "wait_condition": _WAIT,
    "retries": "ruleop retries until it succeeds: remove the key",
    "delay": "ruleop waits for events: remove the key",
    "state": "`when` decides whether the object exists",
    "definition": "write `object`",
    "resource_definition": "write `object`",
    "src": "write `template`",
    "k8s": "write `object`, with what is under `definition`",
    "kubernetes.core.k8s": "write `object`, with what is under `definition`",
    "k8s_info": _LOOKUP,
    "set_fact": "write `let` in the watch",
    "vars": "write `vars` or `let` in the watch",
    "assert": "write `validate` in the watch",
    "fail": "write `validate` in the watch",
    "notify": "mention a value of the other child: then it follows each change",
    "failed_when": "write `validate` or a condition",
    "changed_when": "ruleop compares the objects: remove the key",
    "become": "ruleop runs no commands: remove the key",
    # kro
    "includeWhen": "write `when`, without ${}",
    "externalRef": _LOOKUP,
    "id": "the key of the child is its id",
    # Crossplane
    "base": "write `object`, with templates in it",
    "patches": "write the values as templates in `object`; `patch` is for objects of others",
    "readinessChecks": "write `readyWhen`",
    "connectionDetails": "write a Secret as a child",
    # Helm and Argo CD
    "hook": "write `once` for a Job that runs once for each version, `finalize` for work at the end",
    "weight": "write `dependsOn`",
    "syncWave": "write `dependsOn`",
    # former versions
    "propagation": "ruleop deletes in the background; `deleteAfter` holds a deletion until other children are gone",
    # Kustomize, and Kubernetes' own words
    "apiVersion": "write the object under `object`",
    "kind": "write the object under `object`",
    "metadata": "write the object under `object`",
    "spec": "write the object under `object`",
    "updateStrategy": "write `apply.strategy`, or `apply.onImmutable: recreate`",
}
_FOREIGN_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "watch": _OF_A_WATCH,
    "child": _OF_A_CHILD,
    "observe": {"names": 'write `forEach` with the list of names, and `name: "{{ item }}"`'},
    "schema": {
        "categories": "write the CRD as a file in crds/ (`ruleop generate crd` prints it), with `spec.names.categories`"
    },
}
"""By the names of tables in the JSON Schema."""


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableOf(ValueType[R], Generic[R]):
    table: type[R]

    def read(self, node: YamlNode, what: str, reading: FileReading) -> R | None:
        table = self.table
        if not isinstance(node.value, dict):
            # An empty table takes its place, so that references to its name are not reported as well.
            wrong_type(node, what, "a mapping", reading)
            return table(node.site, {})
        known = dict(keys(table))
        names = {known_key.name for known_key in known.values()}
        foreign = _FOREIGN_KEYS.get(table.DEFINITION, {})
        members = dict(node.value)
        for name, member in node.value.items():
            if name not in names:
                hint = foreign.get(name)
                instead = f": {hint}" if hint else did_you_mean_quoted(name, names)
                message = f'unknown key "{name}" in {table.TITLE}{instead}'
                reading.findings.mistake("unknown-key", message, node.key_sites[name])
                # Report one mistake only: the similar key does not count as missing.
                if not hint:
                    members.setdefault(nearest(name, names) or name, member)
        pasted = any(name in foreign for name in members)  # what it lacks follows from that
        values: dict[str, Any] = {}
        for field, known_key in known.items():
            if (found := node.value.get(known_key.name)) is not None:
                value = known_key.type.read(found, f'"{known_key.name}"', reading)
                if value is not None:
                    values[field] = value
            elif known_key.required and known_key.name not in members and not pasted:
                reading.findings.mistake("missing-key", f'{table.TITLE} needs the key "{known_key.name}"', node.site)
        for constraint in () if pasted else table.CONSTRAINTS:
            if violation := constraint.violation(members):
                message, about = violation
                reading.findings.mistake("conflict", f"{table.TITLE} {message}", node.key_sites.get(about, node.site))
        return table(node.site, dict(node.key_sites), **values)

    def schema(self) -> dict[str, JSON]:
        return {"$ref": f"#/$defs/{self.table.DEFINITION}"}


def table_schema(table: type[Table]) -> dict[str, JSON]:
    """The JSON Schema of one table."""
    properties = {
        known_key.name: known_key.type.schema()
        | {"description": known_key.doc}
        | ({} if known_key.default is None else {"default": known_key.default})
        for _, known_key in keys(table)
    }
    schema: dict[str, JSON] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required := [known_key.name for _, known_key in keys(table) if known_key.required]:
        schema["required"] = required
    if table.CONSTRAINTS:
        schema["allOf"] = [constraint.schema() for constraint in table.CONSTRAINTS]
    return schema
