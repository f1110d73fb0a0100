"""Validation of the kinds of `storage`."""
