"""The API's declarations of kinds: their fields, valid values, and how they merge.

There are two descriptions, and most questions need only one of them:

- a `Shape` (shape) describes how the objects of a kind merge. It comes from a server's OpenAPI documents,
  from the packaged table of Kubernetes' own kinds (`builtin/table.py`), or from a CRD (`crd.py`).
- a `Schema`, the plain JSON of a CRD's openAPIV3Schema, describes which fields of a custom resource the server keeps
  and fills in (`crd.py`) and whether the resource is valid (validation).

Each problem in a document is a `SchemaFinding` at a path inside it. Documents are passed in as JSON: nothing here reads
a file.
"""

from ruleop.kubernetes.schema.shape import (
    ANYTHING,
    BUILTIN_PREFIXES,
    DERIVED,
    EMPTY,
    OBJECT_META,
    OPTIONAL_FIELDS,
    UNKNOWN,
    Derived,
    FieldPath,
    OpenApi,
    Schema,
    Shape,
    ShapeBuilder,
    Unique,
    names_of_kinds,
    reference,
    shape_at,
    with_inner,
)
from ruleop.kubernetes.schema.validation import (
    FORMATS,
    LIST_KEYS,
    LIST_TYPE,
    SchemaError,
    SchemaFinding,
    Violation,
    compile_pattern,
    describe,
    find_spans,
    format_value,
    is_type,
    subschemas,
    unknown_to_shape,
    validate,
    violations,
)

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
