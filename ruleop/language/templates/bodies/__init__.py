"""The bodies that a template yields before anything is rendered, in which each `{{ ... }}` is a mark. Loading parses
them, so that a branch that is not YAML is found without a custom resource that takes it; `ruleop check` reads them."""
