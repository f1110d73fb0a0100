"""Validation of the kinds of `apps`."""
