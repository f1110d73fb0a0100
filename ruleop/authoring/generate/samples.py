"""A custom resource of each kind: one of examples/, or a small one that satisfies the schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.authoring.checking.examples import read_examples
from ruleop.authoring.scaffold import instance
from ruleop.language.rules import Findings
from ruleop.language.templates.resource_reader import read_resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ruleop.kubernetes.kinds import JSON, Object
    from ruleop.language.rules.loading import Loaded


def samples(loaded: Loaded, crds: Sequence[Object]) -> list[Object]:
    """In the order of the CRDs: one for each version that is served."""
    written = {(str(each.get("apiVersion")), str(each.get("kind"))): each for each in reversed(list(examples(loaded)))}
    found = []
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            if version.get("served"):
                found.append(written.get(key) or _small(*key, version["schema"]["openAPIV3Schema"]))
    return found


def _small(version: str, kind: str, schema: dict[str, JSON]) -> Object:
    spec = (schema.get("properties") or {}).get("spec")
    found = {"apiVersion": version, "kind": kind, "metadata": {"name": "example"}}
    return found if spec is None else {**found, "spec": instance(spec, "spec")}


def examples(loaded: Loaded) -> Iterator[Object]:
    for path, text in read_examples(Path(loaded.project.root), Findings({})).items():
        documents, mistakes = read_resources(text, path)
        for node in documents if not mistakes else ():
            document = node.data()
            if isinstance(document, dict):
                yield document
