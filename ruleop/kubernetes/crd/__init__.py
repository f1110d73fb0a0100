"""CustomResourceDefinitions: read, checked, written from the short form of `schema:`, and applied to objects."""
