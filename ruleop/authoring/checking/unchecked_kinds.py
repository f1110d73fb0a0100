"""The kinds of children whose fields no check compares with a schema: those of CRDs that the project does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.kubernetes.builtin.builtin_types import typed_schema
from ruleop.kubernetes.crd import definition_of

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import Kind
    from ruleop.language.rules import Project
    from ruleop.language.rules.loading import Loaded


def unchecked_kinds(loaded: Loaded) -> tuple[Kind, ...]:
    kinds = {kind for watch in loaded.watches for child in watch.draft.everyone for kind in child.kinds}
    return tuple(sorted(kind for kind in kinds if not _has_schema(kind, loaded.project)))


def _has_schema(kind: Kind, project: Project) -> bool:
    crd = definition_of(kind, project.crds)
    return typed_schema(kind) is not None or (crd is not None and crd.version(kind.version) is not None)
