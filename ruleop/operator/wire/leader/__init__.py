"""Leader election: the state machine of a Lease, and the thread that renews it."""
