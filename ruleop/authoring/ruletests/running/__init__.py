"""Cases run: a cluster in memory, the steps of a case, and the state after each."""
