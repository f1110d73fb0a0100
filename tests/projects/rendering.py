"""Projects, the files of their objects, and the plan of a custom resource beside existing objects."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.offline import OfflineKinds, as_live, prepare
from ruleop.kubernetes.kinds import Kind, Object, ObjectKey
from ruleop.kubernetes.merge import ANNOTATION, Record, create_fields, encode
from ruleop.kubernetes.schema.shape import UNKNOWN
from ruleop.language.rules import Project
from ruleop.language.rules.checking import load_with_sources
from ruleop.planning import FixedObjects, Observed, Owner, Plan, choose_rule, plan
from ruleop.planning.model.marks import PART_OF

NOTHING_RECORDED = create_fields({}, UNKNOWN)


@cache
def loaded(folder: Path) -> Project:
    """Cached for all tests: a project is frozen, and loading one is slow."""
    return with_definitions(load_with_sources(folder, environ={})).project


def planned(project_dir: Path, cr: Object, existing: Iterable[Object] = (), *, served: Iterable[Kind] = ()) -> Plan:
    """`served`: kinds beyond the built-in ones. An existing object with a child's name is that child."""
    project = loaded(project_dir)
    kinds = OfflineKinds(project, frozenset(served))
    resource, findings = prepare(project, cr)
    assert findings == []
    rule = choose_rule(project.rules, resource)
    assert rule is not None
    found = {ObjectKey.of(obj): obj for obj in as_live(existing, kinds)}
    owned: set[ObjectKey] = set()
    while True:
        made = plan(
            rule, resource, Observed(FixedObjects(found.values()), kinds, now="2026-01-01T00:00:00Z", seed=b"snapshot")
        )
        ours = {
            ObjectKey.of(obj): child for child, _, obj in made.rendered if ObjectKey.of(obj) in found.keys() - owned
        }
        if not ours:
            return made
        found |= {key: _marked(found[key], child, Owner.of(resource)) for key, child in ours.items()}
        owned |= ours.keys()


def _marked(obj: Object, child: str, owner: Owner) -> Object:
    marks = {"labels": {PART_OF: owner.part_of}, "annotations": {ANNOTATION: encode(Record(child, NOTHING_RECORDED))}}
    metadata = obj["metadata"]
    return {
        **obj,
        "metadata": {
            **metadata,
            "ownerReferences": [owner.reference()],
            **{name: {**metadata.get(name, {}), **more} for name, more in marks.items()},
        },
    }


def documents(file: Path) -> list[Any]:
    text = file.read_text(encoding="utf-8")
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document is not None]


def document(file: Path) -> Any:
    [only] = documents(file)
    return only
