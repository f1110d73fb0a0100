"""Controllers of PodDisruptionBudgets."""
