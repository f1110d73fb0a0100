"""A template as a tree: its structure is known when it is loaded, and values are put into it when a pass runs."""
