"""Rollouts of edits of the rules: the record on the API server, which rules a custom resource has by it, and the loop
of the leader that releases the next ones."""
