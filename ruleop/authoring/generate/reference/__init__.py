"""The reference of the kinds of a project."""
