"""The API's declarations of kinds: their fields, valid values, and how they merge.

There are two descriptions, and most questions need only one of them:

- a `Shape` (shape) describes how the objects of a kind merge. It comes from a server's OpenAPI documents (openapi),
  from the packaged table of Kubernetes' own kinds (table), or from a CRD (crds).
- a `Schema`, the plain JSON of a CRD's openAPIV3Schema, describes which fields of a custom resource the server keeps
  and fills in (structural) and whether the resource is valid (validation).

Each problem in a document is a `SchemaFinding` (schema_findings) at a path inside it. The package does no I/O:
documents are passed in as JSON, and the only file it reads is its own table of built-in kinds.
"""

from ruleop.kubernetes.schema.derived_fields import ANYTHING, DERIVED, Derived
from ruleop.kubernetes.schema.formats import FORMATS, InvalidPatternError, compile_pattern, find_spans
from ruleop.kubernetes.schema.openapi import (
    BUILTIN_PREFIXES,
    OBJECT_META,
    OpenApi,
    Schema,
    ShapeBuilder,
    names_of_kinds,
    reference,
    with_inner,
)
from ruleop.kubernetes.schema.optional_fields import OPTIONAL_FIELDS
from ruleop.kubernetes.schema.schema_findings import FieldPath, SchemaError, SchemaFinding
from ruleop.kubernetes.schema.shape import EMPTY, UNKNOWN, Shape, Unique, shape_at, unknown_to_shape
from ruleop.kubernetes.schema.validation import is_type, subschemas, validate, violations
from ruleop.kubernetes.schema.violations import LIST_KEYS, LIST_TYPE, Violation, describe, format_value

__all__ = [
    "ANYTHING",
    "BUILTIN_PREFIXES",
    "DERIVED",
    "EMPTY",
    "FORMATS",
    "LIST_KEYS",
    "LIST_TYPE",
    "OBJECT_META",
    "OPTIONAL_FIELDS",
    "UNKNOWN",
    "Derived",
    "FieldPath",
    "InvalidPatternError",
    "OpenApi",
    "Schema",
    "SchemaError",
    "SchemaFinding",
    "Shape",
    "ShapeBuilder",
    "Unique",
    "Violation",
    "compile_pattern",
    "describe",
    "find_spans",
    "format_value",
    "is_type",
    "names_of_kinds",
    "reference",
    "shape_at",
    "subschemas",
    "unknown_to_shape",
    "validate",
    "violations",
    "with_inner",
]
