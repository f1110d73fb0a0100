"""Formats plans: as text for people and as JSON for programs."""
