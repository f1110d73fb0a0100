"""Validation of the kinds of `scheduling`."""
