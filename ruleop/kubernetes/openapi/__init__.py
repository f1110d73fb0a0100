"""The OpenAPI documents that an API server publishes of its kinds."""
