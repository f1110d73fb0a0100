"""Pods, their containers and volumes, and templates of pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.labels import label_value_problems, labels_of, meets, requirements_of
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation import rules
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    refusal,
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
_HOST_PATH: Final = rules.text(_NO_PARENT)
_INNER_PATH: Final = rules.text(_RELATIVE, _NO_PARENT)
_FILE: Final = rules.text(_RELATIVE, _NO_PARENT, (r"(?!\.\.(?!/)).*", "must not start with '..'"))
SOURCES: Final[Rows] = {
    "hostPath.path local.path": ("needed", _HOST_PATH),
    "hostPath.type": rules.one_of(
        *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
    ),
    "secret.secretName configMap.name persistentVolumeClaim.claimName nfs.server csi.driver": "needed",
    "secret configMap": {"items[]": {"key": "needed", "path": ("needed", _FILE), "mode": "mode"}},
    "secret.defaultMode configMap.defaultMode downwardAPI.defaultMode projected.defaultMode": "mode",
}
_KINDS: Final = ("emptyDir", "hostPath", "gitRepo", "secret", "nfs", "persistentVolumeClaim", "configMap")
_VOLUME: Final[Rows] = ({"name": "needed label"}, rules.union("volume", *_KINDS, but=("name",)), SOURCES)

# -- containers ------------------------------------------------------------------------------------------------------

_POD_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    r"|metadata\.(labels|annotations)\['.+'\]"
)
_HANDLER: Final[Rows] = (
    rules.union("handler", "exec", "httpGet", "tcpSocket", "grpc", "sleep"),
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
    "livenessProbe.successThreshold startupProbe.successThreshold": rules.between(1, 1, "must be 1"),
    "readinessProbe.terminationGracePeriodSeconds": "Invalid value: {}: must not be set for readinessProbes",
}


def _one_source(*names: str) -> Rows:
    """Of the sources of a variable there is one."""
    shown = f"{', '.join(f'`{each}`' for each in names[:-1])} or `{names[-1]}`"

    def given(value: Any) -> int:
        return sum(value.get(each) is not None for each in names)

    return {
        rules.fails(given): f'Invalid value: "": must specify one of: {shown}',
        lambda value: given(value) > 1: 'Invalid value: "": may not have more than one field specified at a time',
    }


def _field_problems(path: str) -> Iterator[str]:
    if not _POD_FIELD.fullmatch(path):
        yield f"error converting fieldPath: field label not supported: {path}"


_NOT_NAME: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_IMPORTED: Final = rules.table(_one_source("configMapRef", "secretRef"))
_ENV: Final[Rows] = {
    "name": ("needed", rules.text(("[ -<>-~]*", _NOT_NAME))),
    "valueFrom": _one_source("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
    "valueFrom.fieldRef.fieldPath": ("needed", rules.named(_field_problems)),
    "valueFrom.resourceFieldRef.resource": "needed",
    "valueFrom.configMapKeyRef valueFrom.secretKeyRef": {"name": "given-subdomain", "key": "needed config-key"},
    lambda variable: variable.get("value"): {
        "valueFrom": 'Invalid value: "": may not be specified when `value` is not empty'
    },
}


def _inner_paths(mounts: Any, _: Any) -> Errors:
    """The server leaves out the index."""
    paths = [(part, each[part]) for each in mounts for part in ("subPath", "subPathExpr") if part in each]
    return [error.below(part) for part, path in paths for error in _INNER_PATH.check(path, None)]


_RESOURCE: Final = "[^/]*/.*|cpu|memory|ephemeral-storage|hugepages-.*"
RESOURCE_NAME: Final = rules.text(
    (_RESOURCE, "must be a standard resource type or fully qualified"),
    (_RESOURCE, "must be a standard resource for containers"),
)


def resource_errors(resources: Any, _: Any = None) -> Iterator[FieldError]:
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        for name, value in (resources.get(part) or {}).items():
            field = f"{part}[{name}]"
            yield from (each.below(field) for each in RESOURCE_NAME.check(name, None))
            amount, limit = parse_quantity(value), parse_quantity(limits.get(name)) if part == "requests" else None
            if amount is not None and amount < 0:
                yield refusal("Invalid value: {}: must be greater than or equal to 0", value, field)
            prefix, slash, _ = name.partition("/")
            is_exact = name.startswith("hugepages-") or bool(slash and not prefix.endswith("kubernetes.io"))
            if part == "requests" and is_exact and limit is None:
                yield refusal("Required value: Limit must be set for non overcommitable resources", value, "limits")
            elif amount is not None and limit is not None and (amount != limit if is_exact else amount > limit):
                words = "equal to" if is_exact else "less than or equal to"
                yield refusal(f"Invalid value: {{}}: must be {words} {name} limit of {limits[name]}", value, part)


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
    "volumeMounts": (_inner_paths, rules.unique("mountPath", empty=True, message="Invalid value: {}: must be unique")),
    "volumeMounts[].name volumeMounts[].mountPath": "needed",
    "volumeDevices": rules.unique("name"),
    "resources": resource_errors,
    "securityContext": {
        "runAsUser runAsGroup": _ID,
        lambda context: context.get("allowPrivilegeEscalation") is False and context.get("privileged"): (
            "Invalid value: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        ),
    },
}
_NOT_OF_INIT: Final = "Forbidden: may not be set for init containers without restartPolicy=Always"

# -- pods ------------------------------------------------------------------------------------------------------------


def _containers(spec: Any, _: Any) -> Iterator[FieldError]:
    """Names of containers and ports of the host are unique, and mounts name volumes."""
    volumes = {each.get("name") for each in spec.get("volumes") or ()}
    names, taken = {each.get("name") for each in spec.get("containers") or ()}, set[str]()
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            field, name = f"{part}[{index}]", container.get("name")
            if part == "initContainers" and name in names:
                yield refusal("Duplicate value: {}", name, f"{field}.name")
            names.add(name)
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name", "") not in volumes:
                    yield refusal("Not found: {name}", mount, f"{field}.volumeMounts[{number}].name")
            for number, port in enumerate(container.get("ports") or () if part == "containers" else ()):
                if host := port.get("hostPort"):
                    shown, place = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{host}", f"ports[{number}]"
                    if shown in taken:
                        yield refusal("Duplicate value: {}", shown, f"{field}.{place}.hostPort")
                    taken.add(shown)
                    if spec.get("hostNetwork") and host != port.get("containerPort"):
                        yield refusal(_NOT_OF_HOST, host, f"{field}.{place}.hostPort")


_NOT_OF_HOST: Final = "Invalid value: {}: must match `containerPort` when `hostNetwork` is true"


def _spread(constraints: Any, _: Any) -> Iterator[FieldError]:
    keys = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for index, (key, action) in enumerate(keys):
        if (key, action) in keys[index + 1 :]:
            field = f"[{index}].{{topologyKey, whenUnsatisfiable}}"
            yield refusal("Duplicate value: {}", f"{{{key}, {action}}}", field)


def _operator(toleration: Any, _: Any) -> Iterator[FieldError]:
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator in ("Equal", "") and (problems := label_value_problems(value)):
        yield refusal(f"Invalid value: {{value}}: {';'.join(problems)}", toleration, "operator")
    elif operator not in ("Equal", "", "Exists"):
        choices = ("Equal", "Exists", *(("Lt", "Gt") if operator in ("Lt", "Gt") else ()))
        yield unsupported("operator", operator, choices)
    elif operator == "Exists" and value:
        yield refusal("Invalid value: {value}: value must be empty when `operator` is 'Exists'", toleration, "operator")
    if not toleration.get("key") and operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield refusal(f"Invalid value: {{operator}}: {message}", toleration, "operator")


def _evicts_late(toleration: Any) -> bool:
    return toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute"


_NOT_EVICTING: Final = "Invalid value: {effect}: effect must be 'NoExecute' when `tolerationSeconds` is set"
_TOLERATION: Final[Rows] = (
    {"key": "key", "effect": "|NoSchedule|PreferNoSchedule|NoExecute"},
    _operator,
    {_evicts_late: rules.always(_NOT_EVICTING, "effect")},
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
                rules.equals("restartPolicy", "Always"): _LIFECYCLE,
                rules.differs("restartPolicy", "Always"): {
                    "lifecycle livenessProbe readinessProbe startupProbe": _NOT_OF_INIT
                },
            },
        ),
        "restartPolicy": "filled |Always|OnFailure|Never",
        "dnsPolicy": "filled |ClusterFirstWithHostNet|ClusterFirst|Default|None",
        rules.equals("dnsPolicy", "None"): {
            "dnsConfig": "Required value: must provide `dnsConfig` when `dnsPolicy` is None"
        },
        "nodeSelector": "labels",
        "securityContext": {"fsGroup runAsUser runAsGroup": _ID},
        "topologySpreadConstraints": _spread,
        "topologySpreadConstraints[]": {
            "maxSkew": rules.between(1, None, "must be greater than zero", given=True),
            "topologyKey": "Required value: can not be empty",
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
    {
        "spec!": rules.remembered(POD_SPEC),
        "spec.ephemeralContainers": "Forbidden: ephemeral containers not allowed in pod template",
    },
)


def selected(spec: Any, _: Any) -> Errors:
    """The selector of a workload, if it is valid, selects the pods of its template."""
    labels, selector = labels_of(spec.get("template") or {}), spec.get("selector")
    if selector is not None:
        if "matchExpressions" not in selector and (selector.get("matchLabels") or {}).items() <= labels.items():
            return ()
        if rules.is_invalid(selector) or meets(labels, requirements_of(selector)):
            return ()
    message = "Invalid value: {}: `selector` does not match template `labels`"
    return (refusal(message, dict(sorted(labels.items())) or None, "template.metadata.labels"),)


def _update(pod: Any, before: Any) -> Iterator[FieldError]:
    if before is None:
        return
    spec, old = pod["spec"], before["spec"]
    for part in ("containers", "initContainers"):
        if len(spec.get(part) or ()) != len(old.get(part) or ()):
            yield refusal("Forbidden: pod updates may not add or remove containers", spec, f"spec.{part}")
            return
    deadline, earlier = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if earlier is not None and (deadline is None or deadline > earlier):
        words = "must be less than or equal to previous value" if deadline is not None else _NOT_NIL
        yield refusal(f"Invalid value: {{}}: {words}", deadline, "spec.activeDeadlineSeconds")
        if deadline is not None:
            return
    kept, known = ([{**each, "tolerationSeconds": 0} for each in one.get("tolerations") or ()] for one in (spec, old))
    if not all(each in kept for each in known):
        message = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        yield refusal(message, kept, "spec.tolerations")
    yield from _FIXED(pod, before)


_NOT_NIL: Final = "must not update from a positive integer to nil value"
# The scheduler of the local cluster writes `nodeName` with an update.
_FIXED: Final = rules.frozen(
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    at="spec",
)
_TRIMMED: Final[Rows] = {
    lambda image: image.strip() != image: "Invalid value: {}: must not have leading or trailing whitespace"
}
_OWN: Final[Rows] = (rules.remembered(POD_SPEC), {"containers[].image initContainers[].image": _TRIMMED})
POD: Final[Rows] = ({"spec!": rules.changed(_OWN)}, _update)
