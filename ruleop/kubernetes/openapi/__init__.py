"""The OpenAPI documents that an API server publishes of its kinds."""

from ruleop.kubernetes.openapi.openapi_document import crd_types, openapi_document
from ruleop.kubernetes.openapi.openapi_v2 import openapi_v2

__all__ = [
    "crd_types",
    "openapi_document",
    "openapi_v2",
]
