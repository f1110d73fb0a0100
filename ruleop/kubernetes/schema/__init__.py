"""The API's declarations of kinds: their fields, valid values, and how they merge.

There are two descriptions, and most questions need only one of them:

- a `Shape` (shape) describes how the objects of a kind merge. It comes from a server's OpenAPI documents (openapi),
  from the packaged table of Kubernetes' own kinds (table), or from a CRD (crds).
- a `Schema`, the plain JSON of a CRD's openAPIV3Schema, describes which fields of a custom resource the server keeps
  and fills in (structural) and whether the resource is valid (validation).

Each problem in a document is a `SchemaFinding` (schema_findings) at a path inside it. The package does no I/O:
documents are passed in as JSON, and the only file it reads is its own table of built-in kinds.
"""
