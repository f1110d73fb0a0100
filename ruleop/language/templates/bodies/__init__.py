"""The bodies that a template may give, before anything is rendered. Loading reads them, so that a branch that is not
YAML is found without a custom resource that takes it; `ruleop check` compares them with the schemas of their kinds."""
