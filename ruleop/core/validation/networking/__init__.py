"""Validation of the kinds of `networking`."""
