"""Revisions of the rules: which rules were in force, since when, and their files.

They are kept in a ConfigMap, so that a leader knows the rules of the one before it, also after a restart.
"""
