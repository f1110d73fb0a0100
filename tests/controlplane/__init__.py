"""A real Kubernetes control plane for the tests: built here, started here, on loopback only."""
