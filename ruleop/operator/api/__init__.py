"""The engine's requests to the API server, by kind and identity. Imports nothing from the rest of the engine."""
