"""The files of a project that its operator reads, the ConfigMaps that hold them, and the Dockerfile of an image that
does."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from ruleop.authoring.generate.crds import MARK
from ruleop.authoring.generate.installation.operator_objects import FOLDER
from ruleop.errors import Site
from ruleop.language.rules import Findings, ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.loading import Loaded
    from ruleop.language.rules.operator_choices import Choices

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
        needed = _applied_size(text) + len(path)
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


def _applied_size(text: str) -> int:
    """Bytes in the annotation, in which kubectl writes three characters as an escape of six."""
    return len(orjson.dumps(text)) + 5 * sum(text.count(each) for each in "<>&")


_HEADER: Final = f"{MARK} image` from the rules and ruleop.yaml: change them there.\n"
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
        "Dockerfile": _HEADER + "".join(f"{line}\n" for line in lines),
        ".dockerignore": _HEADER + "".join(f"{line}\n" for line in ignored),
    }


def _quoted(text: str) -> str:
    """In double quotes of a Dockerfile."""
    return re.sub(r'([\\"$])', r"\\\1", text)


def _copy(path: str, folder: str) -> str:
    target = f"{folder}/{path}"
    return f"COPY {path} {target}" if _PLAIN.fullmatch(path) else f"COPY {json.dumps([path, target])}"
