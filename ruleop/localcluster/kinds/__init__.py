"""The resources that are served: the built-in kinds and those of CustomResourceDefinitions."""
