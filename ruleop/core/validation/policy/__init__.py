"""Validation of the kinds of `policy`."""
