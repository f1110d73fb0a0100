"""Warns of children that adopt any object: the custom resource decides the name and the namespace.

Adopting is then a way to write to objects that its author cannot write to. Objects with an owner are not adopted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from ruleop.core.schema.builtin.table import builtin_resource
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.rules.findings import Findings
    from ruleop.core.rules.language.parsed import Draft

_METADATA = re.compile(r"^( *)metadata:.*(?:\n(?:\1 +.*| *))*", re.MULTILINE)
_CONSTANT = re.compile(r"\{\{-?\s*(?:vars\.[\w.]+|(?:cr\.)?metadata\.namespace)\s*-?\}\}")


def warn_of_adoption(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    if draft.table.reach != "cluster":
        return
    for part in parts:
        child = part.child
        if not part.body or child is None or child.table.adopt != "orphans":
            continue
        is_cluster_scoped = any(
            (found := builtin_resource(kind.versionless)) is not None and not found.namespaced for kind in child.kinds
        )
        places = [*_texts(part, "namespace", templates)]
        if child.table.namespace is not None:
            places.append(str(child.table.namespace.node.value))
        if any(map(_is_decided, _texts(part, "name", templates))) and (
            is_cluster_scoped or any(map(_is_decided, places))
        ):
            what = "name" if is_cluster_scoped else "name and the namespace"
            message = (
                f"with `adopt: orphans`, a CR that decides the {what} can take over any object of this kind that has "
                "no owner: leave `adopt` out, or make one of them constant"
            )
            findings.warning("adopts-any", message, part.site)


def _is_decided(text: str) -> bool:
    """Whether a template computes the text, from more than `vars` and the CR's namespace."""
    return "{{" in _CONSTANT.sub("", text)


def _texts(part: Part, name: Literal["name", "namespace"], templates: Mapping[str, str]) -> Iterator[str]:
    """The values of a field of metadata, before rendering."""
    if isinstance(part.compiled, TextTemplate):
        field = re.compile(rf"(?:^|[{{,]|\n) *{name}: *(\"[^\"\n]*\"|'[^'\n]*'|(?:\{{\{{.*?\}}\}}|[^\n,}}])*)")
        for file in part.compiled.files:
            for block in _METADATA.finditer(templates[file]):
                yield from (match[1] for match in field.finditer(block[0].split("metadata:", 1)[1]))
        return
    metadata = part.node.value.get("metadata") if isinstance(part.node.value, dict) else None
    found = metadata.value.get(name) if metadata is not None and isinstance(metadata.value, dict) else None
    if found is not None:
        yield str(found.value)
