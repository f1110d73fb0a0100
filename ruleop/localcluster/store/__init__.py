"""The storage of the API server: objects, their versions, and the events that watches replay."""
