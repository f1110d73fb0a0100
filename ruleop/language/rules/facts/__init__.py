"""Facts of a watch that its rule is built from, and that checks read: its expressions, its order, its Secret data."""
