"""The permissions that rules need, and those that a role grants."""
