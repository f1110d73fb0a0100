"""Where data of custom resources and Secrets goes: the slots of a child that print it, and the fields that it comes
from.

Values are followed through `let`, the items of `forEach`, variables, loops and macros. What a condition decides is not
followed. Two checks follow them: data of Secrets that more people can read, and fields of a CR that decide too much.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.crd import declares, definition_of
from ruleop.kubernetes.kinds import GroupKind
from ruleop.language.rules.scopes import loops_of, possible_in, written
from ruleop.language.rules.secret_reads import secret_ids
from ruleop.language.secrets.secret_values import CHECKSUMS, DATA_FIELDS, SECRET, is_secret_field
from ruleop.language.templates import SECRET_FUNCTIONS, syntax
from ruleop.language.templates.bodies.body import Body, BodyField, Printed
from ruleop.language.templates.compile import origins_of, picked_names, slots_from
from ruleop.language.templates.filters.registry import filters_that_give
from ruleop.language.templates.syntax import chain_of
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.schema import Schema
    from ruleop.language.rules import Findings
    from ruleop.language.rules.loading import Loaded, Watch
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import SlotPlace, YamlNode
    from ruleop.language.templates.bodies.body import Body, BodyField, FieldPath


# -- bodies and Pods ---------------------------------------------------------------------------------------------------
# The fields of a child's body, and of the Pods that it makes: where the body of each built-in kind has their template.

_TEMPLATES: Final[dict[tuple[str, str], FieldPath]] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
MAKE_NOTHING: Final = frozenset(
    GroupKind(group, kind)
    for group, kinds in {
        "cert-manager.io": ("Certificate", "ClusterIssuer", "Issuer"),
        "external-secrets.io": ("ClusterSecretStore", "ExternalSecret", "SecretStore"),
        "gateway.networking.k8s.io": ("GRPCRoute", "HTTPRoute", "TCPRoute", "TLSRoute"),
        "keda.sh": ("ScaledObject", "TriggerAuthentication"),
        "monitoring.coreos.com": ("PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"),
        "networking.istio.io": ("DestinationRule", "ServiceEntry", "VirtualService"),
        "snapshot.storage.k8s.io": ("VolumeSnapshot",),
        "traefik.io": ("IngressRoute", "Middleware"),
    }.items()
    for kind in kinds
)
"""Custom kinds whose controllers make no Pods, and nothing but Secrets."""
CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


def pod_template(kind: GroupKind) -> FieldPath | None:
    """The path of the Pods' metadata and spec; None of a kind that makes none."""
    return _TEMPLATES.get((kind.group, kind.kind))


def fields_of(body: Body) -> Iterator[BodyField]:
    """The fields of a body, with those that a slot picks by name: `{{ spec | pick('cpu') }}` alone on its line."""
    for field in body.fields:
        (slot, *others) = field.pieces or ("",)
        names = picked_names(slot.node) if isinstance(slot, Printed) and not others else None
        if names is None:
            yield field
        for name in names or ():
            yield replace(field, path=(*field.path, name), whole=False, spread=False)


def fields_of_pod(body: Body) -> Iterator[tuple[BodyField, FieldPath]]:
    """The fields of a body that belong to the spec of a Pod, with their paths in it."""
    template = pod_template(body.kind.versionless)
    if template is not None:
        prefix = (*template, "spec")
        for field in fields_of(body):
            if field.path[: len(prefix)] == prefix:
                yield field, field.path[len(prefix) :]


# -- where values come from --------------------------------------------------------------------------------------------

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
    crd: CustomResourceDefinition | None = dataclasses.field(init=False)
    _origins: dict[tuple[int, frozenset[str], frozenset[str], bool], _Origins] = dataclasses.field(default_factory=dict)
    _free: dict[frozenset[Path], IsSource] = dataclasses.field(default_factory=dict)
    _lets: dict[str, RulePart] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.crd = definition_of(self.watch.rule.kind, self.loaded.project.crds)
        self._lets = {each.let: each for each in self.watch.parts if each.let}

    @property
    def body_parts(self) -> list[RulePart]:
        return [part for part in self.watch.parts if part.body]

    def bodies(self, part: RulePart) -> tuple[Body, ...]:
        return possible_in(part, self.loaded.library).bodies

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
        """The slots whose values come from fields that `is_source` accepts, or from results of `functions`."""
        return slots_from(self.origins(part, clean=clean, functions=functions, by_item=by_item), is_source)

    def origins(
        self,
        part: RulePart,
        *,
        clean: frozenset[str] = frozenset(),
        functions: frozenset[str] = frozenset(),
        by_item: bool = False,
    ) -> _Origins:
        """The fields from which the value of each slot comes, also through lets. After the filters of `clean` it does
        not. `by_item`: an item of `forEach` is a field of its own."""
        key = id(part), clean, functions, by_item
        if key not in self._origins:
            self._origins[key] = {}  # a let that reads itself is a mistake of its own
            library = self.loaded.library
            loops = [] if by_item or part.let else loops_of(part, self.watch.parts, library)
            trees = [*written(part, library), *loops]
            found = origins_of(trees, self._names(part, by_item=by_item), clean=clean, functions=functions)
            self._origins[key] = {place: self._through_lets(paths, clean) for place, paths in found.items()}
        return self._origins[key]

    def _through_lets(self, paths: frozenset[Path], clean: frozenset[str]) -> frozenset[Path]:
        found: set[Path] = set()
        for path in paths:
            if path[0] == _LET:
                let = self._lets[path[1] or ""]
                sites = {site for _, site in _part_of(let.node, path[2:]).texts()}
                in_let = self.origins(let, clean=clean)
                found = found.union(*(in_let[place] for place in in_let if place.site in sites))
            else:
                found.add((path[1:] or ("spec",)) if path[0] == "cr" else path)
        return frozenset(found)

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

    def _names(self, part: RulePart, *, by_item: bool) -> dict[str, list[Path]]:
        draft = self.watch.draft
        others = [*draft.children, *draft.final, *draft.observed, "live", "ready", "this"]
        names: dict[str, list[Path]] = {name: [(_OTHER, name)] for name in others}
        names |= {name: [(name,)] for name in ("cr", "metadata", "spec", "status")}
        names |= {let: [(_LET, let)] for let in self._lets}
        if part.view.index:
            names["index"] = [(_ITEM, "index")]
        if by_item:
            names |= {item: [(_ITEM, item)] for item in part.view.items}
        return names


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


# -- exposed secrets ---------------------------------------------------------------------------------------------------
# Data of Secrets in children where more people can read it than may read Secrets: ConfigMaps, annotations and labels,
# and the environment and the command lines of Pods.
#
# Values are followed as for other checks of slots (`Sources`). A checksum exposes nothing, certificates and public keys
# are meant to be read, and names of users and hosts protect nothing.

_CERTIFICATE: Final = re.compile(
    r"(.*[._-])?(crt|cert|certificate|pub|public)|ca(\.pem)?|.*ca-?bundle(\.pem|\.crt)?", re.IGNORECASE
)
"""Keys of certificates and public keys: ca.crt, tls.crt, ssh-publickey.pub."""
_ADDRESS: Final = re.compile(r"(.*[._-])?(user|username|login|host|hostname|port|database|dbname)", re.IGNORECASE)
"""Keys of what is kept in a Secret beside the password."""
_CHECKSUM: Final = "use a checksum (`sha256`), or leave it out"
_CONFIG: Final = "write this part into a Secret, and mount that"


def check_exposed_secrets(sources: Sources, findings: Findings) -> None:
    secrets = secret_ids(sources.watch.draft)
    is_data = partial(_is_data, secrets)
    called = {name for part in sources.watch.parts for name, _ in part.compiled.calls}
    if not secrets and SECRET_FUNCTIONS.isdisjoint(called):
        return
    for part in sources.body_parts:
        readable = [each for body in sources.bodies(part) for each in _readable(body) if any(each[0].slots)]
        if not readable:
            continue
        places = sources.places(part, is_data, clean=CHECKSUMS, functions=SECRET_FUNCTIONS)
        for field, where, what_to_do in readable:
            for slot in field.slots:
                if slot.place in places:
                    instead = _reference(slot, secrets) if where == "env" else what_to_do
                    message = f"`{slot.place.expression}` exposes the data of a Secret in {where}: {instead}"
                    site, word = slot.place.site, slot.place.expression
                    findings.warning("exposed-secret", message, site, word=word)


def _is_data(secrets: Mapping[str, bool], path: Path) -> bool:
    """Whether a field of another object is data of a Secret that needs protection."""
    if path[0] != "other":
        return False
    inner = path[2:] if path[1] == "live" else path[1:]
    is_list = secrets.get(inner[0] or "") if inner else None
    if is_list is None:
        return False
    inner = inner[2:] if is_list else inner[1:]
    key = (inner[1] or "") if len(inner) > 1 else ""
    return not inner or (is_secret_field(inner) and not (_CERTIFICATE.fullmatch(key) or _ADDRESS.fullmatch(key)))


def _readable(body: Body) -> Iterator[tuple[BodyField, str, str]]:
    """The fields of a body that others than the readers of Secrets can read: what it is, and what to do instead."""
    if body.kind.versionless == SECRET:
        return
    is_config = (body.kind.group, body.kind.kind) == ("", "ConfigMap")
    for field in fields_of(body):
        names = [step for step in field.path if isinstance(step, str)]
        if is_config and names[:1] in (["data"], ["binaryData"]) and not _CERTIFICATE.fullmatch(names[-1]):
            yield field, "a ConfigMap", _CONFIG
        for what in ("annotations", "labels"):
            if ("metadata", what) in pairwise(names):
                yield field, what, _CHECKSUM
    for field, path in fields_of_pod(body):
        if path and path[0] in CONTAINERS and (found := _in_container(path[2:])):
            yield field, *found


def _in_container(path: FieldPath) -> tuple[str, str] | None:
    if path[:1] == ("env",) and path[-1] == "value":
        return "env", ""
    if "command" in path or path[:1] == ("args",):
        variable = "set an environment variable with `valueFrom.secretKeyRef`, and write `$(NAME)` here"
        return "a command line", variable
    return None


def _reference(slot: Printed, secrets: Mapping[str, bool]) -> str:
    """The way in which a Pod reads the value of a slot by itself."""
    node = slot.node
    while isinstance(node, syntax.Filter) and node.value is not None:
        node = node.value
    path = chain_of(node)
    path = path[1:] if path[:1] == ("live",) else path
    if len(path) == 3 and path[1] in DATA_FIELDS and secrets.get(str(path[0])) is False:
        name = f"{{{{ {path[0]}.metadata.name }}}}"
        return f"use `valueFrom: {{secretKeyRef: {{name: {name}, key: {path[2]}}}}}` instead of `value`"
    return "use `valueFrom.secretKeyRef` instead of `value`"


# -- sensitive fields --------------------------------------------------------------------------------------------------
# Fields by which a custom resource decides what a Pod runs and reaches, or what somebody may do.
#
# Users who may write custom resources of the kind then have these powers, without the permissions that they need
# otherwise. A value that the CRD bounds, by an enum, a pattern or a rule, is a decision of the CRD, and a number
# decides little: both are left out, except that a number or a boolean in a securityContext matters as well. A field
# that is called an image says itself what it decides, so it may become an image.

_RBAC: Final = "rbac.authorization.k8s.io"
_HOST: Final = frozenset({"hostNetwork", "hostPID", "hostIPC", "hostUsers"})
_ACCOUNT: Final = frozenset({"serviceAccountName", "serviceAccount"})
_OWN_VOLUMES: Final = frozenset({"name", "emptyDir", "persistentVolumeClaim", "configMap", "downwardAPI", "ephemeral"})
"""Volumes that hold nothing which the namespace does not show to everybody who may read it."""
_ANY_VALUE: Final = frozenset({"securityContext", "host"})
_FIXED_IMAGE: Final = re.compile(r"[^:@]*[a-z0-9][:@].*|.*/.*[a-z0-9][:@].*", re.DOTALL)
_FLAG: Final = re.compile(r"-[^=\s]+=.*", re.DOTALL)
_POWERS: Final = {
    "image": "which program runs",
    "command": "which program runs",
    "args": "the arguments of a program",
    "volumes": "which data of the node or of Secrets a Pod reads",
    "securityContext": "what a Pod may do on its node",
    "host": "what a Pod may do on its node",
    "account": "the permissions of a Pod",
    "rules": "what somebody may do",
}


def check_sensitive_fields(sources: Sources, findings: Findings) -> None:
    for part in sources.body_parts:
        found = [(field, what) for body in sources.bodies(part) for field, what in _sensitive(body) if any(field.slots)]
        if found:
            _report(found, part, sources, findings)


def _report(found: list[tuple[BodyField, str]], part: RulePart, sources: Sources, findings: Findings) -> None:
    texts = sources.places(part, sources.free(part), clean=NUMBERS)
    named = {what for _, what in found}
    any_value = sources.places(part, sources.is_of_spec) if named & _ANY_VALUE else frozenset()
    images = sources.places(part, partial(_is_no_image, sources.free(part)), clean=NUMBERS) if texts else texts
    by_what = {"image": images, **dict.fromkeys(_ANY_VALUE, any_value)}
    for field, what in found:
        for slot in field.slots:
            if slot.place in by_what.get(what, texts):
                name = ".".join(str(step) for step in field.path if isinstance(step, str))
                message = f"`{slot.place.expression}` lets a CR decide {_POWERS[what]} ({name}): {_TO_DO}"
                findings.warning(
                    "sensitive-field",
                    message,
                    slot.place.site,
                    word=slot.place.expression,
                    subject=sources.crd_file,
                )


_TO_DO: Final = "bound it in the CRD with an enum or a pattern, or allow it with a reason"


def _is_no_image(is_free: IsSource, path: Path) -> bool:
    return "image" not in (path[-1] or "").lower() and is_free(path)


def _sensitive(body: Body) -> Iterator[tuple[BodyField, str]]:
    if body.kind.group == _RBAC:
        for field in fields_of(body):
            if field.path[:1] in {("rules",), ("subjects",), ("roleRef",), ("aggregationRule",)} or not field.path:
                yield field, "rules"
        return
    for field, path in fields_of_pod(body):
        if what := _in_pod(field, path):
            yield field, what


def _in_pod(field: BodyField, path: FieldPath) -> str:
    """The sensitive subject that a field of a Pod's spec decides; "" if it decides none."""
    if not path:
        return "image" if field.spread else ""
    first = path[0]
    if first in _ACCOUNT:
        return "account"
    if first in _HOST:
        return "host"
    if first == "securityContext":
        return "securityContext"
    if first == "volumes":
        return "" if len(path) > 2 and path[2] in _OWN_VOLUMES else "volumes"
    return _of_container(field, path[2:]) if first in CONTAINERS else ""


def _of_container(field: BodyField, path: FieldPath) -> str:
    if not path:
        return "image"  # whole containers
    if path[0] == "securityContext":
        return "securityContext"
    literal = next((piece for piece in field.pieces if isinstance(piece, str)), "")
    begins = literal if field.pieces and isinstance(field.pieces[0], str) else ""
    if path[0] == "image":
        return "" if _FIXED_IMAGE.fullmatch(begins) else "image"
    if path[0] in ("command", "args"):
        return "" if _FLAG.fullmatch(begins) else str(path[0])
    return ""
