"""Reads a cluster: its kinds and objects, and nothing is kept that was not asked for."""
