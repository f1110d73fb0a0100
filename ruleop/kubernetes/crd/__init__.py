"""CustomResourceDefinitions: read, checked, written from the short form of `schema:`, and applied to objects."""

from ruleop.kubernetes.crd.crds import (
    API_VERSION,
    CrdVersion,
    CustomResourceDefinition,
    PrinterColumn,
    SchemaForm,
    crd_shape,
    definition_of,
    parse_crd,
)
from ruleop.kubernetes.crd.structural import (
    META_FIELDS,
    declares,
    default,
    drop_unknown,
    is_kept,
    prune,
    schema_at,
    unknown_fields,
)

__all__ = [
    "API_VERSION",
    "META_FIELDS",
    "CrdVersion",
    "CustomResourceDefinition",
    "PrinterColumn",
    "SchemaForm",
    "crd_shape",
    "declares",
    "default",
    "definition_of",
    "drop_unknown",
    "is_kept",
    "parse_crd",
    "prune",
    "schema_at",
    "unknown_fields",
]
