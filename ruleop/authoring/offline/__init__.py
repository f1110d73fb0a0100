"""Files that offline commands use instead of an API server."""
