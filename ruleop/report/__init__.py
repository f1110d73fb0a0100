"""A plan for people and programs: as text and as JSON."""
