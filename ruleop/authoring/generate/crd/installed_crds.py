"""The CustomResourceDefinitions that are installed with an operator: those of the kinds that it watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.authoring.checking.inferred_definitions import sound_definitions
from ruleop.core.schema.crd.crds import parse_crd
from ruleop.core.schema.crd.schema_findings import SchemaError
from ruleop.core.templating import read_resources

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.core.rules import Loaded


def installed_crds(loaded: Loaded) -> list[Object]:
    """In the order of the watches, from `schema` or from crds/. Raises ProjectErrors with the mistakes of schemas."""
    definitions = sound_definitions(loaded)
    known = _of_files(loaded) | {(each.crd.group, each.crd.kind): each.document for each in definitions}
    watched = dict.fromkeys((rule.kind.group, rule.kind.kind) for rule in loaded.project.rules)
    return [known[kind] for kind in watched if kind in known]


def _of_files(loaded: Loaded) -> dict[tuple[str, str], Object]:
    found: dict[tuple[str, str], Object] = {}
    for path, text in sorted(loaded.files.items()):
        if not path.startswith("crds/"):
            continue
        for node in read_resources(text, path)[0]:
            document = node.data()
            try:
                crd = parse_crd(document)
            except SchemaError:
                continue  # reported by loading
            found[crd.group, crd.kind] = document
    return found
