"""A Helm chart that installs the operator.

Its templates are the same for all projects (chart/). What is computed is in files that the templates read by
`.Files`, so that the braces of Jinja never meet those of Helm: the rules, the CRDs, the rules of the roles, the
policies.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import yaml

from ruleop.authoring.generate.bundle import artifact_hub
from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.manifests import image_of, require_storable, rule_files
from ruleop.authoring.generate.monitoring import dashboard, metrics_job, rules_file
from ruleop.authoring.generate.operator_roles import operator_roles, rule_of
from ruleop.authoring.generate.policies import policies
from ruleop.authoring.scaffold import Noted, rules_text
from ruleop.kubernetes.names import LABEL, MOST_OF_NAME
from ruleop.language.rules.operator_choices import NAMESPACE, RULES_IMAGE, settings
from ruleop.printable import json_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from importlib.resources.abc import Traversable

    from ruleop.authoring.checking.needed_permissions import Permission
    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices


_HEADER: Final = f"{MARK} helm` from the rules and ruleop.yaml: change them there.\n"
_STATIC: Final = "chart"
_NAME: Final = "__NAME__"
_NAMESPACE: Final = "__NAMESPACE__"
_UID: Final = "__UID__"
"""The operator's name and namespace, and the id of its dashboard, are known when the chart is installed."""


def chart_files(loaded: Loaded, choices: Choices, crds: Sequence[Object]) -> dict[str, str]:
    """The texts of the chart by their paths. Raises ProjectErrors."""
    values, named = _values(loaded, choices), replace(choices, name=_NAME)
    job = metrics_job(named)
    files = {
        "Chart.yaml": _HEADER + rules_text(_chart(loaded, choices, crds)),
        "values.yaml": values,
        "values.schema.json": json_document(_values_schema(yaml.safe_load(values), settings(loaded, choices))),
        **_templates(),
        **{f"files/crds/{crd['metadata']['name']}.yaml": _HEADER + rules_text(_kept(crd)) for crd in crds},
        **{f"files/roles/{name}.yaml": text for name, text in _roles(loaded, choices)},
        **{f"files/policies/{each.name}.yaml": rules_text(each.spec) for each in policies(loaded)[0]},
        "files/monitoring/alerts.yaml": rules_text(rules_file(job, _NAMESPACE)),
        "files/monitoring/dashboard.json": json_document({**dashboard(named, job), "uid": _UID}),
    }
    if choices.reloads:
        rules = rule_files(loaded)
        require_storable(rules)
        files |= {f"files/rules/{path}": text for path, text in rules.items()}
    return files


def _chart(loaded: Loaded, choices: Choices, crds: Sequence[Object]) -> Object:
    about = choices.about
    described: dict[str, JSON] = {
        "apiVersion": "v2",
        "name": choices.name,
        "description": about.summary or f"The operator {choices.name}, made of rules by ruleop",
        "type": "application",
        "version": choices.version,
        "appVersion": choices.version,
        "kubeVersion": ">=1.33.0-0" if choices.rules_image else ">=1.25.0-0",
        "home": about.homepage,
        "keywords": list(about.keywords),
        "maintainers": [{"name": name, "email": email} for name, email in about.maintainers],
        "annotations": artifact_hub(loaded, choices, crds, image_of(choices)),
    }
    return {name: value for name, value in described.items() if value}


def _values(loaded: Loaded, choices: Choices) -> str:
    """Those that depend on the project stand first."""
    repository, tag, digest = choices.image_parts
    computed: Object = {
        "replicas": Noted("One pod works, the others stand by.", choices.replicas),
        "shards": Noted(
            "More than 0: the number of pods, of a StatefulSet, that divide the resources. `kubectl scale` changes it. "
            "An upgrade does only if this value has changed.",
            choices.shards,
        ),
        "selector": Noted(
            "Only custom resources with these labels, such as team=a; other releases have the rest.", choices.selector
        ),
        "image": {
            "repository": repository,
            "tag": tag,
            "digest": digest,
            "pullPolicy": "IfNotPresent",
        },
        "watchNamespaces": Noted(
            "The namespaces that the operator watches; all without any. It has permissions only there.",
            list(choices.namespaces),
        ),
        "settings": Noted(
            "The variables that the rules read.",
            {variable: value or "" for variable, value in settings(loaded, choices).items()},
        ),
    }
    static = _static("values.yaml").read_text(encoding="utf-8")
    if not choices.leader_elect:
        static = static.replace("leaderElect: true", "leaderElect: false")
    static = static.replace('  image: ""', f'  image: "{choices.rules_image}"')
    if choices.metrics_auth:
        static = static.replace("secure: false", "secure: true")
    return f"{_HEADER}{rules_text(computed)}{static}"


_OPEN: Final = frozenset({"resources", "affinity", "nodeSelector"})
_WORDS: Final[dict[str, dict[str, JSON]]] = {
    "logLevel": {"enum": ["debug", "info", "warning", "error"]},
    "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "replicas": {"type": "integer", "minimum": 0},
    "shards": {"type": "integer", "minimum": 0},
    "watchNamespaces": {"type": "array", "uniqueItems": True, "items": NAMESPACE.schema()},
    "fullnameOverride": {"type": "string", "maxLength": MOST_OF_NAME, "pattern": f"^({LABEL})?$"},
    "extraArgs": {"type": "array", "items": {"type": "string"}},
}


def _values_schema(values: Object, variables: Mapping[str, str | None]) -> dict[str, JSON]:
    """It refuses a misspelt value. The types are those of the default values."""
    top = _of_value("", values)
    top["properties"]["rules"]["properties"]["image"]["pattern"] = f"^({RULES_IMAGE.pattern})?$"
    required: dict[str, JSON] = {"type": "string", "minLength": 1}
    properties = {
        **top["properties"],
        "settings": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: required if default is None else {"type": "string"} for name, default in variables.items()
            },
        },
        "global": {"type": "object"},  # of a chart that this one is a part of
    }
    return {"$schema": "https://json-schema.org/draft-07/schema#", **top, "properties": properties}


def _of_value(name: str, value: JSON) -> dict[str, JSON]:
    if name in _WORDS:
        return _WORDS[name]
    if isinstance(value, dict):
        if name in _OPEN:
            return {"type": "object"}
        if not value or name == "labels":  # and annotations
            return {"type": "object", "additionalProperties": {"type": "string"}}
        members = {key: _of_value(key, member) for key, member in value.items()}
        return {"type": "object", "additionalProperties": False, "properties": members}
    if isinstance(value, list):
        return {"type": "array", "items": {"type": "object"}}
    return {"type": "boolean" if isinstance(value, bool) else "string"}


def _roles(loaded: Loaded, choices: Choices) -> Iterator[tuple[str, str]]:
    """The rules of each role that the values choose from."""
    bare = replace(choices, name=_NAME, namespaces=(), leader_elect=False, shards=0, selector="", metrics_auth=False)
    everywhere = operator_roles(loaded, bare, elsewhere=False)
    limited = operator_roles(loaded, replace(bare, namespaces=("a",)), elsewhere=False)
    leader = operator_roles(loaded, replace(bare, leader_elect=True)).operator
    shards = operator_roles(loaded, replace(bare, shards=1)).operator
    metrics = operator_roles(loaded, replace(bare, metrics_auth=True), elsewhere=False).cluster
    yield "all-namespaces", _rules_text(everywhere.cluster)
    yield "namespace", _rules_text(limited.watched)
    yield "cluster", _rules_text(limited.cluster)
    yield "own", _rules_text(everywhere.operator)
    yield "leader", _rules_text(each for each in leader if each not in everywhere.operator)
    yield "shards", _rules_text(each for each in shards if each not in everywhere.operator)
    yield "metrics", _rules_text(each for each in metrics if each not in everywhere.cluster)


def _rules_text(permissions: Iterable[Permission]) -> str:
    rules = list(map(rule_of, permissions))
    return rules_text(rules) if rules else ""


def _kept(crd: Object) -> Object:
    metadata = crd["metadata"]
    kept = {**(metadata.get("annotations") or {}), "helm.sh/resource-policy": "keep"}
    return {**crd, "metadata": {**metadata, "annotations": kept}}


def _static(path: str) -> Traversable:
    return importlib.resources.files(__package__).joinpath(_STATIC, *path.split("/"))


def _templates() -> dict[str, str]:
    return {path: _static(path).read_text(encoding="utf-8") for path in sorted(_names("templates"))}


def _names(folder: str) -> Iterator[str]:
    for each in _static(folder).iterdir():
        path = f"{folder}/{each.name}"
        if each.is_dir():
            yield from _names(path)
        else:
            yield path
