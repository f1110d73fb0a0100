"""The ConfigMaps and Secrets that the containers and volumes of a pod need, and those that are missing, in the
kubelet's words. A pod that needs an object is reconciled again when that object is created or changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.localcluster.kinds.resources import CONFIG_MAPS, SECRETS
from ruleop.localcluster.store.object_store import Name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.kinds import Object
    from ruleop.localcluster.controllers.machinery import Machinery
    from ruleop.localcluster.store.object_store import Resource


class _Kind(NamedTuple):
    resource: Resource
    title: str
    fields: tuple[str, ...]  # that have the files of a volume; an environment variable reads the first alone
    missing_file: str


_CONFIG_MAP: Final = _Kind(
    CONFIG_MAPS, "ConfigMap", ("data", "binaryData"), "configmap references non-existent config key"
)
_SECRET: Final = _Kind(SECRETS, "Secret", ("data",), "references non-existent secret key")


class _Missing(Exception):  # noqa: N818 - it is an answer
    """The reason that a container or volume cannot be set up."""


class Configuration:
    """The ConfigMaps and Secrets beside a pod."""

    def __init__(self, machinery: Machinery, pod: Object) -> None:
        self._machinery, self._pod = machinery, pod
        self._namespace: str = pod["metadata"]["namespace"]

    def container_problem(self, container: Object) -> str:
        """The reason that a container cannot be created; empty if it can."""
        try:
            for each in container.get("envFrom") or ():
                if "configMapRef" in each:
                    self._find(_CONFIG_MAP, each["configMapRef"])
                if "secretRef" in each:
                    self._find(_SECRET, each["secretRef"])
            for each in container.get("env") or ():
                source = each.get("valueFrom") or {}
                if "configMapKeyRef" in source:
                    self._check_key(_CONFIG_MAP, source["configMapKeyRef"])
                if "secretKeyRef" in source:
                    self._check_key(_SECRET, source["secretKeyRef"])
        except _Missing as missing:
            return str(missing)
        return ""

    def volume_problems(self) -> Iterator[str]:
        """The reasons that the volumes of the pod cannot be mounted."""
        for volume in self._pod["spec"].get("volumes") or ():
            problems = [problem for source in _sources(volume) if (problem := self._source_problem(source))]
            if problems:
                text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                yield f'MountVolume.SetUp failed for volume "{volume["name"]}" : {text}'

    def _source_problem(self, source: tuple[_Kind, Object]) -> str:
        kind, reference = source
        try:
            if (found := self._find(kind, reference)) is not None:
                keys = {key for name in kind.fields for key in found.get(name) or ()}
                for item in reference.get("items") or ():
                    if item["key"] not in keys:
                        self._check_optional(kind, reference, f"{kind.missing_file}: {item['key']}")
        except _Missing as missing:
            return str(missing)
        return ""

    def _check_key(self, kind: _Kind, reference: Object) -> None:
        found, key = self._find(kind, reference), reference["key"]
        if found is not None and key not in (found.get(kind.fields[0]) or {}):
            place = f"{kind.title} {self._namespace}/{reference['name']}"
            self._check_optional(kind, reference, f"couldn't find key {key} in {place}")

    def _find(self, kind: _Kind, reference: Object) -> Object | None:
        """None if the object is missing and optional."""
        name = reference.get("name", "")
        found = self._machinery.get(kind.resource, self._namespace, name)
        if found is None:
            self._check_optional(kind, reference, f'{kind.title.lower()} "{name}" not found')
            return None
        return found.obj

    def _check_optional(self, kind: _Kind, reference: Object, problem: str) -> None:
        if not reference.get("optional"):
            self._machinery.wait_for(kind.resource, Name(self._namespace, reference.get("name", "")))
            raise _Missing(problem)


def _sources(volume: Object) -> Iterator[tuple[_Kind, dict[str, Any]]]:
    for each in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        if "configMap" in each:
            yield _CONFIG_MAP, each["configMap"]
        if "secret" in each:
            # A volume has secretName, a source of a projected volume has name.
            yield _SECRET, {"name": each["secret"].get("secretName", ""), **each["secret"]}
