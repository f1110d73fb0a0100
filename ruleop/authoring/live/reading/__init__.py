"""Reads of a cluster: its kinds and its objects. Only what was read for an answer is kept."""
