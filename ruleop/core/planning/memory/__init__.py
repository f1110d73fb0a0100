"""Knowledge from earlier passes over a custom resource: its history, and the work that is kept for the plan of the
status."""
