"""The checks of rules. They depend on the language, not on loading."""
