"""Requests to an API server: the client, prepared requests, errors and their redaction, discovery, Events."""
