"""The CRDs of a project: files of those that `schema` of the watches describes, those that are installed with an
operator, changes that break what works today, and the health of their kinds for Argo CD."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.inferred_definitions import sound_definitions
from ruleop.authoring.scaffold import rules_text
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.schema import SchemaError
from ruleop.language.status_limits import limits_of
from ruleop.language.templates.resource_reader import read_resources
from ruleop.messages import format_path
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.kubernetes.schema import FieldPath, Schema
    from ruleop.language.rules.keys.definitions import Definition
    from ruleop.language.rules.loading import Loaded


MARK: Final = "# Made by `ruleop generate"
"""The beginning of a generated file, which may be overwritten."""
_HEADER: Final = f"{MARK} crd` from `schema` in watches.yaml: change it there.\n"


def crd_files(definitions: Iterable[Definition]) -> dict[str, str]:
    """The text of each CRD, by the name of its file."""
    return {f"{each.crd.name}.yaml": _HEADER + rules_text(each.document) for each in definitions}


def yaml_stream(files: Mapping[str, str]) -> str:
    """The files as the documents of one."""
    return "---\n".join(files.values())


def installed_crds(loaded: Loaded) -> list[Object]:
    """In the order of the watches, from `schema` or from crds/. Raises ProjectErrors with the mistakes of schemas."""
    definitions = sound_definitions(loaded)
    known = _of_files(loaded) | {(each.crd.group, each.crd.kind): each.document for each in definitions}
    watched = dict.fromkeys((rule.kind.group, rule.kind.kind) for rule in loaded.project.rules)
    return [known[kind] for kind in watched if kind in known]


def _of_files(loaded: Loaded) -> dict[tuple[str, str], Object]:
    found: dict[tuple[str, str], Object] = {}
    for path, text in sorted(loaded.files.items()):
        if not path.startswith("crds/"):
            continue
        for node in read_resources(text, path)[0]:
            document = node.data()
            try:
                crd = parse_crd(document)
            except SchemaError:
                continue  # reported by loading
            found[crd.group, crd.kind] = document
    return found


# -- breaking changes --------------------------------------------------------------------------------------------------
# Changes of a CRD that break custom resources, rules or clients that work today.
#
# The rules are those of the Operator Framework's crdify, and what else the API server refuses or drops. Three changes
# break nothing here: a new required field with a default, because the default is filled in first; `{}` as the default
# of a mapping; and what only allows more, such as one more member of an enum.

_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_NARROWING: Final = ("pattern", "format", "multipleOf", "not", "allOf", "anyOf", "oneOf", _EMBEDDED)
_MERGING: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_DEFAULT_MERGING: Final = {"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "granular"}
_FLAGS: Final = ("nullable", _OPEN, "x-kubernetes-int-or-string")
_WIDER: Final = {"int32": "int64", "float": "double"}  # formats
_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_ANY: Final[Schema] = {_OPEN: True}
_TEXT: Final[Schema] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class CrdChange:
    """A breaking change. `version` is empty for one of the whole kind."""

    version: str
    path: FieldPath  # "[]" stands for the items of a list, and the values of a map
    message: str

    def __str__(self) -> str:
        field = format_path(self.path).replace("['[]']", "[]")
        place = " ".join(filter(None, (self.version, field)))
        return f"{place}: {self.message}" if place else self.message


def breaking_changes(old: Object, new: Object) -> list[CrdChange]:
    """The breaking changes between two CRDs of one kind."""
    before, after = old["spec"], new["spec"]
    found = list(_kind_changes(before, after))
    versions = {each["name"]: each for each in after["versions"]}
    stored = (old.get("status") or {}).get("storedVersions") or ()
    for each in before["versions"]:
        name = each["name"]
        version = versions.get(name)
        if version is None and name in stored:
            message = "removed, and objects may be stored in it: the API server refuses that (status.storedVersions)"
            found.append(CrdChange(name, (), message))
        elif version is None and each.get("served"):
            found.append(CrdChange(name, (), "removed"))
        if version is None:
            continue
        if each.get("served") and not version.get("served"):
            found.append(CrdChange(name, (), "no longer served"))
        found += (CrdChange(name, path, message) for path, message in _version_changes(each, version))
    return found


def _kind_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[CrdChange]:
    if before["scope"] != after["scope"]:
        yield CrdChange("", (), f"scope changed from {before['scope']} to {after['scope']}")
    if before["names"]["plural"] != after["names"]["plural"]:
        yield CrdChange("", (), f"plural changed from {before['names']['plural']} to {after['names']['plural']}")
    for name in before["names"].get("shortNames") or ():
        if name not in (after["names"].get("shortNames") or ()):
            yield CrdChange("", (), f'short name "{name}" removed')
    if _strategy(before) == "Webhook" != _strategy(after) and len(after["versions"]) > 1:
        yield CrdChange("", (), "conversion webhook removed: fields that versions do not share are lost")


def _strategy(spec: Mapping[str, Any]) -> str:
    return str((spec.get("conversion") or {}).get("strategy"))


def _version_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    old_subresources, new_subresources = before.get("subresources") or {}, after.get("subresources") or {}
    for name in ("status", "scale"):
        if old_subresources.get(name) is not None and new_subresources.get(name) is None:
            yield (), f"subresource {name} removed"
    old_scale, new_scale = old_subresources.get("scale") or {}, new_subresources.get("scale") or {}
    for key, path in old_scale.items():
        if new_scale and new_scale.get(key) != path:
            yield (), f"{key} of the subresource scale changed from {path} to {new_scale.get(key, 'none')}"
    selectable = [each["jsonPath"] for each in after.get("selectableFields") or ()]
    for each in before.get("selectableFields") or ():
        if each["jsonPath"] not in selectable:
            yield (), f"selectable field {each['jsonPath']} removed"
    yield from _schema_changes(_schema_of(before), _schema_of(after), ())


def _schema_of(version: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, of which only restrictions of names concern the fields that every object has."""
    found = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    properties = found.get("properties") or {}
    restricted = (properties.get("metadata") or {}).get("properties") or {}
    names = {name: restricted.get(name, _TEXT) for name in ("name", "generateName")}
    fields = {name: each for name, each in properties.items() if name not in _IDENTITY}
    return {
        **found,
        "required": [name for name in found.get("required") or () if name not in _IDENTITY],
        "properties": {"metadata": {"type": "object", "properties": names}, **fields},
    }


def _schema_changes(old: Schema, new: Schema, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    if new is _ANY:  # not declared any more, and kept as it is
        if "default" in old:
            yield path, _default_change(old, new)
        return
    types = [_type_of(each) for each in (old, new)]
    if types[0] != types[1]:
        yield path, f"type changed from {types[0]} to {types[1]}"
        return  # what else differs follows from that
    yield from ((path, message) for message in _value_changes(old, new))
    yield from _member_changes(old, new, path)


def _type_of(schema: Schema) -> str:
    return "int-or-string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type") or "any")


def _value_changes(old: Schema, new: Schema) -> Iterator[str]:
    """Values of one schema that are no longer valid, or mean something else."""
    yield from _bound_changes(old, new)
    for keyword in _NARROWING:
        before, after = old.get(keyword), new.get(keyword)
        if after and before != after and not _is_wider(keyword, before, after):
            yield f"{keyword} changed from {before} to {after}" if before else f"{keyword} added"
    yield from _meaning_changes(old, new)
    rules = [_condition(each) for each in old.get("x-kubernetes-validations") or ()]
    for each in new.get("x-kubernetes-validations") or ():
        if _condition(each) not in rules:
            yield f"validation rule added: {each.get('rule')}"


def _condition(rule: Mapping[str, Any]) -> tuple[Any, bool]:
    return rule.get("rule"), bool(rule.get("optionalOldSelf"))


def _is_wider(keyword: str, old: JSON, new: JSON) -> bool:
    """Whether what was valid stays so for certain."""
    match keyword:
        case "multipleOf":
            return isinstance(old, int) and isinstance(new, int) and old % new == 0
        case "allOf":
            return isinstance(old, list) and isinstance(new, list) and all(each in old for each in new)
        case "anyOf":
            return isinstance(old, list) and isinstance(new, list) and all(each in new for each in old)
        case "format":
            return isinstance(old, str) and _WIDER.get(old) == new
    return False


def _meaning_changes(old: Schema, new: Schema) -> Iterator[str]:
    if new.get("enum"):
        removed = [each for each in old.get("enum") or () if each not in new["enum"]]
        if not old.get("enum"):
            yield "enum added"
        elif removed:
            yield f"removed from enum: {', '.join(map(str, removed))}"
    if old.get("default") != new.get("default") and not ("default" not in old and new["default"] == {}):
        yield _default_change(old, new)
    for keyword in _FLAGS:
        if old.get(keyword) and not new.get(keyword):
            yield f"{keyword} removed"
    for keyword in _MERGING:
        before, after = (each.get(keyword, _DEFAULT_MERGING.get(keyword)) for each in (old, new))
        if before != after:
            yield f"{keyword} changed from {before} to {after}"


def _bound_changes(old: Schema, new: Schema) -> Iterator[str]:
    for keywords, sign, verb in ((_LOWER, 1, "raised"), (_UPPER, -1, "lowered")):
        for keyword in keywords:
            before, after = old.get(keyword), new.get(keyword)
            if after is not None and before is None:
                yield f"{keyword} added: {after}"
            elif after is not None and before is not None and sign * after > sign * before:
                yield f"{keyword} {verb} from {before} to {after}"
    for keyword, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if new.get(keyword) and not old.get(keyword) and old.get(bound) == new.get(bound):
            yield f"{keyword} added"


def _default_change(old: Schema, new: Schema) -> str:
    if "default" not in old:
        return f"default added: {new['default']}"
    return f"default changed from {old['default']} to {new['default']}" if "default" in new else "default removed"


def _member_changes(old: Schema, new: Schema, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    undeclared, others = _undeclared(old), _undeclared(new)
    for name in dict.fromkeys((*before, *(after if others is not None else ()))):
        was, now = before.get(name, undeclared), after.get(name, others)
        if was is not None and now is not None:
            yield from _schema_changes(was, now, (*path, name))
        elif name in before:
            yield (*path, name), "removed"
    for name in new.get("required") or ():
        if name not in (old.get("required") or ()) and "default" not in after.get(name, {}):
            yield (*path, name), "required now"
    if isinstance(items := old.get("items"), Mapping) and isinstance(new.get("items"), Mapping):
        yield from _schema_changes(items, new["items"], (*path, "[]"))
    if old.get("additionalProperties") and undeclared is not None:
        if others is None:
            yield path, "other fields are no longer kept (additionalProperties removed)"
        else:
            yield from _schema_changes(undeclared, others, (*path, "[]"))


def _undeclared(schema: Schema) -> Schema | None:
    """The schema of fields that are not declared; None if they are dropped."""
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        return others
    return _ANY if others is True or schema.get(_OPEN) else None


# -- health for Argo CD ------------------------------------------------------------------------------------------------
# The health of a project's kinds for Argo CD, which takes every custom resource that exists as healthy.
#
# One script in Lua serves all kinds (argocd_health.lua): it reads Ready and Stalled as kstatus does, by which Flux
# knows the same without any configuration, and Paused.

CONFIG_MAP: Final = "argocd-cm"


def health_script() -> str:
    return importlib.resources.files(__package__).joinpath("argocd_health.lua").read_text(encoding="utf-8")


def health_kinds(loaded: Loaded, crds: Sequence[Object]) -> tuple[list[Kind], list[str]]:
    """The kinds whose conditions say how they are, and a sentence for each other one."""
    schemas = dict(_schemas(crds))
    known: list[Kind] = []
    notes: list[str] = []
    for kind in dict.fromkeys(rule.kind.versionless for rule in loaded.project.rules):
        rules = [rule for rule in loaded.project.rules if rule.kind.versionless == kind]
        schema = schemas.get(rules[0].kind)
        limits = limits_of(schema, ["Ready"], generation=False) if schema is not None else None
        if not all(rule.status.managed for rule in rules):
            notes.append(f"{kind.kind}: the rules write no status, so its health is left to Argo CD")
        elif limits is not None and ("status.conditions" in limits.dropped or "Ready" in limits.refused):
            notes.append(f"{kind.kind}: its CRD does not allow the condition Ready, so its health is left to Argo CD")
        else:
            known.append(rules[0].kind)
    return known, notes


def _schemas(crds: Sequence[Object]) -> Iterator[tuple[Kind, Schema]]:
    for document in crds:
        crd = parse_crd(document)
        for version in crd.versions:
            if version.schema:
                yield Kind(crd.group, version.name, crd.kind), version.schema


def argocd_text(kinds: Sequence[Kind], namespace: str) -> str:
    """A part of Argo CD's ConfigMap."""
    script = health_script()
    labels = {"app.kubernetes.io/name": CONFIG_MAP, "app.kubernetes.io/part-of": "argocd"}
    header = f"{MARK} argocd` from watches.yaml: change it there.\n"
    return header + rules_text(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP, "namespace": namespace, "labels": labels},
            "data": {f"resource.customizations.health.{each.group}_{each.kind}": script for each in kinds},
        }
    )
