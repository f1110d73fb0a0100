"""Logs, metrics and probes of a running operator. Imports nothing from the rest of the engine."""
