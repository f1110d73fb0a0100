"""Pods, their containers and volumes, and templates of pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ruleop.kubernetes.labels import label_value_problems, labels_of, meets, requirements_of
from ruleop.kubernetes.quantity import parse_quantity
from ruleop.kubernetes.validation.field_errors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    required,
    unsupported,
    validate_annotations,
    validate_labels,
)
from ruleop.kubernetes.validation.rules import (
    FieldRule,
    Rows,
    between,
    forbids,
    frozen,
    holds,
    invalid,
    is_changed,
    missing,
    needed,
    on_update,
    one_of,
    requires,
    selector_errors,
    sub_table,
    union,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.kubernetes.kinds import Object
    from ruleop.kubernetes.validation.rules import At, Errors


# -- volumes ---------------------------------------------------------------------------------------------------------


def _path(path: Any, at: At) -> Iterator[FieldError]:
    """A path on a host."""
    if ".." in path.split("/"):
        yield invalid_value(at.field, path, "must not contain '..'")


def _path_below(path: Any, at: At) -> Iterator[FieldError]:
    """A path below a volume."""
    if path.startswith("/"):
        yield invalid_value(at.field, path, "must be a relative path")
    yield from _path(path, at)


def _path_of_file(path: Any, at: At) -> Iterator[FieldError]:
    yield from _path_below(path, at)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid_value(at.field, path, "must not start with '..'")


_FILES: Final[Rows] = {
    "defaultMode": "mode",
    "items[]": {"key": "needed", "path": ("needed", _path_of_file), "mode": "mode"},
}
SOURCES: Final[Rows] = {
    "hostPath.path local.path": ("needed", _path),
    "hostPath.type": one_of(
        *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
    ),
    "secret.secretName configMap.name persistentVolumeClaim.claimName nfs.server csi.driver": "needed",
    "secret configMap": _FILES,
    "downwardAPI.defaultMode projected.defaultMode": "mode",
}
_KINDS: Final = ("emptyDir", "hostPath", "gitRepo", "secret", "nfs", "persistentVolumeClaim", "configMap")
_VOLUME: Final[Rows] = ({"name": "needed label"}, union("volume", *_KINDS, but=("name",)), SOURCES)

# -- containers -------------------------------------------------------------------------------------------------------

_POD_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    r"|metadata\.(labels|annotations)\['.+'\]"
)
_HANDLER: Final[Rows] = (
    union("handler", "exec", "httpGet", "tcpSocket", "grpc", "sleep"),
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
_NO_SECONDS: Final = invalid("terminationGracePeriodSeconds", lambda _: False, "must not be set for readinessProbes")
_LIFECYCLE: Final[Rows] = {
    "lifecycle.postStart lifecycle.preStop": _HANDLER,
    "livenessProbe startupProbe": (_PROBE, {"successThreshold": between(1, 1, "must be 1")}),
    "readinessProbe": (_PROBE, _NO_SECONDS),
}


def _pod_field(value: Any, at: At) -> Errors:
    if value and _POD_FIELD.fullmatch(value):
        return ()
    words = f"error converting fieldPath: field label not supported: {value}"
    return (invalid_value(at.field, value, words) if value else required(at.field),)


def _one_source(*names: str) -> FieldRule:
    """Of the sources of a variable there is one."""
    shown = f"{', '.join(f'`{each}`' for each in names[:-1])} or `{names[-1]}`"

    def check(value: Any, at: At) -> Errors:
        if (given := sum(value.get(each) is not None for each in names)) == 1:
            return ()
        words = "may not have more than one field specified at a time" if given else f"must specify one of: {shown}"
        return (invalid_value(at.field, "", words),)

    return FieldRule(check)


_IMPORTED: Final = _one_source("configMapRef", "secretRef")
_KEY_OF: Final[Rows] = {"name": "given-subdomain", "key": "needed config-key"}
_ENV_NAME: Final = holds(
    lambda name: name.isascii() and name.isprintable() and "=" not in name,
    "a valid environment variable name must consist only of printable ASCII characters other than '='",
)
_ENV: Final[Rows] = (
    {
        "name": ("needed", _ENV_NAME),
        "valueFrom": _one_source("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"),
        "valueFrom.fieldRef.fieldPath": missing(_pod_field),
        "valueFrom.resourceFieldRef.resource": "needed",
        "valueFrom.configMapKeyRef valueFrom.secretKeyRef": _KEY_OF,
    },
    invalid("valueFrom", lambda env: not env.get("value"), "may not be specified when `value` is not empty", shown=""),
)


def _imported(sources: Any, at: At) -> Errors:
    return [error for each in sources for error in _IMPORTED.check(each, at)]  # the server leaves out the index


def _mounts(mounts: Any, at: At) -> Iterator[FieldError]:
    paths = set[str]()
    for index, mount in enumerate(mounts):
        path = mount.get("mountPath", "")
        if path in paths:
            yield invalid_value(f"{at.field}[{index}].mountPath", path, "must be unique")
        paths.add(path)
        for part in ("subPath", "subPathExpr"):  # the server leaves out the index
            yield from _path_below(mount.get(part, ""), at._replace(field=at.child(part)))


def resource_name(name: str, field: str) -> Iterator[FieldError]:
    if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and not name.startswith("hugepages-"):
        yield invalid_value(field, name, "must be a standard resource type or fully qualified")
        yield invalid_value(field, name, "must be a standard resource for containers")


def validate_resources(resources: Object, field: str) -> Iterator[FieldError]:
    limits = resources.get("limits") or {}
    for part in ("limits", "requests"):
        for name, value in (resources.get(part) or {}).items():
            at = f"{field}.{part}[{name}]"
            yield from resource_name(name, at)
            amount, limit = parse_quantity(value), parse_quantity(limits.get(name)) if part == "requests" else None
            if amount is not None and amount < 0:
                yield invalid_value(at, value, "must be greater than or equal to 0")
            prefix, slash, _ = name.partition("/")
            is_exact = name.startswith("hugepages-") or bool(slash and not prefix.endswith("kubernetes.io"))
            if part == "requests" and is_exact and limit is None:
                yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
            elif amount is not None and limit is not None and (amount != limit if is_exact else amount > limit):
                words = "equal to" if is_exact else "less than or equal to"
                yield invalid_value(f"{field}.requests", value, f"must be {words} {name} limit of {limits[name]}")


def _privileges(context: Any, at: At) -> Errors:
    if context.get("allowPrivilegeEscalation") is not False or not context.get("privileged"):
        return ()
    words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
    return (FieldError("FieldValueInvalid", f"Invalid value: {words}", at.field),)


_ID: Final = f"0..{2**31 - 1}"
_CONTAINER: Final[Rows] = {
    "name": "needed label",
    "image": "needed",
    "terminationMessagePolicy": "File|FallbackToLogsOnError",
    "imagePullPolicy": "Always|IfNotPresent|Never",
    "ports": unique("name"),
    "ports[]": {"name": "port-name", "containerPort": "needed port", "hostPort": "port", "protocol": "PROTOCOL"},
    "env[]": _ENV,
    "envFrom": _imported,
    "envFrom[].configMapRef.name envFrom[].secretRef.name": "needed subdomain",
    "volumeMounts": _mounts,
    "volumeMounts[].name volumeMounts[].mountPath": "needed",
    "volumeDevices": unique("name"),
    "resources": lambda value, at: validate_resources(value, at.field),
    "securityContext": ({"runAsUser runAsGroup": _ID}, _privileges),
}


def _only_of_sidecars(container: Any, at: At) -> Iterator[FieldError]:
    for part in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(part) is not None:
            words = "may not be set for init containers without restartPolicy=Always"
            yield forbidden_value(at.child(part), words)


# -- pods ------------------------------------------------------------------------------------------------------------


def _containers(spec: Any, at: At) -> Iterator[FieldError]:
    """Names of containers and ports of the host are unique, and mounts name volumes."""
    volumes = {each.get("name") for each in spec.get("volumes") or ()}
    names, taken = {each.get("name") for each in spec.get("containers") or ()}, set[str]()
    for part in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(part) or ()):
            field, name = at.child(f"{part}[{index}]"), container.get("name")
            if part == "initContainers" and name in names:
                yield duplicate(f"{field}.name", name)
            names.add(name)
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if (volume := mount.get("name", "")) not in volumes:
                    message = f'Not found: "{volume}"'
                    yield FieldError("FieldValueNotFound", message, f"{field}.volumeMounts[{number}].name")
            for number, port in enumerate(container.get("ports") or () if part == "containers" else ()):
                if host := port.get("hostPort"):
                    shown = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{host}"
                    if shown in taken:
                        yield duplicate(f"{field}.ports[{number}].hostPort", shown)
                    taken.add(shown)
                    if spec.get("hostNetwork") and host != port.get("containerPort"):
                        words = "must match `containerPort` when `hostNetwork` is true"
                        yield invalid_value(f"{field}.ports[{number}].hostPort", host, words)


def _spread(constraints: Any, at: At) -> Iterator[FieldError]:
    keys = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for index, (key, action) in enumerate(keys):
        if (key, action) in keys[index + 1 :]:
            yield duplicate(f"{at.field}[{index}].{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")


def _operator(toleration: Any, at: At) -> Errors:
    operator, value, field = toleration.get("operator", ""), toleration.get("value", ""), at.child("operator")
    if operator in ("Equal", ""):
        if problems := label_value_problems(value):
            yield invalid_value(field, value, ";".join(problems))
    elif operator != "Exists":
        yield unsupported(field, operator, ("Equal", "Exists", *(("Lt", "Gt") if operator in ("Lt", "Gt") else ())))
    elif value:
        yield invalid_value(field, value, "value must be empty when `operator` is 'Exists'")
    if not toleration.get("key") and operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(field, operator, words)


def _effect(toleration: Any, at: At) -> Errors:
    effect, words = toleration.get("effect", ""), "effect must be 'NoExecute' when `tolerationSeconds` is set"
    is_valid = toleration.get("tolerationSeconds") is None or effect == "NoExecute"
    return () if is_valid else (invalid_value(at.child("effect"), effect, words),)


POD_SPEC: Final[Rows] = (
    {
        "volumes": unique("name"),
        "volumes[]": _VOLUME,
        "containers": ("needed", unique("name")),
        "containers[]": (_CONTAINER, _LIFECYCLE, {"restartPolicy": "Always|Never|OnFailure"}),
        "initContainers[]": (
            _CONTAINER,
            sub_table(_LIFECYCLE, when=lambda value, _: value.get("restartPolicy") == "Always"),
            sub_table(_only_of_sidecars, when=lambda value, _: value.get("restartPolicy") != "Always"),
        ),
        "restartPolicy": "filled |Always|OnFailure|Never",
        "dnsPolicy": "filled |ClusterFirstWithHostNet|ClusterFirst|Default|None",
        "nodeSelector": "labels",
        "securityContext": {"fsGroup runAsUser runAsGroup": _ID},
        "topologySpreadConstraints": _spread,
        "topologySpreadConstraints[]": {
            "maxSkew": between(1, None, "must be greater than zero", given=True),
            "topologyKey": needed("can not be empty"),
            "whenUnsatisfiable": "DoNotSchedule|ScheduleAnyway!",
            "labelSelector": "selector",
        },
        "serviceAccountName nodeName priorityClassName": "subdomain",
        "hostname subdomain": "label",
        "activeDeadlineSeconds": f"1..{2**31 - 1}",
        "tolerations[]": (
            {"key": "key", "effect": "|NoSchedule|PreferNoSchedule|NoExecute"},
            _operator,
            _effect,
        ),
        "hostAliases[]": {"ip": "given-address", "hostnames[]": "full-subdomain"},
    },
    requires(
        "dnsConfig",
        lambda spec: spec.get("dnsPolicy") == "None",
        "must provide `dnsConfig` when `dnsPolicy` is None",
    ),
    _containers,
)


def _metadata(template: Any, at: At) -> Iterator[FieldError]:
    """The labels and annotations of a template: the server leaves `metadata` out of their paths."""
    metadata = template.get("metadata") or {}
    yield from validate_labels(metadata.get("labels") or {}, at.child("labels"))
    yield from validate_annotations(metadata.get("annotations") or {}, at.child("annotations"))


TEMPLATE: Final[Rows] = (
    _metadata,
    {"spec!": sub_table(POD_SPEC, remembered=True)},
    {"spec": forbids("ephemeralContainers", lambda _: False, "ephemeral containers not allowed in pod template")},
)


def selected(spec: Any, at: At) -> Errors:
    """The selector of a workload, if it is valid, selects the pods of its template."""
    labels, selector = labels_of(spec.get("template") or {}), spec.get("selector")
    if selector is not None:
        if "matchExpressions" not in selector and (selector.get("matchLabels") or {}).items() <= labels.items():
            return ()
        if any(selector_errors(selector, at)) or meets(labels, requirements_of(selector)):
            return ()
    words, shown = "`selector` does not match template `labels`", dict(sorted(labels.items())) or None
    return (invalid_value(at.child("template.metadata.labels"), shown, words),)


def _update(spec: Any, at: At) -> Iterator[FieldError]:
    old = at.old
    for part in ("containers", "initContainers"):
        if len(spec.get(part) or ()) != len(old.get(part) or ()):
            yield forbidden_value(at.child(part), "pod updates may not add or remove containers")
            return
    deadline, earlier = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if earlier is not None and (deadline is None or deadline > earlier):
        words = "must be less than or equal to previous value" if deadline is not None else _NOT_NIL
        yield invalid_value(at.child("activeDeadlineSeconds"), deadline, words)
        if deadline is not None:
            return
    kept, before = ([{**each, "tolerationSeconds": 0} for each in one.get("tolerations") or ()] for one in (spec, old))
    if not all(each in kept for each in before):
        words = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_value(at.child("tolerations"), words)
    yield from frozen(_FIXED, at="spec", forbidden=True).check(spec, at)


_NOT_NIL: Final = "must not update from a positive integer to nil value"
# The scheduler of the local cluster writes `nodeName` with an update.
_FIXED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_IMAGE: Final = holds(lambda image: image.strip() == image, "must not have leading or trailing whitespace")
POD: Final[Rows] = {
    "spec!": sub_table(
        (
            sub_table(POD_SPEC, remembered=True),
            {"containers[].image initContainers[].image": _IMAGE},  # not checked in templates
            on_update(_update),
        ),
        when=is_changed,
    ),
}
