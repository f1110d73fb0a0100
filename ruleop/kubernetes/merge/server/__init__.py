"""The changes that an API server makes to the values that are sent to it."""
