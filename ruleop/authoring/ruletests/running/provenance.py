"""Finds the line of a template that a field of a test's objects comes from: the pass is planned again, and shows each
template's documents with their places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ruleop.errors import RuleopError, Site
from ruleop.kubernetes.kinds import Kind, ObjectKey
from ruleop.language.templates.field_sites import FieldPath, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ruleop.kubernetes.kinds import JSON
    from ruleop.language.rules import Rule
    from ruleop.language.templates import TextTemplate, Tree
    from ruleop.language.templates.tree.templates import Rendering


@dataclass(slots=True)
class Provenance:
    """Where the fields of one pass come from. `plan_again` renders everything once more."""

    rule: Rule
    plan_again: Callable[[], object]
    _traced: list[Rendering] | None = field(default=None)

    def of(
        self, key: ObjectKey, path: FieldPath, cr: ObjectKey, owned: Iterable[tuple[str, ObjectKey, object]]
    ) -> Site | None:
        """The place of a field of the CR's status, or of a child's object. `owned`: with the ids of their children."""
        if key == cr:
            return self._of_status(path)
        ids = {other: id_ for id_, other, _ in owned}
        child = next((each for each in self.rule.every_child if each.id == ids.get(key)), None)
        if child is None:
            return None
        return self._in_body(child.body, path, key)

    def _of_status(self, path: FieldPath) -> Site | None:
        """The place of a field of the status."""
        return self._in_body(self.rule.status.body, path, None) if self.rule.status.body is not None else None

    def _in_body(self, body: TextTemplate | Tree, path: FieldPath, key: ObjectKey | None) -> Site | None:
        """`key`: of one of several objects."""
        for rendered, documents, sites in self._renderings():
            if rendered is body.file:
                for document in documents:
                    if _is(document, key) if key is not None else not path or path[0] in document:
                        return Walk(document, sites).to(path, document)
        return None

    def _renderings(self) -> Sequence[Rendering]:
        if self._traced is None:
            found: list[Rendering] = []
            self._traced = found
            bodies = (*(child.body for child in self.rule.every_child), self.rule.status.body)
            templates = next((each.templates for each in bodies if each is not None), None)
            if templates is not None:
                templates.trace = found
                try:
                    self.plan_again()
                except RuleopError:
                    pass  # the failure itself says what is wrong
                finally:
                    templates.trace = None
        return self._traced


def _is(document: JSON, key: ObjectKey) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        return False
    return Kind.of(document).versionless == key.group_kind and document["metadata"].get("name") == key.name
