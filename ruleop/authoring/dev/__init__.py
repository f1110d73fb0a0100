"""The operator and a cluster in memory in one process, for `ruleop dev`."""
