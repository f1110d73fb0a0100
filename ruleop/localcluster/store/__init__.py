"""What the API server holds: objects, their versions, and the events that watches replay."""
