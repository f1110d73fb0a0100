"""Controllers of the workloads that run forever."""
