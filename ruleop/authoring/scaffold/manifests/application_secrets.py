"""Secrets of an application. Their data are never copied.

A Secret of passwords is generated for each custom resource, once. Any other is one that users make: the spec has its
name, and the rule observes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.manifests.cleaning import SecretRole
from ruleop.authoring.scaffold.manifests.extraction import PLACEHOLDER
from ruleop.authoring.scaffold.manifests.plain_credentials import is_password
from ruleop.authoring.scaffold.yaml_layout import Expr

if TYPE_CHECKING:
    from ruleop.authoring.scaffold.manifests.cleaning import Manifest

_OPAQUE: Final = (None, "Opaque")
_DOCKER: Final = "kubernetes.io/dockerconfigjson"


def keys(manifest: Manifest) -> list[str]:
    """The keys of a Secret."""
    data = [manifest.body.get(name) for name in ("data", "stringData")]
    return list(dict.fromkeys(key for each in data if isinstance(each, dict) for key in each))


def is_observed(manifest: Manifest) -> bool:
    """Whether it is a Secret that users make."""
    is_data = manifest.role is SecretRole.DATA and not _is_generated(manifest)
    return manifest.kind.kind == "Secret" and (is_data or manifest.role is SecretRole.GIVEN)


def _is_generated(manifest: Manifest) -> bool:
    """Whether new passwords are as good as those of the application."""
    found = keys(manifest)
    return manifest.body.get("type") in _OPAQUE and bool(found) and all(map(is_password, found))


def generated(manifest: Manifest) -> dict[str, Any]:
    """The Secret with new passwords."""
    body = {name: value for name, value in manifest.body.items() if name not in ("data", "stringData", "immutable")}
    return {**body, "stringData": dict.fromkeys(keys(manifest), Expr("random_password(24)"))}


def placeholder(manifest: Manifest) -> dict[str, Any]:
    """A Secret of the same name and keys, to be filled in by users."""
    declared = manifest.body.get("type")
    found: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": manifest.name}}
    if declared not in _OPAQUE:
        found["type"] = declared
    value = '{"auths": {}}' if declared == _DOCKER else PLACEHOLDER
    return {**found, "stringData": dict.fromkeys(keys(manifest), value)}
