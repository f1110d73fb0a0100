"""Validation of the kinds of `coordination`."""
