"""The manifests that `kubectl apply` installs, as one stream of objects or a folder for kustomize: the objects that run
the operator, and the ConfigMaps or the image that hold its rules."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.monitoring import monitoring_objects
from ruleop.authoring.generate.operator_roles import operator_roles, role_objects, service_account
from ruleop.authoring.generate.policies import policies, policy_objects
from ruleop.authoring.scaffold import rules_text
from ruleop.errors import Site
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.operator_choices import FILE, settings
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices


# -- the operator ------------------------------------------------------------------------------------------------------
# The objects that run the operator in a cluster, except its roles and its rules.

METRICS: Final = 8080
HEALTH: Final = 8081
GRACE: Final = 40
"""Seconds. Longer than --graceful-shutdown-timeout of `ruleop run`."""
FOLDER: Final = "/rules"
CERTIFICATE: Final = "/metrics-tls"
_OF_THE_CLUSTER: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


def labels(choices: Choices) -> dict[str, JSON]:
    return {"app.kubernetes.io/name": choices.name, "app.kubernetes.io/version": choices.version}


def namespace(choices: Choices) -> Iterator[Object]:
    """It admits only pods without privileges, as the operator's are. One in which others have pods is left alone."""
    if choices.namespace in choices.namespaces or choices.namespace in _OF_THE_CLUSTER:
        return
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": choices.namespace, "labels": enforced}}


def operator(choices: Choices, rules: Object | None, variables: Mapping[str, str]) -> Iterator[Object]:
    """The Deployment, or the StatefulSet of shards, and what belongs to its pods. `rules`: the volume of the rules, if
    the image does not hold them."""
    yield _pods(choices, rules, variables)
    ports = [{"name": "metrics", "port": METRICS, "targetPort": "metrics"}]
    yield _object(
        "v1 Service", choices, {"selector": _selector(choices), "ports": ports}, name=f"{choices.name}-metrics"
    )
    if _is_several(choices):
        # Standbys take over for the pod that works; each shard has work of its own.
        least = {"maxUnavailable": 1} if choices.shards else {"minAvailable": 1}
        budget: Object = {**least, "selector": {"matchLabels": _selector(choices)}}
        yield _object("policy/v1 PodDisruptionBudget", choices, budget)
    # Nobody can say in a policy where the API server is, so what the pods send is not limited. The probes of the
    # kubelet need no rule: traffic of the pod's own node is always admitted. What kubectl compares as a whole, such as
    # the list of ports, has the defaults of the API server, or each `kubectl apply` would change it.
    limits: Object = {
        "podSelector": {"matchLabels": _selector(choices)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": "metrics", "protocol": "TCP"}]}],
    }
    yield _object("networking.k8s.io/v1 NetworkPolicy", choices, limits)


def service_monitor(choices: Choices) -> Object:
    """For the Prometheus operator."""
    endpoint: dict[str, Any] = {"port": "metrics"}
    if choices.metrics_auth:
        endpoint |= {
            "scheme": "https",
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "tlsConfig": {
                "ca": {"secret": {"name": f"{choices.name}-metrics-tls", "key": "ca.crt"}},
                "serverName": f"{choices.name}-metrics.{choices.namespace}.svc",
            },
        }
    spec = {"selector": {"matchLabels": _selector(choices)}, "endpoints": [endpoint]}
    return _object("monitoring.coreos.com/v1 ServiceMonitor", choices, spec)


def arguments(choices: Choices) -> list[JSON]:
    """Of the container. What has its default is left out, but not the name: an image may hold another ruleop.yaml."""
    found = ["run", f"--name={choices.name}"]
    if choices.namespaces:
        found.append(f"--namespaces={','.join(choices.namespaces)}")
    if choices.shards:
        found.append("--shards=auto")
    elif choices.leader_elect:
        found.append("--leader-elect")
    if choices.selector:
        found.append(f"--selector={choices.selector}")
    if choices.metrics_auth:
        found += [
            "--metrics-auth",
            f"--metrics-cert={CERTIFICATE}/tls.crt",
            f"--metrics-key={CERTIFICATE}/tls.key",
        ]
    return [*found, *([] if choices.reloads else ["--no-reload"])]


def _is_several(choices: Choices) -> bool:
    return max(choices.replicas, choices.shards) > 1


def _pods(choices: Choices, rules: Object | None, variables: Mapping[str, str]) -> Object:
    volumes, mounts = [], []
    if rules is not None:
        volumes.append({"name": "rules", **rules})
        mounts.append({"name": "rules", "mountPath": FOLDER, "readOnly": True})
    if choices.metrics_auth:
        volumes.append({"name": "metrics-tls", "secret": {"secretName": f"{choices.name}-metrics-tls"}})
        mounts.append({"name": "metrics-tls", "mountPath": CERTIFICATE, "readOnly": True})
    env = [_variable(name, value) for name, value in variables.items()]
    if choices.shards:
        fields = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace"}
        env += [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    container: dict[str, Any] = {
        "name": "operator",
        "image": image_of(choices),
        "args": arguments(choices),
        **({"env": env} if env else {}),
        "ports": [{"name": "metrics", "containerPort": METRICS}, {"name": "health", "containerPort": HEALTH}],
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **({"volumeMounts": mounts} if mounts else {}),
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": _selector(choices)},
    }
    pod: dict[str, Any] = {
        "serviceAccountName": choices.name,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"topologySpreadConstraints": [spread]} if _is_several(choices) else {}),
        "containers": [container],
        **({"volumes": volumes} if volumes else {}),
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": _selector(choices)},
        # Without the version, so that changed rules need not replace the pods.
        "template": {"metadata": {"labels": _selector(choices)}, "spec": pod},
    }
    if choices.shards:
        named = {"serviceName": f"{choices.name}-metrics", "podManagementPolicy": "Parallel"}
        return _object("apps/v1 StatefulSet", choices, {"replicas": choices.shards, **named, **spec})
    strategy = {} if choices.leader_elect else {"strategy": {"type": "Recreate"}}
    return _object("apps/v1 Deployment", choices, {"replicas": choices.replicas, **strategy, **spec})


def image_of(choices: Choices) -> str:
    repository, tag, digest = choices.image_parts
    return repository + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def _variable(name: str, value: str) -> Object:
    """With each $ twice: the kubelet replaces $(NAME). The API server stores no empty value."""
    return {"name": name, "value": value.replace("$", "$$")} if value else {"name": name}


def _probe(path: str) -> Object:
    return {"httpGet": {"path": path, "port": "health"}, "timeoutSeconds": 5}


def _selector(choices: Choices) -> dict[str, JSON]:
    return {"app.kubernetes.io/name": choices.name}


def _object(what: str, choices: Choices, spec: Object, *, name: str = "") -> Object:
    version, kind = what.split()
    metadata = {"name": name or choices.name, "namespace": choices.namespace, "labels": labels(choices)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


# -- the rules ---------------------------------------------------------------------------------------------------------
# The files of a project that its operator reads, the ConfigMaps that hold them, and the Dockerfile of an image that
# does.

MOST_APPLIED: Final = 200 * 1024
"""Bytes of a ConfigMap: `kubectl apply` writes all of an object into an annotation, and annotations have 256 KiB."""
MOST_STORED: Final = 900 * 1024
"""Bytes of a ConfigMap that is not applied by kubectl: the API server takes 1 MiB."""
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_TOO_LARGE: Final = "does not fit into a ConfigMap: use --rules image (or `rules: image` in ruleop.yaml)"


def rule_files(loaded: Loaded) -> dict[str, str]:
    """The texts by their paths. The operator takes CRDs from the cluster, so those of crds/ are only for tools.

    Raises ProjectErrors if a path cannot be a key of a ConfigMap, or two have the same.
    """
    files = {path: text for path, text in sorted(loaded.files.items()) if not path.startswith("crds/")}
    findings, paths = Findings(files), dict[str, str]()
    for path in files:
        other = paths.setdefault(key_of(path), path)
        if not _KEY.fullmatch(key_of(path)):
            message = 'cannot be a key of a ConfigMap: rename it with letters, digits, "-", "_" and "."'
            findings.mistake("wrong-value", message, Site(path))
        elif other != path:
            message = f"{other} has the same key in a ConfigMap ({key_of(path)}): rename one of them"
            findings.mistake("conflict", message, Site(path))
    if findings.failed:
        raise ProjectErrors(findings.sorted())
    return files


def require_storable(files: Mapping[str, str]) -> None:
    """Raises ProjectErrors if the files do not fit into one ConfigMap."""
    size = sum(len(path) + len(text.encode()) for path, text in files.items())
    if size > MOST_STORED:
        largest = max(files, key=lambda path: len(files[path]))
        message = f"with all other files ({size // 1024} KiB), it {_TOO_LARGE}"
        raise ProjectErrors.of("conflict", message, Site(largest))


def key_of(path: str) -> str:
    """A ConfigMap is flat, so each path becomes one word."""
    return path.replace("/", "__")


@dataclass(frozen=True, slots=True)
class MountedRules:
    config_maps: tuple[Object, ...]
    volume: Object


def mounted_rules(files: Mapping[str, str], choices: Choices) -> MountedRules:
    """As many ConfigMaps as the files need, and the volume that puts each file into its folder.

    Raises ProjectErrors if a file is too large for a ConfigMap.
    """
    name = f"{choices.name}-rules"
    groups = list(_groups(files))
    names = [name, *(f"{name}-{number}" for number in range(2, len(groups) + 1))]
    maps: list[Object] = []
    sources: list[JSON] = []
    for each, group in zip(names, groups, strict=True):
        metadata = {"name": each, "namespace": choices.namespace}
        data = {key_of(path): text for path, text in group.items()}
        maps.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        sources.append({"name": each, "items": [{"key": key_of(path), "path": path} for path in group]})
    several: Object = {"projected": {"sources": [{"configMap": each} for each in sources]}}
    return MountedRules(tuple(maps), several if len(sources) > 1 else {"configMap": sources[0]})


def rules_mount(loaded: Loaded, choices: Choices) -> MountedRules | None:
    """The volume of the rules, and its ConfigMaps if it has any. None: the image of the operator holds the rules.

    Raises ProjectErrors.
    """
    if choices.rules == "image":
        return None
    if choices.rules_image:
        return MountedRules((), {"image": {"reference": choices.rules_image, "pullPolicy": "IfNotPresent"}})
    return mounted_rules(rule_files(loaded), choices)


def _groups(files: Mapping[str, str]) -> Iterator[dict[str, str]]:
    group: dict[str, str] = {}
    size = 0
    for path, text in files.items():
        # Bytes in the annotation, in which kubectl writes three characters as an escape of six.
        needed = len(orjson.dumps(text)) + 5 * sum(text.count(each) for each in "<>&") + len(path)
        if needed > MOST_APPLIED:
            message = f"the file ({needed // 1024} KiB in JSON) {_TOO_LARGE}"
            raise ProjectErrors.of("conflict", message, Site(path))
        if group and size + needed > MOST_APPLIED:
            yield group
            group, size = {}, 0
        group[path] = text
        size += needed
    if group:
        yield group


_IMAGE_HEADER: Final = f"{MARK} image` from the rules and ruleop.yaml: change them there.\n"
_PLAIN: Final = re.compile(r"[\w./-]+", re.ASCII)


_ON_THE_GENERIC_IMAGE: Final = """\
# The generic image; a digest (name@sha256:...) makes sure that it is always the same.
ARG BASE={base}
FROM ${{BASE}}
ARG BASE
"""
_ALONE: Final = """\
# Rules alone: nothing in it runs. Kubernetes mounts it as a volume of the generic image. Nodes pull it for their own
# platform: build it for each that you have (docker buildx build --platform linux/amd64,linux/arm64).
FROM scratch
"""


def image_files(paths: Iterable[str], choices: Choices, base: str | None) -> dict[str, str]:
    """The Dockerfile, and the file that keeps everything else of the project's folder out of the build.

    `paths`: the files of the project. `base`: the generic image; None for an image of the rules alone.
    """
    tops = sorted({path.partition("/")[0] + ("/" if "/" in path else "") for path in paths})
    about = choices.about
    described = {"description": about.summary, "url": about.homepage, "vendor": about.provider}
    labels = {
        "title": _quoted(about.title or choices.name),
        **{name: _quoted(text) for name, text in described.items() if text},
        "version": choices.version,
        "revision": "${REVISION}",
        **({"base.name": "${BASE}"} if base is not None else {}),
    }
    lines = [
        *(_ON_THE_GENERIC_IMAGE.format(base=base) if base is not None else _ALONE).splitlines(),
        "# The commit of the rules.",
        "ARG REVISION=",
        "LABEL " + " \\\n      ".join(f'org.opencontainers.image.{name}="{text}"' for name, text in labels.items()),
        *(_copy(each, FOLDER if base is not None else "") for each in tops),
        *(['CMD ["run", "--no-reload"]'] if base is not None else []),
    ]
    ignored = ["*", *(f"!{each.removesuffix('/')}" for each in tops)]
    return {
        "Dockerfile": _IMAGE_HEADER + "".join(f"{line}\n" for line in lines),
        ".dockerignore": _IMAGE_HEADER + "".join(f"{line}\n" for line in ignored),
    }


def _quoted(text: str) -> str:
    """In double quotes of a Dockerfile."""
    return re.sub(r'([\\"$])', r"\\\1", text)


def _copy(path: str, folder: str) -> str:
    target = f"{folder}/{path}"
    return f"COPY {path} {target}" if _PLAIN.fullmatch(path) else f"COPY {json.dumps([path, target])}"


# -- the installation --------------------------------------------------------------------------------------------------

_HEADER = f"{MARK} manifests` from the rules and ruleop.yaml: change them there.\n"


@dataclass(frozen=True, slots=True)
class Installation:
    """The objects of an operator by their concerns, in the order in which they are applied."""

    namespace: tuple[Object, ...]
    crds: tuple[Object, ...]
    rbac: tuple[Object, ...]
    rules: tuple[Object, ...]
    operator: tuple[Object, ...]
    components: Mapping[str, tuple[Object, ...]]  # what a user chooses beside them

    @property
    def concerns(self) -> dict[str, tuple[Object, ...]]:
        found = {
            "namespace": self.namespace,
            "crds": self.crds,
            "rbac": self.rbac,
            "rules": self.rules,
            "operator": self.operator,
        }
        return {name: objects for name, objects in found.items() if objects}


def installation(loaded: Loaded, choices: Choices, crds: Sequence[Object]) -> Installation:
    """Raises ProjectErrors."""
    mounted = rules_mount(loaded, choices)
    volume = mounted.volume if mounted is not None else None
    found, _ = policies(loaded)
    return Installation(
        namespace=tuple(namespace(choices)),
        crds=tuple(crds),
        rbac=(service_account(choices), *role_objects(operator_roles(loaded, choices), choices)),
        rules=mounted.config_maps if mounted is not None else (),
        operator=tuple(operator(choices, volume, set_variables(loaded, choices))),
        components={
            "service-monitor": (service_monitor(choices),),
            **({"policy": tuple(policy_objects(found, choices))} if found else {}),
            **{name: (each,) for name, each in monitoring_objects(choices).items()},
        },
    )


def set_variables(loaded: Loaded, choices: Choices) -> dict[str, str]:
    findings, found = Findings({}), dict[str, str]()
    for name, value in settings(loaded, choices).items():
        if value is None:
            message = f"the rules read the variable {name}, which has no default: give it a value in `env`"
            findings.mistake("environment", message, Site(FILE))
        else:
            found[name] = value
    if findings.failed:
        raise ProjectErrors(findings.sorted())
    return found


def install_yaml(found: Installation) -> str:
    """All objects, for `kubectl apply -f`."""
    return _HEADER + _stream(each for objects in found.concerns.values() for each in objects)


def kustomize_base(found: Installation) -> dict[str, str]:
    """A folder for `kubectl apply -k`: a file for each concern, and components to choose from."""
    files: dict[str, str] = {}
    for name, objects in found.concerns.items():
        files[f"{name}.yaml"] = _HEADER + _stream(objects)
    files["kustomization.yaml"] = _kustomization("v1beta1", "Kustomization", files)
    for name, objects in found.components.items():
        files[f"components/{name}/kustomization.yaml"] = _kustomization("v1alpha1", "Component", [f"{name}.yaml"])
        files[f"components/{name}/{name}.yaml"] = _HEADER + _stream(objects)
    return files


def _kustomization(version: str, kind: str, resources: Iterable[str]) -> str:
    document = {"apiVersion": f"kustomize.config.k8s.io/{version}", "kind": kind}
    return _HEADER + rules_text({**document, "resources": list(resources)})


def _stream(objects: Iterable[Object]) -> str:
    return "---\n".join(map(rules_text, objects))
