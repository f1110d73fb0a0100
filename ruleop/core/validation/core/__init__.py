"""Validation of the kinds of `core`."""
