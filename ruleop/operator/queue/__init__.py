"""Queues that decide which CR to reconcile next, and when.

A queue per watched kind, its workers, and what passes between them: a `Request` (which CR), a `Result` (how its
reconcile ended) and triggers (why, for the log). Knows nothing of rules, objects or the API server.
"""
