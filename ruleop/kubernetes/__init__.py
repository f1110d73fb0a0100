"""The Kubernetes API: kinds, names, schemas, CEL, defaults, validation and merging."""
