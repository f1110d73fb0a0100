"""What watches have to do with each other. All watches of a kind, whatever their version, are one controller, in which the first that
matches a CR rules it; so they need names, and one that can never be the first is a mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.rules.checks.scopes import selector_values
from ruleop.schema.table import builtin_resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kinds import GroupKind
    from ruleop.rules.findings import Findings
    from ruleop.rules.language.parsed import Draft
    from ruleop.rules.language.watches_yaml import FullSelectorTable

Demand: TypeAlias = tuple[str, str, frozenset[str]]  # a label, an operator, values


def check_watches(drafts: Iterable[Draft], findings: Findings) -> None:
    by_kind: dict[GroupKind, list[Draft]] = {}
    for draft in drafts:
        by_kind.setdefault(draft.kind.versionless, []).append(draft)
    for kind, watches in by_kind.items():
        if len(watches) > 1:
            _check_names(kind, watches, findings)
        for number, watch in enumerate(watches):
            _check_hidden(watch, watches[:number], findings)


def _check_names(kind: GroupKind, watches: list[Draft], findings: Findings) -> None:
    named: dict[str, Draft] = {}
    for watch in watches:
        name = watch.table.name
        if name is None and "name" not in watch.table.said:
            findings.mistake("missing-key", f'{kind} has {len(watches)} watches, so each needs the key "name"', watch.table.site)
        elif name is not None and name.text in named:
            first = named[name.text].table.site
            findings.mistake("conflict", f'another watch of {kind} has the name "{name.text}" ({first}): choose another', name.site)
        elif name is not None:
            named[name.text] = watch


def _check_hidden(watch: Draft, earlier: list[Draft], findings: Findings) -> None:
    for other in earlier:
        if not (_is_read(other) and _is_read(watch)):
            continue  # what it matches is a mistake of its own
        if _demands(other.table.selector) <= _demands(watch.table.selector) and _covers(other, watch):
            message = f"this watch never matches: the one at {other.table.site} takes all its CRs; put the narrower of the two first"
            findings.mistake("hidden-watch", message, watch.table.site)
            return


def _is_read(watch: Draft) -> bool:
    """Whether what it matches could be read, all of it."""
    table = watch.table
    if "selector" in table.said:
        selector = table.selector
        if selector is None or not all(one.label and one.operator for one in selector.match_expressions):
            return False
    return "namespaces" not in table.said or bool(table.namespaces)


def _covers(other: Draft, watch: Draft) -> bool:
    wide = {word.text for word in other.table.namespaces or ()}
    narrow = {word.text for word in watch.table.namespaces or ()}
    return not wide or bool(narrow and narrow <= wide)


def _demands(selector: FullSelectorTable | None) -> frozenset[Demand]:
    """What a selector asks for. One that asks for less matches more."""
    if selector is None:
        return frozenset()
    labels = {(label.name, "In", frozenset({str(label.value.node.value)})) for label in selector.match_labels if label.value}
    others = {
        (requirement.label.text, requirement.operator, frozenset(str(value.node.value) for value in requirement.values))
        for requirement in selector.match_expressions
        if requirement.label and requirement.operator
    }
    return frozenset(labels | others)


def check_watch(draft: Draft, findings: Findings) -> None:
    """What one watch may not say at once."""
    table = draft.table
    if table.selector is not None:
        for value in selector_values(table.selector):
            if value.compiled.constant is None:
                message = "a watch's selector is plain text, without templates: it says which CRs there are to read"
                findings.mistake("wrong-value", message, value.node.site)
    writes = [name for name in ("status", "conditions") if name in table.said]
    if is_builtin(draft):
        for name in [*writes, *(["manageStatus"] if "manageStatus" in table.said and table.manage_status else [])]:
            findings.mistake(
                "conflict", f'{draft.kind.kind} is a built-in kind, whose status ruleop never writes: remove "{name}"', table.said[name]
            )
    elif not table.manage_status:
        for name in writes:
            findings.warning("conflict", f'"{name}" is never written, because of `manageStatus: false`', table.said[name])
    if table.status is not None and isinstance(table.status.node.value, dict):
        for name, instead in (("conditions", 'say it in "conditions" of the watch'), ("observedGeneration", "remove it")):
            if name in table.status.node.key_sites:
                findings.mistake("taken-name", f"status.{name} is ruleop's own: {instead}", table.status.node.key_sites[name])


def is_builtin(draft: Draft) -> bool:
    return builtin_resource(draft.kind.versionless) is not None
