"""Pods, Services, claims, volumes, namespaces and events: what the server does to them beyond validation."""
