"""Warns of Jobs with ttlSecondsAfterFinished: the deleted Job is missing from the desired state, so ruleop would create
it again.

Children with `when` are not checked, because the rule may remove the finished Job by it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.core.errors import Site
from ruleop.core.rules.language.parsed import JOBS
from ruleop.core.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.rules.findings import Findings

_FIELD = "ttlSecondsAfterFinished"
_IN_TEXT = re.compile(rf"(?:^|[{{,]) *({_FIELD}) *:", re.MULTILINE)


def warn_of_job_ttl(parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    for part in parts:
        child = part.child
        if (
            not part.body
            or child is None
            or child.final
            or "when" in child.table.key_sites
            or any(kind.versionless != JOBS for kind in child.kinds)
        ):
            continue
        for site in _ttl_sites(part, templates):
            message = (
                f"with `{_FIELD}` the finished Job is deleted, "
                "and then ruleop creates and runs it again: remove the field"
            )
            if child.run is not None:
                message = (
                    f"with `{_FIELD}` a Job that finishes and is deleted while ruleop is not running runs again: "
                    "remove the field; `history` limits the finished Jobs"
                )
            findings.warning("runs-again", message, site)


def _ttl_sites(part: Part, templates: Mapping[str, str]) -> Iterator[Site]:
    if isinstance(part.compiled, TextTemplate):
        for name in part.compiled.files:
            for match in _IN_TEXT.finditer(templates[name]):
                before = templates[name][: match.start(1)]
                yield Site(f"templates/{name}", before.count("\n") + 1, len(before) - before.rfind("\n"))
        return
    spec = part.node.value.get("spec") if isinstance(part.node.value, dict) else None
    if spec is not None and _FIELD in spec.key_sites:
        yield spec.key_sites[_FIELD]
