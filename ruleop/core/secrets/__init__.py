"""The values of Secrets: how they are found, hidden and replaced, for all who show something."""
