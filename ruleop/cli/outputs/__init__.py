"""Results as text, for terminals and programs."""
