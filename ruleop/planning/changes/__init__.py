"""The fields that an action changes, and descriptions of changes, drift and failed writes without values of Secrets."""
