"""Rules of `validate` as policies of the API server."""
