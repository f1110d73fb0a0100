"""Names of watches.yaml that nothing reads: values of `let`, and observed resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.core.errors import Site
    from ruleop.core.rules import Findings, Loaded, Watch


def check_unused_names(loaded: Loaded, findings: Findings) -> None:
    """A name that several watches share is used if one of them uses it."""
    unused: dict[tuple[Site, str], bool] = {}
    for watch in loaded.watches:
        read = {name for part in watch.parts for name in part.compiled.names}
        for what, name, site in _defined(watch):
            message = f'nothing reads {what} "{name}": remove it'
            unused[site, message] = unused.get((site, message), True) and name not in read
    for (site, message), is_unused in unused.items():
        if is_unused:
            findings.warning("unused-name", message, site)


def _defined(watch: Watch) -> Iterator[tuple[str, str, Site]]:
    for entry in watch.draft.let:
        yield "the value of let", entry.name, entry.site
    for observed in watch.draft.observed.values():
        yield "the observed resource", observed.name, observed.site
