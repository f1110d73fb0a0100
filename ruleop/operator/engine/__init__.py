"""The loop: what to reconcile when, and carrying out its plan."""
