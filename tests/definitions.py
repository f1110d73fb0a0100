"""Definitions of custom kinds: small ones as text, and any as the API has them."""

from __future__ import annotations

from typing import Any

OPEN = "{type: object, x-kubernetes-preserve-unknown-fields: true}"


def definition(
    kind: str = "App",
    *,
    group: str = "example.com",
    scope: str = "Namespaced",
    spec: str = OPEN,
    status: str = OPEN,
    subresource: bool = True,
    requires_spec: bool = False,
    more: str = "",
) -> str:
    """Of `<kind>s` in version v1. `spec` and `status` are their schemas, each in one line; '' where there
    is none. `more` are further versions, a line each."""
    properties = [f"            {name}: {schema}\n" for name, schema in (("spec", spec), ("status", status)) if schema]
    plural = f"{kind.lower()}s"
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
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


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(kind: str, group: str, *versions: dict[str, Any], plural: str = "", **more: Any) -> dict[str, Any]:
    """`more` are fields of its spec, which replace those of the same name."""
    plural = plural or f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions), **more}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }


def version(name: str, schema: dict[str, Any], *, storage: bool = True, **more: Any) -> dict[str, Any]:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def fields(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}
