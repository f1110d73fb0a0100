"""Logs, metrics and probes: what people and Kubernetes see of a running operator.

Knows nothing of the other wings.
"""
