"""Creation, update and deletion of objects, and their checks."""
