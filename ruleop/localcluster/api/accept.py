"""The form in which a client wants an answer: the object, its metadata only, or a table."""

from __future__ import annotations

from typing import Final, NamedTuple

from ruleop.localcluster.errors import not_acceptable

_ANY: Final = frozenset({"*/*", "application/*", "application/json"})


class Form(NamedTuple):
    name: str = ""  # "", "Table", "PartialObjectMetadata" or "PartialObjectMetadataList"
    stream: str = "application/json"


PLAIN: Final = Form()


def form_of(accept: str) -> Form:
    """The first form in the Accept header that is served. Raises Rejected if there is none."""
    if not accept or accept in _ANY:
        return PLAIN
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        if media not in _ANY:
            continue
        found = dict(each.partition("=")[::2] for each in parameters)
        name = found.get("as", "")
        if name and (found.get("v"), found.get("g")) != ("v1", "meta.k8s.io"):
            continue
        if name in ("", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form(name)
    raise not_acceptable(
        "only the following media types are accepted: application/json, application/json;as=Table;v=v1;g=meta.k8s.io"
    )
