"""The rules of a project as frozen typed objects, with one class per table of the rules language.

Everything here is checked when it is loaded. Expressions and templates are compiled, so that planning only evaluates
them.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ruleop.kubernetes.kinds import NAMESPACE_KIND, SERVER_METADATA
from ruleop.language.secrets.secrecy import PUBLIC, UNKNOWN, Secrecy
from ruleop.language.secrets.secret_values import SECRET
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import JSON, GroupKind, Kind, Object
    from ruleop.kubernetes.merge import Path
    from ruleop.language.rules.findings import Finding
    from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree


# -- durations ---------------------------------------------------------------------------------------------------------
#
# Durations in Kubernetes' notation: 10h, 1h30m, 0s.

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)", re.ASCII)
PATTERN = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ms|h|m|s))+$"
DAYS = r"^[0-9]{1,5}d$"


def parse_duration(text: str, *, days: bool = False) -> float:
    """The duration in seconds. Raises ValueError with a message for users; also parses the annotation of a CR.
    `days`: it may be a number of days, which Kubernetes does not have."""
    if days and re.fullmatch(DAYS, text, re.ASCII):
        return int(text[:-1]) * 24 * 3600.0
    if re.fullmatch(PATTERN, text, re.ASCII):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        raise ValueError(f'the duration "{text}" needs a unit: "{text}s", "{text}m" or "{text}h"')
    raise ValueError(f'"{text}" is not a duration: write it like "10h", "1h30m" or "0s"')


REFUSED_METADATA: Mapping[str, str] = MappingProxyType(
    {
        "generateName": "set metadata.name: ruleop finds objects by name",
        "ownerReferences": "ruleop writes the owner itself",
        "finalizers": "only the controller that removes a finalizer may set it",
        **dict.fromkeys(sorted(SERVER_METADATA), "the API server sets it; remove it"),
    }
)
"""The fields of metadata that a child cannot set, and what to do instead."""


# -- rules -------------------------------------------------------------------------------------------------------------

Strategy = Literal["merge", "server-side", "create-only"]
JOBS = ("batch", "Job")
EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector. Matches everything when empty."""

    match_labels: Mapping[str, StringTemplate] = field(default_factory=lambda: EMPTY)
    match_expressions: tuple[Requirement, ...] = ()
    given: Tree | None = None  # renders to another selector, which must match as well


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[StringTemplate, ...] = ()


@dataclass(frozen=True, slots=True)
class Ignore:
    """A path that ruleop sets on creation and then leaves to others; with `when`, only while that holds."""

    path: Path
    when: Expression | None = None


@dataclass(frozen=True, slots=True)
class Apply:
    strategy: Strategy | None = None  # None: the default of the kind (create-only for Jobs, else merge)
    ignore: tuple[Ignore, ...] = ()
    own: tuple[Path, ...] = ()  # lists from which items of others are removed
    on_immutable: StringTemplate | None = None  # renders to "fail" or "recreate"; None is fail
    on_immutable_explicit: bool = False  # set in the child itself, which PVCs, PVs, Namespaces and CRDs require
    adopt: Literal["never", "orphans", "helm"] = "never"  # which existing objects are adopted


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of the objects of a child, and whether they are deleted at all."""

    policy: StringTemplate | None = None  # renders to "delete" or "orphan"; None is delete
    after: frozenset[str] = frozenset()  # ids of children that have to be gone before
    in_order: bool = False  # it may have to wait for that, so the garbage collector must not delete them


@dataclass(frozen=True, slots=True)
class Rotation:
    """When the random values of a Secret are regenerated."""

    every: float | None  # seconds
    before_end: float | None  # seconds before its certificates end


@dataclass(frozen=True, slots=True)
class Inputs:
    """The values that a child reads."""

    mentions: frozenset[str] = frozenset()  # ids of children that it reads, except through `live.`
    ids: tuple[str, ...] = ()  # sorted ids of the other children and the observed resources that it reads at all
    steady: bool = False  # its objects follow from what clients write in the CR: not from its status or anything else


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of `forEach`: the name of its item, and the list or mapping. It may read the items of outer loops."""

    name: str
    over: Expression


@dataclass(frozen=True, slots=True)
class Ordinary:
    """The objects are rendered from the body, and kept as they are rendered."""

    ended_by: tuple[str, ...] = ()  # the children of `finalize` that are made when an item of this one ends


@dataclass(frozen=True, slots=True)
class Given:
    """`objects`: the CR gives the objects."""

    privileged: bool = False  # they may grant permissions, and use ServiceAccounts


@dataclass(frozen=True, slots=True)
class Patched:
    """`patch`: the body has fields of an object, or of all that a selector matches. They belong to somebody else."""

    target: Observe
    force: bool = False  # fields that another manager holds are taken


@dataclass(frozen=True, slots=True)
class Once:
    """`once`: an object is made once for each request id."""

    request: StringTemplate
    history: int  # finished objects that stay


@dataclass(frozen=True, slots=True)
class Scheduled:
    """`schedule`: an object is made once for each of these times."""

    text: StringTemplate
    zone: StringTemplate | None  # None: UTC
    deadline: float  # seconds: a run that would start later is skipped
    history: int  # finished objects that stay


@dataclass(frozen=True, slots=True)
class ItemEnd:
    """`forEachOf`: the objects are made for each item of this child that ends."""

    of: str


Form: TypeAlias = Ordinary | Given | Patched | Once | Scheduled | ItemEnd
"""Planning has a class for each form of child."""


@dataclass(frozen=True, slots=True)
class Child:
    id: str
    site: Site
    form: Form
    body: TextTemplate | Tree
    kinds: frozenset[Kind]  # the kinds that the body can render
    many: bool  # forEach, a `---` in the source, or a selector of `patch`: the id is a list
    final: bool = False  # one of `finalize`
    when: Expression | None = None
    wait_for: Expression | None = None
    for_each: tuple[Loop, ...] = ()  # outermost first
    rotation: Rotation | None = None
    depends_on: tuple[str, ...] = ()
    ready_when: Expression | None = None
    apply: Apply = field(default_factory=Apply)
    deletion: Deletion = field(default_factory=Deletion)
    namespace: StringTemplate | None = None
    optional: bool = False
    inputs: Inputs = field(default_factory=Inputs)
    secrecy: Secrecy = PUBLIC

    def strategy_for(self, kind: Kind) -> Strategy:
        """The strategy for its objects of a kind. The default for a Job is create-only: a running Job is immutable."""
        if self.apply.strategy is not None:
            return self.apply.strategy
        return "create-only" if kind.versionless == JOBS else "merge"

    @property
    def has_items(self) -> bool:
        """Whether its objects come from several items, so that a mistake in one may be a mistake in the item."""
        is_selected = isinstance(self.form, Patched) and self.form.target.many
        return bool(self.for_each) or is_selected or isinstance(self.form, ItemEnd)

    @property
    def ended_by(self) -> tuple[str, ...]:
        return self.form.ended_by if isinstance(self.form, Ordinary) else ()


@dataclass(frozen=True, slots=True)
class OwnedBy:
    """The objects that a child owns, itself or through owners in between."""

    child: str
    chains: Mapping[GroupKind, tuple[Observe, ...]]  # the owners in between, outermost first, for a kind of the child


@dataclass(frozen=True, slots=True)
class Observe:
    """A resource that ruleop reads and watches but never writes: one by `name`, or a list."""

    id: str
    site: Site
    kind: Kind
    name: StringTemplate | None = None
    for_each: Expression | None = None  # gives the items, of which each has a name
    item_name: str = "item"
    selector: Selector | None = None
    namespace: StringTemplate | None = None
    all_namespaces: bool = False
    owned_by: OwnedBy | None = None
    where: Expression | None = None  # over `this`: which objects of the list count
    many: bool = False  # the id is a list
    metadata_only: bool = False  # only the metadata is read
    patched: bool = False  # a child sets fields of it: objects that its selector matched before are watched too

    @property
    def title(self) -> str:
        return f'the {"child" if self.patched else "observed resource"} "{self.id}"'

    @property
    def owners(self) -> tuple[Observe, ...]:
        """The kinds of owners in between, of which the metadata is read."""
        chains = self.owned_by.chains.values() if self.owned_by is not None else ()
        return tuple({each.kind: each for chain in chains for each in chain}.values())


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    site: Site
    status: Expression
    reason: StringTemplate | None = None
    message: StringTemplate | None = None
    reads: tuple[str, ...] = ()  # sorted ids of the children and observed resources that the status reads


@dataclass(frozen=True, slots=True)
class Validation:
    rule: Expression
    message: StringTemplate
    site: Site


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Permissions that the author of the rules grants the operator."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...]  # empty for all
    site: Site


@dataclass(frozen=True, slots=True)
class Share:
    """A number of CRs, or a percentage of all."""

    amount: int
    percent: bool = False

    def of(self, total: int, *, round_up: bool = False) -> int:
        if not self.percent:
            return self.amount
        return -(-self.amount * total // 100) if round_up else self.amount * total // 100


@dataclass(frozen=True, slots=True)
class Rollout:
    """An edit of the rules reaches the CRs in waves."""

    max_unavailable: Share = Share(1)
    pause_after: int | None = None
    failure_threshold: Share = Share(0)
    order: Literal["oldest", "newest", "label"] = "oldest"
    label: str = ""  # whose values give the order
    deadline: float = 600.0  # seconds after which a CR that is not ready counts as failed


@dataclass(frozen=True, slots=True)
class Selection:
    """The CRs of its kind that a rule is for."""

    selector: Selector | None = None  # its strings are constants
    namespaces: tuple[str, ...] = ()  # empty: all


@dataclass(frozen=True, slots=True)
class StatusRule:
    """The status of a CR."""

    managed: bool = True  # False: nothing is written
    body: Tree | TextTemplate | None = None  # its fields
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """The objects that a rule may touch, and the permissions for that."""

    cluster: bool = False  # False: those in the CR's namespace
    write_as: StringTemplate | None = None  # renders to the account that writes children; None: the operator's own
    rbac: tuple[PolicyRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Pace:
    """The time after which a CR is reconciled again, and the number of CRs at a time."""

    period: float = 36000.0  # seconds; 0 is never
    max_concurrent: int = 16


@dataclass(frozen=True, slots=True)
class Order:
    """The ids of children, dependencies first."""

    children: tuple[str, ...] = ()
    final: tuple[str, ...] = ()  # of finalize children
    deletion: Literal["none", "reverse"] = "none"


@dataclass(frozen=True)
class Rule:
    """One watch: the rule for CRs of one kind that match its selector and namespaces. What follows from its fields is
    computed once."""

    kind: Kind
    name: str  # "" unless the kind has several watches
    site: Site
    children: Mapping[str, Child] = field(default_factory=lambda: EMPTY)  # in the order of the file
    observe: Mapping[str, Observe] = field(default_factory=lambda: EMPTY)
    status: StatusRule = field(default_factory=StatusRule)
    validate: tuple[Validation, ...] = ()
    vars: Mapping[str, JSON] = field(default_factory=lambda: EMPTY)
    let: Mapping[str, Tree] = field(default_factory=lambda: EMPTY)  # in the order of the file
    finalize: Mapping[str, Child] = field(default_factory=lambda: EMPTY)
    selection: Selection = field(default_factory=Selection)
    pace: Pace = field(default_factory=Pace)
    reach: Reach = field(default_factory=Reach)
    order: Order = field(default_factory=Order)
    expire: StringTemplate | None = None  # renders to the time from its creation after which a CR is deleted
    rollout: Rollout | None = None  # None: all CRs at once
    reads_time: bool = False  # it calls functions whose results depend on the time
    reads_status: bool = False  # it reads the status of the CR, which its own passes write
    digest: str = ""  # of everything that a plan by this rule depends on: equal digests mean equal plans
    revision: str = ""  # the same without values of environment variables, which may be secret: it can be shown

    @cached_property
    def title(self) -> str:
        return f"{self.kind.kind}.{self.kind.group}" + (f" ({self.name})" if self.name else "")

    @cached_property
    def deletes_children(self) -> bool:
        """Whether ruleop deletes or releases children in the CR's namespace when the CR is deleted."""
        return bool(self.finalize) or any(
            child.deletion.policy is not None or child.deletion.in_order for child in self.children.values()
        )

    @cached_property
    def annotates_children(self) -> bool:
        """Whether some of its children have an annotation in place of an ownerReference, because the garbage collector
        does not delete them."""
        return self.deletes_children or self.reach.cluster

    @cached_property
    def needs_key(self) -> bool:
        """Whether it writes proofs: into the annotation, or into the names of the field managers of `patch`."""
        return self.annotates_children or bool(self.patches)

    @cached_property
    def has_order(self) -> bool:
        """Whether its children are deleted in an order."""
        return any(child.deletion.in_order for child in self.children.values())

    @cached_property
    def public_words(self) -> Mapping[str, frozenset[str]]:
        """By the ids of children that read Secrets."""
        return {child.id: child.secrecy.words for child in self.every_child if child.secrecy.reads}

    @cached_property
    def item_ends(self) -> tuple[Child, ...]:
        """The finalize children that are made when an item of a `forEach` ends, in their order."""
        return tuple(child for id_ in self.order.final if isinstance((child := self.finalize[id_]).form, ItemEnd))

    @cached_property
    def runs(self) -> tuple[Child, ...]:
        """The children of which an object is made once for each run."""
        return tuple(child for child in self.children.values() if isinstance(child.form, Once | Scheduled))

    @cached_property
    def patches(self) -> tuple[Patched, ...]:
        """The objects of others whose fields its children set."""
        return tuple(child.form for child in self.children.values() if isinstance(child.form, Patched))

    @cached_property
    def owned_children(self) -> tuple[Child, ...]:
        """The children, including finalize children, that have objects of their own."""
        return tuple(child for child in self.every_child if not isinstance(child.form, Patched))

    @cached_property
    def adopts_helm_releases(self) -> bool:
        """Whether children adopt objects of Helm releases."""
        return any(child.apply.adopt == "helm" for child in self.every_child)

    @cached_property
    def makes_namespaces(self) -> bool:
        """Whether a child may be a Namespace."""
        kinds = (kind.versionless for child in self.owned_children for kind in child.kinds)
        return NAMESPACE_KIND.versionless in kinds

    @cached_property
    def read_objects(self) -> tuple[Observe, ...]:
        """The objects that it reads, other than its own children."""
        owners = (owner for each in self.observe.values() for owner in each.owners)
        return (*self.observe.values(), *owners, *(each.target for each in self.patches))

    @cached_property
    def secrecy(self) -> Secrecy:
        """Of its expressions: they may read what the rule has or observes of Secrets, and the values it generates."""
        return Secrecy(
            reads=any(child.secrecy.reads or child.secrecy.holds for child in self.every_child)
            or any(observe.kind.versionless == SECRET for observe in self.observe.values())
        )

    def reset_renderers(self) -> None:
        """Drops the state of an evaluation that was interrupted."""
        parts = (
            *(each.body for each in self.every_child),
            *self.let.values(),
            *(each.status for each in self.status.conditions),
            *(each.rule for each in self.validate),
            *(part for each in self.observe.values() for part in (each.name, each.for_each, each.where)),
            *(each.selector.given for each in self.read_objects if each.selector is not None),
            self.status.body,
        )
        for state in {part.templates.state for part in parts if part is not None}:
            state.reset()

    def secrecy_of(self, child: str) -> Secrecy:
        """Of the child with this id."""
        found = self.children.get(child) or self.finalize.get(child)
        return found.secrecy if found is not None else UNKNOWN

    @cached_property
    def every_child(self) -> tuple[Child, ...]:
        """All children, including finalize children."""
        return (*self.children.values(), *self.finalize.values())


@dataclass(frozen=True, slots=True)
class Project:
    """A loaded project: rules, templates and CRDs, with a digest of all its files and environment variables."""

    root: str
    rules: tuple[Rule, ...]
    crds: tuple[CustomResourceDefinition, ...]  # of crds/ and of `schema`, for tools; the operator asks the API server
    templates: Mapping[str, str]  # name -> source
    digest: str
    revision: str  # the digest of its files alone: values of environment variables may be secret
    files: Mapping[str, str]  # the texts from which it was loaded, by their relative paths
    reads_environment: bool  # whether it depends on environment variables, too
    findings: tuple[Finding, ...] = ()  # findings that do not make the project invalid
    definitions: tuple[Object, ...] = ()  # the whole CRDs of `schema`, which only tools make
