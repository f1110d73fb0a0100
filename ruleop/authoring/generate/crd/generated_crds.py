"""The files of the CRDs that `schema` of the watches describes, and the CRDs that are installed with an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.inferred_definitions import sound_definitions
from ruleop.authoring.scaffold.yaml_layout import rules_text
from ruleop.kubernetes.crd.crds import parse_crd
from ruleop.kubernetes.schema.schema_findings import SchemaError
from ruleop.language.templates.yaml.resource_reader import read_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.language.rules.keys.definitions import Definition
    from ruleop.language.rules.loading import Loaded

MARK: Final = "# Made by `ruleop generate"
"""The beginning of a generated file, which may be overwritten."""
_HEADER: Final = f"{MARK} crd` from `schema` in watches.yaml: change it there.\n"


def crd_files(definitions: Iterable[Definition]) -> dict[str, str]:
    """The text of each CRD, by the name of its file."""
    return {f"{each.crd.name}.yaml": _HEADER + rules_text(each.document) for each in definitions}


def yaml_stream(files: Mapping[str, str]) -> str:
    """The files as the documents of one."""
    return "---\n".join(files.values())


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
