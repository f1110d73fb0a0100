"""The requests of the engine: kinds and identities in, calls of the API server out.

Knows `ruleop.kube`, and nothing else of the engine.
"""
