"""The rules language: its tables and value types, parsed files, and the typed model."""
