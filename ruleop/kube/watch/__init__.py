"""Following a collection: the reflector decides (no I/O), the watcher asks, the store keeps."""
