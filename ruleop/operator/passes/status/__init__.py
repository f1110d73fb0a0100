"""The status of a custom resource: when it is written, and what the server makes of it."""
