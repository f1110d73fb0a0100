"""The tables of the rules language. This is the only declaration of the keys of watches.yaml; docs/rules/ explains
them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from ruleop.kubernetes.cron import schedule_fault, zone_fault
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.names import KEY_IN_WORDS, LABEL, MAX_LABEL, PREFIXED, QUALIFIED, SUBDOMAIN, VALUE_IN_WORDS
from ruleop.kubernetes.permissions import ACCOUNT_IN_WORDS, ACCOUNT_PATTERN
from ruleop.language.rules.check_ids import SILENCEABLE, refusal
from ruleop.language.rules.keys.model import Share, Strategy
from ruleop.language.rules.keys.schema_keys import SCHEMA_TABLES, SchemaTable
from ruleop.language.rules.keys.tables import (
    AtMostOne,
    Constraint,
    ExactlyOne,
    Excludes,
    Needs,
    NotBesideMapping,
    Table,
    TableOf,
    key,
    table_schema,
)
from ruleop.language.rules.keys.value_types import (
    NAME,
    TEMPLATE,
    BareExpression,
    Checked,
    Count,
    DurationValue,
    FieldPath,
    FileReading,
    Flag,
    ListOf,
    ListPath,
    Loops,
    MapOf,
    NamedEntry,
    NumberOrPercent,
    OrTemplate,
    PlacedPath,
    Templated,
    TemplateFile,
    TemplateTree,
    TemplateValue,
    TextValue,
    ValueType,
    Verbatim,
    Word,
    WordChoice,
    is_template,
    wrong_type,
)
from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree, YamlNode
from ruleop.language.templates.bodies.documents import COMPUTED
from ruleop.language.templates.compile import has_templates
from ruleop.values import dataclass

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON
    from ruleop.kubernetes.merge import Path

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
Reach = Literal["namespace", "cluster"]
Adopt = Literal["never", "orphans", "helm"]
DeletionOrder = Literal["none", "reverse"]
RolloutOrder = Literal["oldest", "newest", "label"]
Privilege = Literal["extra-privileges"]

GROUP = TextValue(f"|{SUBDOMAIN}", 'an API group like "apps" or "cache.example.com"')
VERSION = TextValue(LABEL, 'a version without its group, like "v1"')
KIND = TextValue(r"[A-Za-z][A-Za-z0-9]*", 'a kind like "Deployment"')
KIND_IN_VERSION = TextValue(
    rf"({SUBDOMAIN}/)?{LABEL}/[A-Za-z][A-Za-z0-9]*",
    'a kind with its version, like "v1/ConfigMap" or "apps/v1/Deployment"',
)
LABEL_KEY = TextValue(PREFIXED, 'a label like "app.kubernetes.io/name"')
LABEL_VALUE = TemplateValue(TextValue(f"(?=.{{0,{MAX_LABEL}}}$)({QUALIFIED})?", VALUE_IN_WORDS))
LABELS = MapOf(LABEL_VALUE, "the label", PREFIXED, KEY_IN_WORDS)
API_GROUP = TextValue(rf"|\*|{SUBDOMAIN}", 'an API group like "apps", or "" for the core one')
RESOURCE = TextValue(
    r"\*|(\*|[a-z][a-z0-9]*)(/(\*|[a-z][a-z0-9]*))?", 'a resource in the plural, like "pods" or "deployments/scale"'
)
VERB = TextValue(r"\*|[a-z]+", 'a verb like "get"')
OBJECT_NAME = TextValue(r"[^\s/%]+", "the name of an object")
REASON = TextValue(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", 'one word, like "Starting"')
NAMESPACE = TextValue(f"(?=.{{1,{MAX_LABEL}}}$){LABEL}", "a name of lowercase letters, digits and dashes, at most 63")
ACCOUNT = TextValue(ACCOUNT_PATTERN, ACCOUNT_IN_WORDS)
ID = TextValue(NAME, "a name that starts with a lowercase letter")


def kind_in_version(word: Word) -> Kind:
    """The kind that a text of KIND_IN_VERSION names."""
    return Kind.parse(*word.text.rsplit("/", 1))


class ValuesFit(Constraint):
    """In and NotIn need values, the other operators must not have any."""

    compares = ("In", "NotIn")

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        operator = members["operator"].value if "operator" in members else None
        if operator in self.compares and not ("values" in members and members["values"].value):
            return f'with the operator {operator} needs "values"', "operator"
        if operator in get_args(Operator) and operator not in self.compares and "values" in members:
            return f'has "values", which the operator {operator} does not compare with: remove them', "values"
        return None

    def schema(self) -> dict[str, JSON]:
        compared = {"required": ["values"], "properties": {"values": {"minItems": 1}}}
        compares = {"properties": {"operator": {"enum": [*self.compares]}}, "required": ["operator"]}
        return {"if": compares, "then": compared, "else": {"not": {"required": ["values"]}}}


@dataclass(frozen=True, slots=True)
class RequirementTable(Table):
    TITLE: ClassVar[str] = "a requirement"
    DEFINITION: ClassVar[str] = "requirement"
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = (ValuesFit(),)

    label: Word | None = key("key", LABEL_KEY, "The label.", required=True)
    operator: Operator | None = key(
        "operator", WordChoice(get_args(Operator)), "How its value is compared.", required=True
    )
    values: tuple[Templated[StringTemplate], ...] = key(
        "values", OrTemplate(ListOf(LABEL_VALUE, "a value")), "The values, with In and NotIn.", default=[]
    )


@dataclass(frozen=True, slots=True)
class FullSelectorTable(Table):
    TITLE: ClassVar[str] = "a selector"
    DEFINITION: ClassVar[str] = "fullSelector"

    match_labels: tuple[NamedEntry[Templated[StringTemplate]], ...] = key(
        "matchLabels", OrTemplate(LABELS), "Labels and their values.", default={}
    )
    match_expressions: tuple[RequirementTable, ...] = key(
        "matchExpressions",
        ListOf(TableOf(RequirementTable), "a requirement"),
        "Requirements, all of which must hold.",
        default=[],
    )
    given: Templated[Tree] | None = None  # the mappings and lists of values that are templates, as a selector


NO_REPLACE = (
    "write `merge`; `apply.own` removes items of others from a list, and `apply.onImmutable: recreate` makes an object "
    "again whose immutable fields change"
)
NO_LABEL = "write `matchExpressions: [{key: no-such-label, operator: DoesNotExist}]`"


@dataclass(frozen=True, slots=True)
class SelectorType(ValueType[FullSelectorTable]):
    """A label selector: matchLabels and matchExpressions, or a plain mapping, which counts as matchLabels. The whole,
    `matchLabels`, and `values` may be templates. The constant rest holds whatever these render to."""

    to_match_everything: str = "leave the key out"

    full: ClassVar = TableOf(FullSelectorTable)
    plain: ClassVar = LABELS
    words: ClassVar = frozenset({"matchLabels", "matchExpressions"})

    def read(self, node: YamlNode, what: str, reading: FileReading) -> FullSelectorTable | None:
        if is_template(node):
            return FullSelectorTable(site=node.site, key_sites={}, given=TemplateTree().read(node, what, reading))
        if not isinstance(node.value, dict):
            wrong_type(node, what, "a mapping of labels, or matchLabels and matchExpressions", reading)
            return None
        if not node.value:
            message = f"{what} is empty: to match everything, {self.to_match_everything}"
            reading.findings.mistake("wrong-value", message, node.site)
            return None
        if any(name in self.words or isinstance(member.value, (dict, list)) for name, member in node.value.items()):
            table = self.full.read(node, what, reading)
            return _with_given(table, node, what, reading) if table is not None else None
        labels = self.plain.read(node, what, reading) or ()
        return FullSelectorTable(
            site=node.site, key_sites=dict(node.key_sites), match_labels=labels, match_expressions=()
        )

    def schema(self) -> dict[str, JSON]:
        plain = self.plain.schema() | {"propertyNames": {"not": {"enum": sorted(self.words)}}, "minProperties": 1}
        return {"anyOf": [plain, {"allOf": [self.full.schema()], "minProperties": 1}, TEMPLATE]}


def _with_given(table: FullSelectorTable, node: YamlNode, what: str, reading: FileReading) -> FullSelectorTable:
    """The selector with its templates of mappings and lists as a selector of its own. Whatever values an In has, the
    label exists."""
    labels, expressions = node.member("matchLabels"), node.member("matchExpressions")
    listed = expressions.value if expressions is not None and isinstance(expressions.value, list) else []
    values = {
        each.site: found for each in listed if (found := each.member("values")) is not None and is_template(found)
    }
    members: dict[str, YamlNode] = {}
    if labels is not None and is_template(labels):
        members["matchLabels"] = labels
    if expressions is not None and values:
        members["matchExpressions"] = replace(expressions, value=[each for each in listed if each.site in values])
    if not members:
        return table
    first = members.get("matchLabels") or next(iter(values.values()))
    sites = {name: node.key_sites[name] for name in members}
    given = TemplateTree(mapping=True).read(YamlNode(members, first.site, sites), what, reading)
    exists: Operator = "Exists"
    requirements = tuple(
        replace(each, operator=exists) if each.site in values else each
        for each in table.match_expressions
        if each.site not in values or each.operator == "In"
    )
    return replace(table, match_expressions=requirements, given=given)


@dataclass(frozen=True, slots=True)
class IgnoreTable(Table):
    TITLE: ClassVar[str] = "an ignored path"
    DEFINITION: ClassVar[str] = "ignore"

    path: Path | None = key("path", FieldPath(), "The field, like spec.replicas.", required=True)
    when: Templated[Expression] | None = key("when", BareExpression(), "Ignored only while this holds.")


class IgnoreType(ValueType[IgnoreTable]):
    """A path, or a mapping of a path and a condition."""

    table = TableOf(IgnoreTable)

    def read(self, node: YamlNode, what: str, reading: FileReading) -> IgnoreTable | None:
        if not isinstance(node.value, str):
            return self.table.read(node, what, reading)
        path = FieldPath().read(node, what, reading)
        return None if path is None else IgnoreTable(site=node.site, key_sites={}, path=path, when=None)

    def schema(self) -> dict[str, JSON]:
        return {"anyOf": [FieldPath().schema(), self.table.schema()]}


class StatusType(ValueType[Templated[Tree] | Templated[TextTemplate]]):
    """A mapping of fields, or the name of a template that renders to one. The names of the fields are plain text."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> Templated[Tree] | Templated[TextTemplate] | None:
        if isinstance(node.value, str):
            template = TemplateFile(mapping=True).read(node, what, reading)
            if template is not None:
                reading.findings.take(reading.library.computed_fields(template.compiled.name), "wrong-value")
            return template
        if isinstance(node.value, dict):
            for name, site in node.key_sites.items():
                if has_templates(name):
                    reading.findings.mistake("wrong-value", COMPUTED, site)
            return TemplateTree(mapping=True).read(node, what, reading)
        wrong_type(node, what, "a mapping of fields, or the name of a template", reading)
        return None

    def schema(self) -> dict[str, JSON]:
        fields = TemplateTree(mapping=True).schema() | {"propertyNames": {"not": {"pattern": r"\{[{%#]"}}}
        return {"anyOf": [fields, TemplateFile().schema()]}


@dataclass(frozen=True, slots=True)
class ApplyTable(Table):
    """Values are joined from three places, so keys have no defaults here."""

    TITLE: ClassVar[str] = '"apply"'
    DEFINITION: ClassVar[str] = "apply"

    strategy: Strategy | None = key(
        "strategy",
        WordChoice(get_args(Strategy), former=(("replace", NO_REPLACE),)),
        "How a difference is written: merge by default, create-only for Jobs.",
    )
    ignore: tuple[IgnoreTable, ...] | None = key(
        "ignore",
        ListOf(IgnoreType(), "an ignored path"),
        "Fields that ruleop sets on creation and then leaves to others.",
    )
    own: tuple[PlacedPath, ...] | None = key(
        "own",
        ListOf(ListPath(), "an owned path"),
        "Lists merged by keys, or as sets, that the child owns as a whole: items of others are removed.",
    )
    on_immutable: Templated[StringTemplate] | None = key(
        "onImmutable",
        TemplateValue(WordChoice(("fail", "recreate"))),
        "When an immutable field changes: fail (the default), or recreate (delete and create it again). A template.",
    )


@dataclass(frozen=True, slots=True)
class GivenObjects:
    """A list of objects, as a loop whose body is the item."""

    each: Templated[Expression]
    body: Templated[Tree]


class GivenObjectsType(ValueType[GivenObjects]):
    def read(self, node: YamlNode, what: str, reading: FileReading) -> GivenObjects | None:
        each = BareExpression().read(node, what, reading)
        body = TemplateTree().read(replace(node, value="{{ item }}"), what, reading)
        return GivenObjects(each, body) if each is not None and body is not None else None

    def schema(self) -> dict[str, JSON]:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class PatchTable(Table):
    TITLE: ClassVar[str] = "a patch"
    DEFINITION: ClassVar[str] = "patch"
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = (
        ExactlyOne(("name", "selector")),
        Needs("namespaces", "selector"),
        AtMostOne(("namespace", "namespaces")),
    )

    group: Word = key("group", GROUP, "The API group; empty for the core one.", default="")
    version: Word | None = key("version", VERSION, "The version, like v1.", required=True)
    kind: Word | None = key("kind", KIND, "The kind, like Namespace.", required=True)
    name: Templated[StringTemplate] | None = key("name", TemplateValue(), "The name of the object.")
    selector: FullSelectorTable | None = key(
        "selector", SelectorType(NO_LABEL), "Instead of name: all objects that match these labels."
    )
    namespace: Templated[StringTemplate] | None = key(
        "namespace", TemplateValue(NAMESPACE), "The CR's by default. Another one needs reach: cluster."
    )
    namespaces: Literal["all"] | None = key(
        "namespaces",
        WordChoice(("all",)),
        "all: the objects of all namespaces that the operator watches, with a selector.",
    )
    fields: YamlNode | None = key(
        "fields", Verbatim(), "The fields to set, with templates, loops and conditions as in `object`.", required=True
    )
    force: bool = key("force", Flag(), "Take fields that another manager holds.", default=False)
    body: Templated[Tree] | None = None  # the fields as an object, with its kind and name

    @property
    def object_kind(self) -> Kind:
        return Kind(self.group.text, self.version.text if self.version else "", self.kind.text if self.kind else "")


class PatchType(ValueType[PatchTable]):
    """The identity of an object, and fields of it. Together they are a body like that of any child."""

    table = TableOf(PatchTable)

    def read(self, node: YamlNode, what: str, reading: FileReading) -> PatchTable | None:
        table = self.table.read(node, what, reading)
        if table is None or table.fields is None or not (table.version and table.kind):
            return table
        if table.name is None and table.selector is None:
            return table
        fields = table.fields
        members, sites = dict[str, YamlNode](fields.value), dict(fields.key_sites)  # type: ignore[arg-type]
        for name in ("apiVersion", "kind"):
            if name in members:
                message = f"`{name}` is not a field to set: the patch has `group`, `version` and `kind`"
                reading.findings.mistake("wrong-value", message, sites[name])
        metadata = members.get("metadata", YamlNode({}, fields.site))
        if not isinstance(metadata.value, dict):
            wrong_type(metadata, '"metadata"', "a mapping", reading)
            return table
        for name in ("name", "namespace"):
            if name in metadata.value:
                message = f"`metadata.{name}` is not a field to set: write `{name}` beside `fields`"
                reading.findings.mistake("wrong-value", message, metadata.key_sites[name])
        if not (members.keys() - {"metadata"} or metadata.value):
            reading.findings.mistake("missing-key", f"{what} sets no fields", fields.site)
        identity: dict[str, YamlNode] = {}
        if table.name is not None:  # a selector finds the names and namespaces
            identity = {"name": table.name.node} | ({"namespace": table.namespace.node} if table.namespace else {})
        places = {name: table.key_sites[name] for name in identity}
        kind, version = table.object_kind, table.version.site
        head = {"apiVersion": YamlNode(kind.api_version, version), "kind": YamlNode(kind.kind, table.kind.site)}
        named = YamlNode({**metadata.value, **identity}, metadata.site, {**metadata.key_sites, **places})
        sites |= {"apiVersion": table.version.site, "kind": table.kind.site}
        sites.setdefault("metadata", named.site)
        body = TemplateTree(mapping=True).read(
            YamlNode({**head, **members, "metadata": named}, node.site, sites), what, reading
        )
        return replace(table, body=body)

    def schema(self) -> dict[str, JSON]:
        return self.table.schema()


@dataclass(frozen=True, slots=True)
class ChildTable(Table):
    TITLE: ClassVar[str] = "a child"
    DEFINITION: ClassVar[str] = "child"
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = (
        ExactlyOne(("template", "object", "objects", "patch")),
        Needs("as", "forEach"),
        NotBesideMapping("as", "forEach"),
        Needs("objects", "kinds"),
        Needs("kinds", "objects"),
        Needs("allow", "objects"),
        AtMostOne(("once", "schedule")),
        Needs("timeZone", "schedule"),
        Needs("startingDeadline", "schedule"),
        Needs("history", "once", "schedule"),
        Excludes(
            "forEachOf",
            ("forEach", "as", "objects", "patch", "once", "schedule", "dependsOn", "adopt", "deletion"),
            "it is made for one item, and removed when that has ended",
        ),
        Excludes(
            "patch",
            ("namespace", "apply", "adopt", "deletion", "deleteAfter", "once", "schedule"),
            "the object belongs to somebody else",
        ),
    )

    template: Templated[TextTemplate] | None = key(
        "template", TemplateFile(), "The file below templates/ that renders the object."
    )
    object: Templated[Tree] | None = key(
        "object",
        TemplateTree(mapping=True),
        "Instead of template: the object, with templates in its strings, and loops and conditions as keys.",
    )
    objects: GivenObjects | None = key(
        "objects", GivenObjectsType(), "Instead of template: a list of whole objects, which the CR gives."
    )
    kinds: tuple[Word, ...] = key(
        "kinds", ListOf(KIND_IN_VERSION, "a kind", minimum=1), "The kinds that `objects` may be.", default=[]
    )
    allow: tuple[Privilege, ...] = key(
        "allow",
        ListOf(WordChoice(get_args(Privilege)), "a permission"),
        "extra-privileges: `objects` may grant permissions, and use ServiceAccounts.",
        default=[],
    )
    patch: PatchTable | None = key(
        "patch", PatchType(), "Instead of template: fields of an object that belongs to somebody else."
    )
    when: Templated[Expression] | None = key(
        "when", BareExpression(), "Whether the child is desired; reads the CR, vars, let and observed objects."
    )
    wait_for: Templated[Expression] | None = key(
        "waitFor", BareExpression(), "While this is false or not available yet, the child is not changed."
    )
    for_each: tuple[NamedEntry[Templated[Expression]], ...] | None = key(
        "forEach",
        Loops(),
        "A list or mapping: one object per item. Or names and their lists: loops in loops, which see earlier names.",
    )
    item_name: Word | None = key("as", ID, "The name of an item, instead of item.")
    for_each_of: Word | None = key(
        "forEachOf",
        ID,
        "In finalize: the id of a child with forEach. Made when one of its items ends, before the item's object goes.",
    )
    once: Templated[StringTemplate] | None = key(
        "once",
        TemplateValue(),
        "A request id: the object is made once for each, and never again; with forEach, for each of an item. "
        "Empty: for none.",
    )
    schedule: Templated[StringTemplate] | None = key(
        "schedule",
        TemplateValue(Checked(schedule_fault)),
        "Instead of once: a cron schedule. The object is made once for each of its times. Empty: for none.",
    )
    time_zone: Templated[StringTemplate] | None = key(
        "timeZone", TemplateValue(Checked(zone_fault)), "The time zone of the schedule; UTC by default."
    )
    starting_deadline: float = key(
        "startingDeadline",
        DurationValue("1m"),
        "How late a run of the schedule may start; a later one is skipped.",
        default="1h",
    )
    history: int = key("history", Count(0), "The finished objects of `once` or `schedule` that stay.", default=3)
    rotate_every: float | None = key(
        "rotateEvery",
        DurationValue("1h", days=True),
        "The time, such as 90d, after which the random values of a create-only Secret are regenerated.",
    )
    renew_before: float | None = key(
        "renewBefore",
        DurationValue("1m", days=True),
        "The time before the end of its certificates, at which the same is done.",
    )
    depends_on: tuple[Word, ...] = key(
        "dependsOn", ListOf(ID, "an id"), "Ids that must be ready before this one is created.", default=[]
    )
    ready_when: Templated[Expression] | None = key(
        "readyWhen",
        BareExpression(),
        "Whether the child is ready, as an expression over `this`; by default a rule for its kind.",
    )
    apply: ApplyTable | None = key("apply", TableOf(ApplyTable), "How the child is written.")
    adopt: Adopt = key(
        "adopt",
        WordChoice(get_args(Adopt)),
        "Whether to adopt an existing object: one without an owner, or one of the Helm release of the CR's name.",
        default="never",
    )
    deletion: Templated[StringTemplate] | None = key(
        "deletion",
        TemplateValue(WordChoice(("delete", "orphan"))),
        "orphan: keep the object when the CR is deleted or the child is not desired. A template; delete by default.",
    )
    delete_after: tuple[Word, ...] = key(
        "deleteAfter", ListOf(ID, "an id"), "Ids that must be gone before this one is deleted.", default=[]
    )
    namespace: Templated[StringTemplate] | None = key(
        "namespace",
        TemplateValue(NAMESPACE),
        "For documents without metadata.namespace; the CR's by default. Another one needs reach: cluster.",
    )
    optional: bool = key(
        "optional",
        Flag(),
        "Skip the child while the cluster does not serve its kind; with patch, also while there is no such object.",
        default=False,
    )


@dataclass(frozen=True, slots=True)
class ObserveTable(Table):
    TITLE: ClassVar[str] = "an observed resource"
    DEFINITION: ClassVar[str] = "observe"
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = (
        AtMostOne(("name", "selector", "ownedBy")),
        Needs("forEach", "name"),
        Needs("as", "forEach"),
        Needs("through", "ownedBy"),
        AtMostOne(("namespace", "namespaces")),
        Excludes("name", ("namespaces",), "a name is looked up in one namespace"),
        Excludes("ownedBy", ("namespace", "namespaces"), "they are where their owner is"),
    )

    group: Word = key("group", GROUP, "The API group; empty for the core one.", default="")
    version: Word | None = key("version", VERSION, "The version, like v1.", required=True)
    kind: Word | None = key("kind", KIND, "The kind, like Pod.", required=True)
    name: Templated[StringTemplate] | None = key("name", TemplateValue(), "The name of the object.")
    for_each: Templated[Expression] | None = key(
        "forEach", BareExpression(), "A list or mapping: one object per item, by name and namespace."
    )
    item_name: Word | None = key("as", ID, "The name of an item, instead of item.")
    selector: FullSelectorTable | None = key(
        "selector",
        SelectorType(),
        "All objects that match these labels. With none of name, selector and ownedBy: all objects of the kind.",
    )
    namespace: Templated[StringTemplate] | None = key(
        "namespace", TemplateValue(NAMESPACE), "The CR's by default. Another one needs reach: cluster."
    )
    namespaces: Literal["all"] | None = key(
        "namespaces",
        WordChoice(("all",)),
        "all: the objects of all namespaces that the operator watches; for lists without names.",
    )
    owned_by: Word | None = key(
        "ownedBy", ID, "The id of a child: all objects that it owns, itself or through owners in between."
    )
    through: tuple[Word, ...] = key(
        "through",
        ListOf(KIND_IN_VERSION, "a kind"),
        "The kinds of owners between the child and the objects, outermost first; known for kinds like Deployment.",
        default=[],
    )
    where: Templated[Expression] | None = key(
        "where", BareExpression(), "Which objects of a list count, as an expression over `this`."
    )

    @property
    def object_kind(self) -> Kind:
        return Kind(self.group.text, self.version.text if self.version else "", self.kind.text if self.kind else "")

    @property
    def many(self) -> bool:
        """Whether the id is a list."""
        return self.name is None or "forEach" in self.key_sites

    @property
    def selected(self) -> bool:
        """Whether it is a list by labels, or of all objects of the kind."""
        return self.key_sites.keys().isdisjoint({"name", "ownedBy"})

    @property
    def item(self) -> str:
        return self.item_name.text if self.item_name is not None else "item"


@dataclass(frozen=True, slots=True)
class ConditionTable(Table):
    TITLE: ClassVar[str] = "a condition"
    DEFINITION: ClassVar[str] = "condition"

    type: Word | None = key(
        "type", TextValue(PREFIXED, 'a condition type like "Available"'), "Its type.", required=True
    )
    status: Templated[Expression] | None = key(
        "status",
        BareExpression(),
        "Whether it is True or False; Unknown while a value is not available yet.",
        required=True,
    )
    reason: Templated[StringTemplate] | None = key("reason", TemplateValue(REASON), "One word in CamelCase.")
    message: Templated[StringTemplate] | None = key("message", TemplateValue(), "A sentence for people.")


@dataclass(frozen=True, slots=True)
class ValidateTable(Table):
    TITLE: ClassVar[str] = "a validation"
    DEFINITION: ClassVar[str] = "validation"

    rule: Templated[Expression] | None = key("rule", BareExpression(), "What must hold for the CR.", required=True)
    message: Templated[StringTemplate] | None = key(
        "message", TemplateValue(), "The message if it does not hold.", required=True
    )


@dataclass(frozen=True, slots=True)
class PolicyRuleTable(Table):
    TITLE: ClassVar[str] = "a permission"
    DEFINITION: ClassVar[str] = "policyRule"

    groups: tuple[Word, ...] | None = key(
        "apiGroups", ListOf(API_GROUP, "an API group", minimum=1), 'The API groups; "" is the core one.', required=True
    )
    resources: tuple[Word, ...] | None = key(
        "resources",
        ListOf(RESOURCE, "a resource", minimum=1),
        "The resources in the plural, with subresources like deployments/scale.",
        required=True,
    )
    verbs: tuple[Word, ...] | None = key(
        "verbs", ListOf(VERB, "a verb", minimum=1), "What the operator may do with them.", required=True
    )
    names: tuple[Word, ...] = key(
        "resourceNames", ListOf(OBJECT_NAME, "a name", minimum=1), "Only objects with these names.", default=[]
    )


class NeedsOrder(Constraint):
    """`label` and `order: label` need each other."""

    def violation(self, members: dict[str, YamlNode]) -> tuple[str, str] | None:
        by_label = "order" in members and members["order"].value == "label"
        if by_label and "label" not in members:
            return 'has "order: label", which requires "label", the label whose values give the order', "order"
        if "label" in members and not by_label:
            return 'has "label", which requires "order: label"', "label"
        return None

    def schema(self) -> dict[str, JSON]:
        by_label: JSON = {"properties": {"order": {"const": "label"}}, "required": ["order"]}
        return {"if": by_label, "then": {"required": ["label"]}, "else": {"not": {"required": ["label"]}}}


@dataclass(frozen=True, slots=True)
class RolloutTable(Table):
    TITLE: ClassVar[str] = '"rollout"'
    DEFINITION: ClassVar[str] = "rollout"
    CONSTRAINTS: ClassVar[tuple[Constraint, ...]] = (NeedsOrder(),)

    max_unavailable: Share = key(
        "maxUnavailable",
        NumberOrPercent(1),
        "How many CRs may have the new rules and not be ready yet, as a number or a percentage.",
        default=1,
    )
    pause_after: int | None = key(
        "pauseAfter", Count(1), "The rollout pauses after this many CRs, until `ruleop rollout resume`."
    )
    failure_threshold: Share = key(
        "failureThreshold",
        NumberOrPercent(0),
        "The rollout stops when more CRs than this fail with the new rules, as a number or a percentage.",
        default=0,
    )
    order: RolloutOrder = key(
        "order", WordChoice(get_args(RolloutOrder)), "Which CRs come first: the oldest by default.", default="oldest"
    )
    label: Word | None = key(
        "label", LABEL_KEY, "With order: label, the label whose values give the order; CRs without it come last."
    )
    progress_deadline: float = key(
        "progressDeadline",
        DurationValue("1m"),
        "The time after which a CR that was ready before, and is not ready with the new rules, counts as failed.",
        default="10m",
    )


@dataclass(frozen=True, slots=True)
class ExpireTable(Table):
    TITLE: ClassVar[str] = '"expire"'
    DEFINITION: ClassVar[str] = "expire"

    after: Templated[StringTemplate] | None = key(
        "after",
        TemplateValue(DurationValue(days=True)),
        "The time from its creation, such as 2h or 7d, after which a CR is deleted. Empty or 0s: never.",
        required=True,
    )


LET = MapOf(TemplateTree(), "the name", NAME)
VARS = Verbatim()
APPLY = TableOf(ApplyTable)


@dataclass(frozen=True, slots=True)
class WatchTable(Table):
    TITLE: ClassVar[str] = "a watch"
    DEFINITION: ClassVar[str] = "watch"

    group: Word = key("group", GROUP, "The API group of the custom resource; empty for the core one.", default="")
    version: Word | None = key("version", VERSION, "Its version, like v1.", required=True)
    kind: Word | None = key("kind", KIND, "Its kind.", required=True)
    name: Word | None = key(
        "name",
        TextValue(QUALIFIED, "a name of letters, digits, dots and dashes"),
        "Needed where a kind has several watches.",
    )
    schema: SchemaTable | None = key(
        "schema",
        TableOf(SchemaTable),
        "The CustomResourceDefinition of the kind in short form, instead of a file in crds/.",
    )
    children: tuple[NamedEntry[ChildTable], ...] = key(
        "children",
        MapOf(TableOf(ChildTable), "the child", NAME),
        "The children, by id: objects to create and keep.",
        default={},
    )
    observe: tuple[NamedEntry[ObserveTable], ...] = key(
        "observe",
        MapOf(TableOf(ObserveTable), "the observed resource", NAME),
        "Resources that are read and watched, never written, by id.",
        default={},
    )
    status: Templated[Tree] | Templated[TextTemplate] | None = key(
        "status", StatusType(), "The fields of .status to write, or the name of a template that renders them."
    )
    conditions: tuple[ConditionTable, ...] = key(
        "conditions", ListOf(TableOf(ConditionTable), "a condition"), "Extra conditions.", default=[]
    )
    validate: tuple[ValidateTable, ...] = key(
        "validate",
        ListOf(TableOf(ValidateTable), "a validation"),
        "CRs that violate one are not reconciled.",
        default=[],
    )
    vars: YamlNode | None = key(
        "vars", VARS, "Constants; ${NAME} and ${NAME:-default} are read from the environment here and nowhere else."
    )
    let: tuple[NamedEntry[Templated[Tree]], ...] = key("let", LET, "Derived values, available everywhere.", default={})
    finalize: tuple[NamedEntry[ChildTable], ...] = key(
        "finalize",
        MapOf(TableOf(ChildTable), "the finalize child", NAME),
        "Children to create when the CR is being deleted.",
        default={},
    )
    selector: FullSelectorTable | None = key(
        "selector", SelectorType(), "The CRs to manage, by their labels; all by default."
    )
    namespaces: tuple[Word, ...] | None = key(
        "namespaces", ListOf(NAMESPACE, "a namespace", minimum=1), "The namespaces to manage; all by default."
    )
    reconcile_period: float = key(
        "reconcilePeriod",
        DurationValue(),
        "Period of a full reconcile in addition to events; 0s: never.",
        default="10h",
    )
    max_concurrent: int = key(
        "maxConcurrentReconciles", Count(1), "Maximum number of CRs of this kind reconciled at once.", default=16
    )
    manage_status: bool = key(
        "manageStatus", Flag(), "false: write no status, where another operator writes it.", default=True
    )
    apply: ApplyTable | None = key("apply", APPLY, "Defaults for every child's apply; ignore and own lists are joined.")
    deletion_order: DeletionOrder = key(
        "deletionOrder",
        WordChoice(get_args(DeletionOrder)),
        "reverse: a child is deleted when the children that depend on it are gone.",
        default="none",
    )
    reach: Reach = key(
        "reach",
        WordChoice(get_args(Reach)),
        "cluster: children may be cluster-scoped or in other namespaces.",
        default="namespace",
    )
    expire: ExpireTable | None = key(
        "expire", TableOf(ExpireTable), "When the CR itself is deleted, with its children."
    )
    write_as: Templated[StringTemplate] | None = key(
        "writeAs",
        TemplateValue(ACCOUNT),
        "The ServiceAccount, as NAMESPACE/NAME, by whose permissions children are written; the operator's by default.",
    )
    rollout: RolloutTable | None = key(
        "rollout",
        TableOf(RolloutTable),
        "An edit of the rules reaches the CRs in waves, and stops when CRs fail. Without it, it reaches all at once.",
    )
    rbac: tuple[PolicyRuleTable, ...] = key(
        "rbac",
        ListOf(TableOf(PolicyRuleTable), "a permission"),
        "Permissions that the operator needs and the rules do not show: added to the roles of `ruleop generate rbac`.",
        default=[],
    )


WATCHES = ListOf(TableOf(WatchTable), "a watch")
_REASONS = MapOf(TextValue(r"(?s:.*\S.*)", "a reason, in a few words"), "the check")


class AllowedChecks(ValueType[tuple[NamedEntry[Word], ...]]):
    """`allow`: the checks that are off for the project, each with a reason."""

    def read(self, node: YamlNode, what: str, reading: FileReading) -> tuple[NamedEntry[Word], ...] | None:
        entries = _REASONS.read(node, what, reading)
        for entry in entries or ():
            if (mistake := refusal(entry.name)) is not None:
                reading.findings.mistake("wrong-value", mistake, entry.site)
        return entries

    def schema(self) -> dict[str, JSON]:
        """Without the ids, which `watches_schema` adds."""
        return {"type": "object", "additionalProperties": {"type": "string", "pattern": r"\S"}}

    def of(self, default: JSON) -> tuple[NamedEntry[Word], ...]:
        return _REASONS.of(default)


@dataclass(frozen=True, slots=True)
class FileTable(Table):
    """A file of watches with values that all of them share."""

    TITLE: ClassVar[str] = "a file of watches"
    DEFINITION: ClassVar[str] = "file"

    vars: YamlNode | None = key("vars", VARS, "Constants that all watches share; constants of a watch override them.")
    let: tuple[NamedEntry[Templated[Tree]], ...] = key("let", LET, "Derived values that all watches share.", default={})
    apply: ApplyTable | None = key("apply", APPLY, "Defaults for every child's apply.")
    include: tuple[Word, ...] = key(
        "include",
        ListOf(TextValue(r"[^/\\][^\\]*", "a path inside the project, with / between its parts"), "an included file"),
        "More files of watches, like rules/*.yaml; only in watches.yaml itself.",
        default=[],
    )
    allow: tuple[NamedEntry[Word], ...] = key(
        "allow",
        AllowedChecks(),
        "Checks of `ruleop check` that are off, by their ids, each with the reason; only in watches.yaml itself.",
        default={},
    )
    watches: tuple[WatchTable, ...] = key("watches", WATCHES, "The watches.", default=[])


TABLES: tuple[type[Table], ...] = (
    FileTable,
    WatchTable,
    ChildTable,
    PatchTable,
    ObserveTable,
    ConditionTable,
    ValidateTable,
    ApplyTable,
    IgnoreTable,
    FullSelectorTable,
    RequirementTable,
    PolicyRuleTable,
    ExpireTable,
    RolloutTable,
    *SCHEMA_TABLES,
)


def watches_schema() -> dict[str, JSON]:
    """The JSON Schema of watches.yaml and of included files. It cannot check names, cycles and templates."""
    definitions: dict[str, JSON] = {table.DEFINITION: table_schema(table) for table in TABLES}
    definitions[FileTable.DEFINITION]["properties"]["allow"]["propertyNames"] = {
        "enum": [check.id for check in SILENCEABLE]
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ruleop rules (watches.yaml)",
        "if": {"type": "array"},
        "then": WATCHES.schema() | {"minItems": 1},
        "else": {"$ref": f"#/$defs/{FileTable.DEFINITION}"},
        "$defs": definitions,
    }
