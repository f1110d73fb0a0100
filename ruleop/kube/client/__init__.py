"""Requests to an API server and what its answers mean: the client, prepared requests, errors, discovery, Events."""
