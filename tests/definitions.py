"""Small definitions of custom kinds, as text."""

from __future__ import annotations

OPEN = "{type: object, x-kubernetes-preserve-unknown-fields: true}"


def definition(
    kind: str = "App",
    *,
    scope: str = "Namespaced",
    spec: str = OPEN,
    status: str = OPEN,
    subresource: bool = True,
    requires_spec: bool = False,
    more: str = "",
) -> str:
    """Of `<kind>s.example.com`, in version v1. `spec` and `status` are their schemas, each in one line; '' where there
    is none. `more` are further versions, a line each."""
    properties = [f"            {name}: {schema}\n" for name, schema in (("spec", spec), ("status", status)) if schema]
    plural = f"{kind.lower()}s"
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}}}
  versions:
    - name: v1
      served: true
      storage: true
{"      subresources: {status: {}}" + chr(10) if subresource else ""}      schema:
        openAPIV3Schema:
          type: object
{"          required: [spec]" + chr(10) if requires_spec else ""}          properties:
{"".join(properties)}{more}"""
