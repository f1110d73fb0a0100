"""Jobs that have themselves deleted when they are done. What a rule wants and is not there is made, so such a Job would run for ever.

A child with `when` is not looked at: there the rule may say itself when the Job is not wanted any more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.errors import Site
from ruleop.rules.language.parsed import JOBS
from ruleop.templating import TextTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.rules.checks.scopes import Part
    from ruleop.rules.findings import Findings

_FIELD = "ttlSecondsAfterFinished"
_IN_TEXT = re.compile(rf"(?:^|[{{,]) *({_FIELD}) *:", re.MULTILINE)


def warn_of_expiry(parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    for part in parts:
        child = part.child
        if (
            not part.body
            or child is None
            or child.final
            or "when" in child.table.said
            or any(kind.versionless != JOBS for kind in child.kinds)
        ):
            continue
        for site in _places(part, templates):
            message = f"with `{_FIELD}` the Job is deleted when it is done, and then made and run again: leave it out"
            findings.warning("runs-again", message, site)


def _places(part: Part, templates: Mapping[str, str]) -> Iterator[Site]:
    if isinstance(part.compiled, TextTemplate):
        for name in part.compiled.files:
            for match in _IN_TEXT.finditer(templates[name]):
                before = templates[name][: match.start(1)]
                yield Site(f"templates/{name}", before.count("\n") + 1, len(before) - before.rfind("\n"))
        return
    spec = part.node.value.get("spec") if isinstance(part.node.value, dict) else None
    if spec is not None and _FIELD in spec.key_sites:
        yield spec.key_sites[_FIELD]
