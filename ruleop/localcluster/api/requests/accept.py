"""The form in which a client wants a response: the object, its metadata only, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.localcluster.status_errors import READ_TYPES, STREAM_TYPES, bad_request, no_representation, not_acceptable

if TYPE_CHECKING:
    from ruleop.localcluster.kinds.served import Served

YAML: Final = "application/yaml"
_VERSIONS: Final = ("v1", "v1beta1")  # of tables and metadata
_ANY: Final = frozenset({"*/*", "application/json"})


class Form(NamedTuple):
    name: str = ""  # "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"
    is_yaml: bool = False
    version: str = "v1"  # of meta.k8s.io
    include: str = "Metadata"  # of the objects of a table's rows: None, Metadata or Object


PLAIN: Final = Form()


def choose_form(accept: str, *, is_builtin: bool = False, watches: bool = False) -> Form:
    """The first form in the Accept header that is served. Raises Rejected if there is none."""
    if not accept or accept in _ANY:
        return PLAIN
    known = False
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media not in _ANY and media != YAML:
            continue
        if media == YAML and watches:
            raise not_acceptable(f"only the following media types are accepted: {STREAM_TYPES}")
        known = True
        found = dict(each.partition("=")[::2] for each in parameters)
        name, version = found.get("as", ""), found.get("v", "")
        if not name:
            return Form(is_yaml=media == YAML)
        if found.get("g") != "meta.k8s.io" or version not in _VERSIONS:
            continue
        if name in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form(name, is_yaml=media == YAML, version=version)
    if is_builtin and not known:
        raise no_representation(f"{READ_TYPES}, {STREAM_TYPES}" if watches else READ_TYPES)
    raise not_acceptable(f"only the following media types are accepted: {READ_TYPES}")


def with_included(form: Form, include: str) -> Form:
    """The form of a table with the given part of its objects. Raises Rejected."""
    if include not in ("", "None", "Metadata", "Object"):
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": must be '
            "'Metadata', 'Object', 'None', or empty"
        )
    return form._replace(include=include or "Metadata")


def check_form(form: Form, served: Served, *, is_list: bool) -> None:
    """Raises Rejected where the form of an object is asked of a list, or that of a list of an object."""
    kind = f"*{served.kind.group.partition('.')[0] or 'core'}.{served.kind.kind}"
    if served.is_custom:
        kind = "*unstructured.Unstructured"
    if is_list and form.name == "PartialObjectMetadata":
        raise not_acceptable(f"you requested {form.name}, but the requested object is a list ({kind}List)")
    if not is_list and form.name == "PartialObjectMetadataList":
        raise not_acceptable(f"you requested {form.name}, but the requested object is not a list ({kind})")
