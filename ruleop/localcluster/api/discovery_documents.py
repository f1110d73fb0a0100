"""Discovery: which groups, versions and resources are served, in the plain and in the aggregated form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.kinds.served_resources import is_builtin_group

if TYPE_CHECKING:
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.kinds.served_resources import Registry

_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def is_aggregated(accept: str) -> bool:
    """Whether a client understands the aggregated form."""
    return AGGREGATED in [each.strip() for each in accept.split(",")]


def api_versions(address: str) -> dict[str, Any]:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(registry: Registry) -> dict[str, Any]:
    groups: dict[str, list[str]] = {}
    for group, version in registry.group_versions():
        if group:
            groups.setdefault(group, []).append(version)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*each) for each in groups.items()]}


def group(registry: Registry, name: str) -> dict[str, Any] | None:
    versions = [version for each, version in registry.group_versions() if each == name]
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if name and versions else None


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    found = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": found, "preferredVersion": found[0]}


def resource_list(registry: Registry, name: str, version: str) -> dict[str, Any] | None:
    if (name, version) not in registry.group_versions():
        return None
    resources: list[dict[str, Any]] = []
    for each in registry.in_group_version(name, version):
        resources.append(_resource(each))
        resources += [_subresource(each, subresource) for subresource in subresources(each)]
    title = f"{name}/{version}" if name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": title, "resources": resources}


def _verbs(served: Served) -> list[str]:
    return list(_CUSTOM_VERBS if served.is_custom else served.verbs)


def subresources(served: Served) -> list[str]:
    return [name for name, there in (("scale", served.scale is not None), ("status", served.status)) if there]


def _resource(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind.kind,
        "verbs": _verbs(served),
    }
    if served.short_names:
        found["shortNames"] = list(served.short_names)
    if served.categories:
        found["categories"] = list(served.categories)
    return found


def _subresource(served: Served, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": f"{served.plural}/{name}",
        "singularName": "",
        "namespaced": served.namespaced,
        "kind": served.kind.kind,
        "verbs": ["get", "patch", "update"],
    }
    if name == "scale":
        found |= {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    return found


def aggregated(registry: Registry, *, core: bool) -> dict[str, Any]:
    """All groups with their resources in one document."""
    groups: dict[str, list[str]] = {}
    for name, version in registry.group_versions():
        if (not name) == core:
            groups.setdefault(name, []).append(version)
    custom = sorted(name for name in groups if not is_builtin_group(name))
    groups = {name: groups[name] for name in (*(each for each in groups if is_builtin_group(each)), *custom)}
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(each) for each in registry.in_group_version(name, version)],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for name, versions in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_resource(served: Served) -> dict[str, Any]:
    kind = served.kind
    response = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    found: dict[str, Any] = {
        "resource": served.plural,
        "responseKind": response,
        "scope": "Namespaced" if served.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": _verbs(served),
    }
    if served.short_names:
        found["shortNames"] = list(served.short_names)
    if served.categories:
        found["categories"] = list(served.categories)
    if names := subresources(served):
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        found["subresources"] = [
            {
                "subresource": name,
                "responseKind": scale if name == "scale" else response,
                "verbs": ["get", "patch", "update"],
            }
            for name in names
        ]
    return found
