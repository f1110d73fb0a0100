"""The files that `ruleop generate` makes from a project, as text. The same project gives the same bytes."""
