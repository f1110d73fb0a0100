"""The tables of the built-in kinds, by their API groups."""
