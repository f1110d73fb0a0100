"""Validation of the kinds of `rbac`."""
