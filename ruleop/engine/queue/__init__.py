"""What to reconcile next, and when.

A queue per watched kind, the workers that take from it, and what passes between them: a `Request` (which CR), a `Result` (how it
ended) and the triggers, for the log. Knows nothing of rules, objects or the API server.
"""
