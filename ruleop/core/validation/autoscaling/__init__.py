"""Validation of the kinds of `autoscaling`."""
