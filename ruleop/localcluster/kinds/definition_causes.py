"""Why a CustomResourceDefinition is invalid, in the words of the API server where authors meet them often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.errors import Cause, immutable_value, invalid_value, required, unsupported
from ruleop.localcluster.kinds.accepted_names import is_established
from ruleop.schema.crd_checks import check_crd
from ruleop.schema.schema_findings import format_path
from ruleop.schema.validation import subschemas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kinds import Object
    from ruleop.schema.openapi import Schema

_INVALID: Final = "FieldValueInvalid"
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")


def definition_causes(new: Object, old: Object | None) -> list[Cause]:
    causes = [*_immutable_causes(new, old), *_causes(new)] if old is not None else [*_name_causes(new), *_causes(new)]
    if causes:
        return causes
    causes = list(_stored_causes(new))
    if causes:
        return causes
    return [Cause(_INVALID, f"Invalid value: {each.message}", format_path(each.path)) for each in check_crd(new)]


def _name_causes(document: Object) -> Iterator[Cause]:
    spec, name = document["spec"], document["metadata"]["name"]
    if name != f"{(spec.get('names') or {}).get('plural')}.{spec.get('group')}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _causes(document: Object) -> Iterator[Cause]:
    spec = document["spec"]
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    for field, holder, path in (
        ("group", spec, "spec.group"),
        ("scope", spec, "spec.scope"),
        ("plural", names, "spec.names.plural"),
        ("kind", names, "spec.names.kind"),
    ):
        if not holder.get(field):
            yield required(path)
    if sum(bool(each.get("storage")) for each in versions) != 1:
        shown = [_version(each) for each in versions]
        yield invalid_value("spec.versions", shown, "must have exactly one version marked as storage version")
        if not (document.get("status") or {}).get("storedVersions"):
            yield invalid_value("status.storedVersions", None, "must have at least one stored version")
    for index, each in enumerate(versions):
        schema = (each.get("schema") or {}).get("openAPIV3Schema")
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        if schema is None:
            yield required(path)
            continue
        # A single version has its schema in a field of its own once it is converted.
        yield from _type_causes(schema, "spec.validation.openAPIV3Schema" if len(versions) == 1 else path)


def _immutable_causes(new: Object, old: Object) -> Iterator[Cause]:
    """What cannot change of a definition; the scope and the kind once it is served."""
    before, after = old["spec"], new["spec"]
    names, served = after.get("names") or {}, is_established(old)
    for field, was, value, is_fixed in (
        ("scope", before["scope"], after.get("scope"), served),
        ("names.kind", before["names"]["kind"], names.get("kind"), served),
        ("group", before["group"], after.get("group"), True),
        ("names.plural", before["names"]["plural"], names.get("plural"), True),
    ):
        if is_fixed and value != was:
            yield immutable_value(f"spec.{field}", value or "")


def _stored_causes(document: Object) -> Iterator[Cause]:
    """What is wrong with the versions that the status names as stored."""
    versions = [each["name"] for each in document["spec"]["versions"]]
    stored = (document.get("status") or {}).get("storedVersions") or []
    path = "status.storedVersions"
    for index, name in enumerate(stored):
        if name not in versions:
            problem = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from {path}"
            )
            yield invalid_value(f"{path}[{index}]", name, problem)


def _version(version: Object) -> dict[str, Any]:
    """A version as Go prints the internal type."""
    return {
        "Name": version.get("name", ""),
        "Served": version.get("served", False),
        "Storage": version.get("storage", False),
        "Deprecated": version.get("deprecated", False),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None,
        "Subresources": version.get("subresources"),
        "AdditionalPrinterColumns": version.get("additionalPrinterColumns"),
        "SelectableFields": version.get("selectableFields"),
    }


def _type_causes(schema: Schema, path: str) -> Iterator[Cause]:
    found = schema.get("type")
    if found is not None and found not in _TYPES:
        yield unsupported(f"{path}.type", found, _TYPES)
    for steps, each in subschemas(schema):
        keyword, *rest = steps
        yield from _type_causes(each, f"{path}.{keyword}" + "".join(f"[{step}]" for step in rest))
