"""What the API says about kinds: which fields there are, what they may hold, and how they merge.

There are two descriptions, and most questions need only one of them:

- a `Shape` (shape) tells how the objects of a kind merge. It comes from a server's OpenAPI documents (openapi), from the packaged table
  of Kubernetes' own kinds (table), or from a CRD (crds).
- a `Schema`, the plain JSON of a CRD's openAPIV3Schema, tells what becomes of a custom resource (structural) and whether it is valid
  (validation).

Whatever is wrong with a document is a `Finding` (findings) at a path inside it. The room is pure: documents come in as JSON, and the
only file it reads is its own table.
"""
