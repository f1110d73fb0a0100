"""Validation of the kinds of `batch`."""
