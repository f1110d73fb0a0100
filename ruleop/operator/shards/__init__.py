"""Several processes of one operator: which custom resources this one reconciles."""
