"""The files of the CRDs that `schema` of the watches describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.authoring.scaffold.yaml_layout import rules_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.core.rules.language.definitions import Definition

MARK: Final = "# Made by `ruleop generate"
"""The beginning of a generated file, which may be overwritten."""
_HEADER: Final = f"{MARK} crd` from `schema` in watches.yaml: change it there.\n"


def crd_files(definitions: Iterable[Definition]) -> dict[str, str]:
    """The text of each CRD, by the name of its file."""
    return {f"{each.crd.name}.yaml": _HEADER + rules_text(each.document) for each in definitions}


def yaml_stream(files: Mapping[str, str]) -> str:
    """The files as the documents of one."""
    return "---\n".join(files.values())
