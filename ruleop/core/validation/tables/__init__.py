"""What the API server refuses of the built-in kinds, and warns of: one file for each API group."""
