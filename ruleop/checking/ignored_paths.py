"""Paths of `apply.ignore` that lead nowhere: the field that was meant is not ignored, and its changes are reverted.

A path may be set for one child or, in a watch or a file, for all of them. A shared path must lead somewhere in one of
the children. The schema may be older than the cluster, so the operator starts with such a path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.rules.checks.field_paths import first_mistake, shape_of

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.merge import Path
    from ruleop.rules import Findings, Loaded
    from ruleop.rules.language.parsed import ChildDraft


def check_ignored_paths(loaded: Loaded, findings: Findings) -> None:
    reasons_by_path: dict[tuple[Site, Path], list[str]] = {}
    for watch in loaded.watches:
        for child in watch.draft.everyone:
            for ignored in child.ignore:
                if ignored.path is not None:
                    site = ignored.key_sites.get("path", ignored.site)
                    reasons_by_path.setdefault((site, ignored.path), []).append(_reason(child, ignored.path, loaded))
    for (site, path), reasons in reasons_by_path.items():
        if all(reasons):
            findings.mistake("unknown-field", f'an ignored path "{path}": {reasons[0]}', site)


def _reason(child: ChildDraft, path: Path, loaded: Loaded) -> str:
    """Why no object of the child can have the field; "" if one can."""
    crds = loaded.project.crds
    reasons = [first_mistake(path.segments, kind, shape_of(kind, crds)) for kind in sorted(child.kinds)]
    return reasons[0] if reasons and all(reasons) else ""
