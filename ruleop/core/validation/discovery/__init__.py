"""Validation of the kinds of `discovery`."""
