"""A bundle for the Operator Lifecycle Manager (registry+v1), for OLM v0 and v1.

OLM makes the service account and the roles from the ClusterServiceVersion. It turns `permissions` into Roles in the
namespaces that the operator watches and in its own, or into ClusterRoles where all are watched.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.authoring.checking.needed_permissions import PermissionScope
from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.kind_docs import samples
from ruleop.authoring.generate.manifests import operator, rules_mount, set_variables
from ruleop.authoring.generate.operator_roles import operator_roles, rule_of
from ruleop.authoring.scaffold import rules_text
from ruleop.errors import Site
from ruleop.files import read_inside, why_unreadable
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.operator_choices import FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules import Rule
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices


# -- artifact hub ------------------------------------------------------------------------------------------------------
# The annotations of a chart by which Artifact Hub shows it as an operator, with its kinds and an example of each.

CAPABILITIES: Final = "Deep Insights"
"""The level of the Operator Framework: metrics, alerts and a dashboard come with the operator."""


def artifact_hub(loaded: Loaded, choices: Choices, crds: Sequence[Object], image: str) -> dict[str, JSON]:
    """Each value is text; that of a list is YAML."""
    images = [{"name": "operator", "image": image}]
    if choices.rules_image:
        images.append({"name": "rules", "image": choices.rules_image})
    lists: dict[str, Any] = {
        "crds": [*_kinds(crds)],
        "crdsExamples": samples(loaded, crds),
        "images": images,
    }
    found: dict[str, JSON] = {name: rules_text(each) for name, each in lists.items() if each}
    found |= {"operator": "true", "operatorCapabilities": CAPABILITIES}
    if "-" in choices.version:
        found["prerelease"] = "true"
    return {f"artifacthub.io/{name}": value for name, value in sorted(found.items())}


def _kinds(crds: Sequence[Object]) -> Iterator[Object]:
    for crd in crds:
        spec = crd["spec"]
        kind = spec["names"]["kind"]
        for version in spec["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            if version.get("served"):
                yield {
                    "kind": kind,
                    "version": version["name"],
                    "name": crd["metadata"]["name"],
                    "displayName": kind,
                    "description": schema.get("description") or f"{kind} of {spec['group']}",
                }


# -- bundle ------------------------------------------------------------------------------------------------------------

_HEADER: Final = f"{MARK} bundle` from the rules and ruleop.yaml: change them there.\n"
_MEDIA: Final = {"svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg", "gif": "image/gif"}
_TARGETS: Final = {
    "name": "WATCH_NAMESPACE",
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
}
"""OLM says which namespaces are watched; an empty text means all."""
_KUBERNETES: Final = "1.25.0"


def bundle_files(
    loaded: Loaded, choices: Choices, crds: Sequence[Object], samples: Sequence[Object], *, channel: str, replaces: str
) -> dict[str, str]:
    """The texts by their paths. `samples`: custom resources for its page. Raises ProjectErrors."""
    if choices.shards:
        raise ProjectErrors.of("conflict", "OLM runs no StatefulSet: remove `shards`, or install a chart", Site(FILE))
    mounted = rules_mount(loaded, choices)
    # OLM chooses the namespaces; and its older versions refuse a bundle with a NetworkPolicy.
    volume = mounted.volume if mounted is not None else None
    installed = operator(replace(choices, namespaces=()), volume, set_variables(loaded, choices))
    deployment, *others = (each for each in installed if each["kind"] != "NetworkPolicy")
    objects = [_without_namespace(each) for each in (*(mounted.config_maps if mounted else ()), *others)]
    version = _service_version(loaded, choices, crds, deployment)
    version["metadata"]["annotations"]["alm-examples"] = orjson.dumps(samples, option=orjson.OPT_INDENT_2).decode()
    version["spec"] |= {"replaces": f"{choices.name}.v{replaces}"} if replaces else {}
    files: dict[str, Object] = {f"manifests/{choices.name}.clusterserviceversion.yaml": version}
    files |= {f"manifests/{crd['metadata']['name']}.yaml": crd for crd in crds}
    files |= {f"manifests/{each['metadata']['name']}.{each['kind'].lower()}.yaml": each for each in objects}
    labels = _labels(choices, channel)
    files["metadata/annotations.yaml"] = {"annotations": labels}
    texts = {path: _HEADER + rules_text(each) for path, each in files.items()}
    lines = ["FROM scratch", *(f'LABEL {name}="{value}"' for name, value in labels.items())]
    lines += ["COPY manifests /manifests/", "COPY metadata /metadata/"]
    return {**texts, "bundle.Dockerfile": _HEADER + "".join(f"{line}\n" for line in lines)}


def _labels(choices: Choices, channel: str) -> dict[str, str]:
    prefix = "operators.operatorframework.io.bundle"
    return {
        f"{prefix}.mediatype.v1": "registry+v1",
        f"{prefix}.manifests.v1": "manifests/",
        f"{prefix}.metadata.v1": "metadata/",
        f"{prefix}.package.v1": choices.name,
        f"{prefix}.channels.v1": channel,
        f"{prefix}.channel.default.v1": channel,
    }


def _service_version(loaded: Loaded, choices: Choices, crds: Sequence[Object], deployment: Object) -> dict[str, Any]:
    about = choices.about
    annotations = {
        "capabilities": CAPABILITIES,
        "containerImage": choices.image,
        "description": about.summary or f"The operator {choices.name}",
        "operatorframework.io/suggested-namespace": choices.namespace,
    }
    described: dict[str, JSON] = {
        "displayName": about.title or choices.name,
        "description": about.description or about.summary or f"The operator {choices.name}, made of rules by ruleop.",
        "version": choices.version,
        "minKubeVersion": _KUBERNETES,
        "maturity": "stable" if not choices.version.startswith("0.") else "alpha",
        "keywords": list(about.keywords),
        "maintainers": [{"name": name, "email": email} for name, email in about.maintainers],
        "provider": {"name": about.provider} if about.provider else None,
        "links": [{"name": "Homepage", "url": about.homepage}] if about.homepage else [],
        "icon": _icon(loaded.project.root, choices),
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": f"{choices.name}.v{choices.version}", "annotations": annotations},
        "spec": {
            **{name: value for name, value in described.items() if value},
            "installModes": [
                {"type": mode, "supported": True}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {"owned": list(_owned(loaded, crds))},
            "install": {"strategy": "deployment", "spec": _install(loaded, choices, deployment)},
        },
    }


def _install(loaded: Loaded, choices: Choices, deployment: Object) -> Object:
    roles = operator_roles(loaded, replace(choices, namespaces=()), elsewhere=False)
    chosen = [
        each for each in roles.cluster if each.scope is PermissionScope.WATCHED
    ]  # in the namespaces that OLM chooses
    permissions = {
        "clusterPermissions": [each for each in roles.cluster if each.scope is PermissionScope.CLUSTER],
        "permissions": [*chosen, *roles.operator],
    }
    spec = orjson.loads(orjson.dumps(deployment["spec"]))
    for container in spec["template"]["spec"]["containers"]:
        container["env"] = [*container.get("env", ()), _TARGETS]
    return {
        **{
            key: [{"serviceAccountName": choices.name, "rules": [rule_of(each) for each in rules]}]
            for key, rules in permissions.items()
            if rules
        },
        "deployments": [{"name": choices.name, "label": deployment["metadata"]["labels"], "spec": spec}],
    }


def _owned(loaded: Loaded, crds: Sequence[Object]) -> Iterator[Object]:
    """Each version of each watched kind, with the kinds of its children."""
    for crd in crds:
        spec = crd["spec"]
        kind = spec["names"]["kind"]
        rules = [each for each in loaded.project.rules if (each.kind.group, each.kind.kind) == (spec["group"], kind)]
        for version in spec["versions"]:
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            yield {
                "name": crd["metadata"]["name"],
                "version": version["name"],
                "kind": kind,
                "displayName": kind,
                "description": schema.get("description") or f"{kind} of {spec['group']}",
                "resources": _children(rules),
            }


def _children(rules: Sequence[Rule]) -> list[JSON]:
    kinds = sorted({kind for rule in rules for child in rule.every_child for kind in child.kinds})
    return [{"kind": each.kind, "name": "", "version": each.version} for each in kinds]


def _without_namespace(obj: Object) -> Object:
    """OLM decides where the operator runs."""
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "namespace"}}


def _icon(root: str, choices: Choices) -> list[JSON]:
    if choices.about.icon is None:
        return []
    name, site = choices.about.icon
    try:
        data = read_inside(Path(root) / name, Path(root), 1024 * 1024)
    except OSError as error:
        raise ProjectErrors.of("unreadable", f"{name}: {why_unreadable(error)}", site) from None
    return [{"base64data": base64.b64encode(data).decode(), "mediatype": _MEDIA[name.rpartition(".")[2]]}]
