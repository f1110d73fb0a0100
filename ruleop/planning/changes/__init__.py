"""Which fields an action changes, and how changes, drift and failed writes are described without values of Secrets."""
