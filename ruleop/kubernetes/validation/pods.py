"""Pods, their containers and volumes, and templates of pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.labels import label_value_problems, labels_of, meets, requirements_of
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    invalid_values,
    not_found,
    required,
    unsupported,
    validate_annotations,
    validate_labels,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.validation.rules import Errors, Rows


# -- volumes ---------------------------------------------------------------------------------------------------------


_NO_PARENT: Final = (r"(?!(.*/)?\.\.(/|\Z)).*", "must not contain '..'")
_RELATIVE: Final = ("(?!/).*", "must be a relative path")
_INNER_PATH: Final = rules.text(_RELATIVE, _NO_PARENT)
_FILE: Final = rules.text(_RELATIVE, _NO_PARENT, (r"(?!\.\.(?!/)).*", "must not start with '..'"))
SOURCES: Final[Rows] = {
    "hostPath.path local.path": ("needed", rules.text(_NO_PARENT)),
    "hostPath.type": "|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket",
    "secret.secretName configMap.name persistentVolumeClaim.claimName nfs.server csi.driver": "needed",
    "secret configMap": {"items[]": {"key": "needed", "path": ("needed", _FILE), "mode": "mode"}},
    "secret.defaultMode configMap.defaultMode downwardAPI.defaultMode projected.defaultMode": "mode",
}
_KINDS: Final = ("emptyDir", "hostPath", "gitRepo", "secret", "nfs", "persistentVolumeClaim", "configMap")
_VOLUME: Final[Rows] = ({"name": "needed label"}, rules.union(*_KINDS, but=("name",)), SOURCES)

# -- containers ------------------------------------------------------------------------------------------------------

_POD_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    r"|metadata\.(labels|annotations)\['.+'\]"
)
_HANDLER: Final[Rows] = (
    rules.union("exec", "httpGet", "tcpSocket", "grpc", "sleep"),
    {
        "exec.command": "needed",
        "httpGet.path": "filled",
        "httpGet.scheme": "HTTP|HTTPS",
        "httpGet.port tcpSocket.port": "port-or-name",
    },
)
_PROBE: Final[Rows] = (
    _HANDLER,
    {
        "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold": "0..",
        "terminationGracePeriodSeconds": "1..",
    },
)
_LIFECYCLE: Final[Rows] = {
    "lifecycle.postStart lifecycle.preStop": _HANDLER,
    "livenessProbe startupProbe readinessProbe": _PROBE,
    "livenessProbe.successThreshold startupProbe.successThreshold": "1..1",
    "readinessProbe.terminationGracePeriodSeconds": "unset",
}


def _field_problems(path: str) -> Iterator[str]:
    if not _POD_FIELD.fullmatch(path):
        yield f"error converting fieldPath: field label not supported: {path}"


_NOT_NAME: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_IMPORTED: Final = rules.table(rules.union("configMapRef", "secretRef", whole=True))
_ENV: Final[Rows] = {
    "name": ("needed", rules.text(("[ -<>-~]*", _NOT_NAME))),
    "valueFrom": rules.union(
        *("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"), whole=True
    ),
    "valueFrom.fieldRef.fieldPath": ("needed", rules.named(_field_problems)),
    "valueFrom.resourceFieldRef.resource": "needed",
    "valueFrom.configMapKeyRef valueFrom.secretKeyRef": {"name": "given-subdomain", "key": "needed config-key"},
    "valueFrom if value!=": "unset",
}


def _inner_paths(mounts: Any, _: Any) -> Errors:
    """The server leaves out the index."""
    paths = [(part, each[part]) for each in mounts for part in ("subPath", "subPathExpr") if part in each]
    return [error.below(part) for part, path in paths for error in _INNER_PATH.check(path, None)]


RESOURCE_NAME: Final = rules.text(
    ("[^/]*/.*|cpu|memory|ephemeral-storage|hugepages-.*", "must be a standard resource for containers")
)


def resource_errors(resources: Any, _: Any = None) -> Iterator[FieldError]:
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        for name, value in (resources.get(part) or {}).items():
            field = f"{part}[{name}]"
            yield from (each.below(field) for each in RESOURCE_NAME.check(name, None))
            amount, limit = parse_quantity(value), parse_quantity(limits.get(name)) if part == "requests" else None
            if amount is not None and amount < 0:
                yield invalid_value(field, value, "must be greater than or equal to 0")
            prefix, slash, _ = name.partition("/")
            is_exact = name.startswith("hugepages-") or bool(slash and not prefix.endswith("kubernetes.io"))
            if part == "requests" and is_exact and limit is None:
                yield required("limits", "Limit must be set for non overcommitable resources")
            elif amount is not None and limit is not None and (amount != limit if is_exact else amount > limit):
                words = "equal to" if is_exact else "less than or equal to"
                yield invalid_value(part, value, f"must be {words} {name} limit of {limits[name]}")


_ID: Final = f"0..{2**31 - 1}"
_CONTAINER: Final[Rows] = {
    "name": "needed label",
    "image": "needed",
    "terminationMessagePolicy": "File|FallbackToLogsOnError",
    "imagePullPolicy": "Always|IfNotPresent|Never",
    "ports": rules.unique("name"),
    "ports[]": {"name": "port-name", "containerPort": "needed port", "hostPort": "port", "protocol": "PROTOCOL"},
    "env[]": _ENV,
    # The server leaves out the index.
    "envFrom": lambda sources, _: [error for each in sources for error in _IMPORTED(each, None)],
    "envFrom[].configMapRef.name envFrom[].secretRef.name": "needed subdomain",
    "volumeMounts": (_inner_paths, rules.unique("mountPath", empty=True)),
    "volumeMounts[].name volumeMounts[].mountPath": "needed",
    "volumeDevices": rules.unique("name"),
    "resources": resource_errors,
    "securityContext": {
        "runAsUser runAsGroup": _ID,
        lambda context: context.get("allowPrivilegeEscalation") is False and context.get("privileged"): (
            rules.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        ),
    },
}

# -- pods ------------------------------------------------------------------------------------------------------------


def _containers(spec: Any, _: Any) -> Iterator[FieldError]:
    """Names of containers and ports of the host are unique, and mounts name volumes."""
    volumes = {each.get("name") for each in spec.get("volumes") or ()}
    names, taken = {each.get("name") for each in spec.get("containers") or ()}, set[str]()
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            field, name = f"{part}[{index}]", container.get("name")
            if part == "initContainers" and name in names:
                yield duplicate(f"{field}.name", name)
            names.add(name)
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if (volume := mount.get("name", "")) not in volumes:
                    yield not_found(f"{field}.volumeMounts[{number}].name", volume)
            for number, port in enumerate(container.get("ports") or () if part == "containers" else ()):
                if host := port.get("hostPort"):
                    shown = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{host}"
                    place = f"{field}.ports[{number}].hostPort"
                    if shown in taken:
                        yield duplicate(place, shown)
                    taken.add(shown)
                    if spec.get("hostNetwork") and host != port.get("containerPort"):
                        yield invalid_value(place, host, "must match `containerPort` when `hostNetwork` is true")


def _spread(constraints: Any, _: Any) -> Iterator[FieldError]:
    keys = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for index, (key, action) in enumerate(keys):
        if (key, action) in keys[index + 1 :]:
            yield duplicate(f"[{index}].{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")


def _operator(toleration: Any, _: Any) -> Iterator[FieldError]:
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator in ("Equal", ""):
        yield from invalid_values("operator", value, label_value_problems(value))
    elif operator != "Exists":
        yield unsupported("operator", operator, ("Equal", "Exists"))
    elif value:
        yield invalid_value("operator", value, "value must be empty when `operator` is 'Exists'")
    if not toleration.get("key") and operator != "Exists":
        yield invalid_value("operator", operator, "operator must be Exists when `key` is empty")


_TOLERATION: Final[Rows] = (
    {"key": "key", "effect": "|NoSchedule|PreferNoSchedule|NoExecute"},
    _operator,
    {
        "if tolerationSeconds": {
            "if effect!=NoExecute": rules.invalid("must be 'NoExecute' when `tolerationSeconds` is set", "effect")
        }
    },
)
POD_SPEC: Final[Rows] = (
    {
        "volumes": rules.unique("name"),
        "volumes[]": _VOLUME,
        "containers": ("needed", rules.unique("name")),
        "containers[]": (_CONTAINER, _LIFECYCLE, {"restartPolicy": "Always|Never|OnFailure"}),
        "initContainers[]": (
            _CONTAINER,
            {
                "if restartPolicy=Always": _LIFECYCLE,
                "lifecycle livenessProbe readinessProbe startupProbe if restartPolicy!=Always": "unset",
            },
        ),
        "restartPolicy": "filled |Always|OnFailure|Never",
        "dnsPolicy": "filled |ClusterFirstWithHostNet|ClusterFirst|Default|None",
        "dnsConfig if dnsPolicy=None": "needed",
        "nodeSelector": "labels",
        "securityContext": {"fsGroup runAsUser runAsGroup": _ID},
        "topologySpreadConstraints": _spread,
        "topologySpreadConstraints[]": {
            "maxSkew": "1..!",
            "topologyKey": "needed",
            "whenUnsatisfiable": "DoNotSchedule|ScheduleAnyway!",
            "labelSelector": "selector",
        },
        "serviceAccountName nodeName priorityClassName": "subdomain",
        "hostname subdomain": "label",
        "activeDeadlineSeconds": f"1..{2**31 - 1}",
        "tolerations[]": _TOLERATION,
        "hostAliases[]": {"ip": "given-address", "hostnames[]": "full-subdomain"},
    },
    _containers,
)


def _metadata(template: Any, _: Any) -> Iterator[FieldError]:
    """The labels and annotations of a template: the server leaves `metadata` out of their paths."""
    metadata = template.get("metadata") or {}
    yield from validate_labels(metadata.get("labels") or {}, "labels")
    yield from validate_annotations(metadata.get("annotations") or {}, "annotations")


TEMPLATE: Final[Rows] = (
    _metadata,
    {"spec!": rules.remembered(POD_SPEC), "spec.ephemeralContainers": "unset"},
)


def selected(spec: Any, _: Any) -> Errors:
    """The selector of a workload, if it is valid, selects the pods of its template."""
    labels, selector = labels_of(spec.get("template") or {}), spec.get("selector")
    if selector is not None:
        if "matchExpressions" not in selector and (selector.get("matchLabels") or {}).items() <= labels.items():
            return ()
        if rules.is_invalid(selector) or meets(labels, requirements_of(selector)):
            return ()
    shown = dict(sorted(labels.items())) or None
    return (invalid_value("template.metadata.labels", shown, "`selector` does not match template `labels`"),)


def _update(pod: Any, before: Any) -> Iterator[FieldError]:
    if before is None:
        return
    spec, old = pod["spec"], before["spec"]
    for part in ("containers", "initContainers"):
        if len(spec.get(part) or ()) != len(old.get(part) or ()):
            yield forbidden_value(f"spec.{part}", "pod updates may not add or remove containers")
            return
    deadline, earlier = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if earlier is not None and (deadline is None or deadline > earlier):
        yield invalid_value("spec.activeDeadlineSeconds", deadline, f"must be at most the previous value, {earlier}")
        if deadline is not None:
            return
    kept, known = ([{**each, "tolerationSeconds": 0} for each in one.get("tolerations") or ()] for one in (spec, old))
    if not all(each in kept for each in known):
        message = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_value("spec.tolerations", message)
    yield from _FIXED(pod, before)


# The scheduler of the local cluster writes `nodeName` with an update.
_FIXED: Final = rules.frozen(
    "spec",
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_TRIMMED: Final = rules.text((r"(?!\s)(.*\S)?", "must not have leading or trailing whitespace"))
_OWN: Final[Rows] = (rules.remembered(POD_SPEC), {"containers[].image initContainers[].image": _TRIMMED})
POD: Final[Rows] = ({"spec!": rules.changed(_OWN)}, _update)
