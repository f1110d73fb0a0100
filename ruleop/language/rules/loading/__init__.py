"""Loads a project from a folder: files, includes, checks, rules."""
