"""The checks of rules, one per file. They depend on the language, not on loading."""
