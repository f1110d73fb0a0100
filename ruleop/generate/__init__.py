"""What `ruleop generate` makes from a project: the text of files. The same project gives the same bytes."""
