"""New projects: their files, written for people to edit. `ruleop init` and `ruleop generate` print or write them."""
