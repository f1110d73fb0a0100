"""Validation of the kinds of `apiextensions`."""
