"""Requests to an API server: the client, prepared requests, errors, discovery, Events."""
