"""Which resources are served and how: the built-in kinds and those of CustomResourceDefinitions."""
