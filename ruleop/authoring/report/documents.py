"""Documents for programs: the values of the model as plain JSON, by one function.

A field has its own name in camel case; the four names of an ObjectKey are among those of the value that has it. A field
whose default is None is left out while it is None, so that a value writes only the fields of its sort. A class names in
`DERIVED` the properties that belong to its document.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from ruleop.kubernetes.kinds import ObjectKey

HIDDEN: Final = {"document": "hidden"}
"""Metadata of a field that only the text needs."""

NULL: Final = {"document": "null"}
"""Metadata of a field that is null while it is None."""

INLINE: Final = {"document": "inline"}
"""Metadata of a field whose own fields are among those of the value that has it. Of two with a name, the outer one
counts."""


def as_document(value: Any) -> Any:
    if isinstance(value, ObjectKey):
        return value._asdict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [as_document(each) for each in value]
    if isinstance(value, Mapping) or not dataclasses.is_dataclass(value):
        return value
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        mode, each = field.metadata.get("document"), getattr(value, field.name)
        if mode == "hidden" or (each is None and field.default is None and mode != "null"):
            continue
        if mode == "inline" or isinstance(each, ObjectKey):
            found |= {name: one for name, one in as_document(each).items() if name not in found}
        else:
            found[_name(field.name)] = as_document(each)
    return found | {_name(name): as_document(getattr(value, name)) for name in getattr(value, "DERIVED", ())}


def _name(name: str) -> str:
    first, *others = name.removesuffix("_").split("_")
    return first + "".join(map(str.capitalize, others))
