"""A cluster that is a file: what offline commands have instead of an API server."""
