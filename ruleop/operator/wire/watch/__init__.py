"""Following a collection: the reflector decides (no I/O), the watcher sends requests, the store keeps objects."""
