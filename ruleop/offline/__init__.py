"""What offline commands use instead of an API server: files."""
