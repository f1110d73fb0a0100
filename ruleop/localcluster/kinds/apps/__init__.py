"""Workloads: what the server does to them beyond validation."""
