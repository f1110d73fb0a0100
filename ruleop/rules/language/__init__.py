"""The rules language: its tables and values, what was parsed, and the typed model that they become."""
