"""Checks each watch, and the watches of one kind against one another.

All watches of a kind, in any version, form one controller, in which the first watch that matches a CR is used. So they
need names, and a watch that can never be the first is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.kubernetes.crd import definition_of
from ruleop.kubernetes.permissions import literal_parts
from ruleop.language.rules.checks.read_names import unknown_child
from ruleop.language.rules.keys.parsed import chain_of
from ruleop.language.rules.scopes import selector_values
from ruleop.language.templates import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.watches_yaml import FullSelectorTable

LabelRequirement: TypeAlias = tuple[str, str, frozenset[str]]  # a label, an operator, values


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
        if name is None and "name" not in watch.table.key_sites:
            message = f'{kind} has {len(watches)} watches, so each needs the key "name"'
            findings.mistake("missing-key", message, watch.table.site)
        elif name is not None and name.text in named:
            first = named[name.text].table.site
            message = f'another watch of {kind} has the name "{name.text}" ({first}): choose another'
            findings.mistake("conflict", message, name.site)
        elif name is not None:
            named[name.text] = watch


def _check_hidden(watch: Draft, earlier: list[Draft], findings: Findings) -> None:
    for other in earlier:
        if not (_has_valid_match(other) and _has_valid_match(watch)):
            continue  # its invalid selector is reported elsewhere
        if _requirements(other.table.selector) <= _requirements(watch.table.selector) and _covers_namespaces(
            other, watch
        ):
            message = (
                f"this watch never matches: the one at {other.table.site} matches all its CRs; "
                "put the narrower one first"
            )
            findings.mistake("hidden-watch", message, watch.table.site)
            return


def _has_valid_match(watch: Draft) -> bool:
    """Whether the selector and namespaces of the watch are valid."""
    table = watch.table
    if "selector" in table.key_sites:
        selector = table.selector
        if selector is None or selector.given is not None:
            return False
        if not all(one.label and one.operator for one in selector.match_expressions):
            return False
    return "namespaces" not in table.key_sites or bool(table.namespaces)


def _covers_namespaces(other: Draft, watch: Draft) -> bool:
    wide = {word.text for word in other.table.namespaces or ()}
    narrow = {word.text for word in watch.table.namespaces or ()}
    return not wide or bool(narrow and narrow <= wide)


def _requirements(selector: FullSelectorTable | None) -> frozenset[LabelRequirement]:
    """The requirements of a selector. A selector with a subset of them matches more."""
    if selector is None:
        return frozenset()
    labels = {
        (label.name, "In", frozenset({str(label.value.node.value)})) for label in selector.match_labels if label.value
    }
    others = {
        (requirement.label.text, requirement.operator, frozenset(str(value.node.value) for value in requirement.values))
        for requirement in selector.match_expressions
        if requirement.label and requirement.operator
    }
    return frozenset(labels | others)


def check_watch(draft: Draft, crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    """Checks combinations of keys in one watch."""
    table = draft.table
    if table.selector is not None:
        for value in selector_values(table.selector):
            if isinstance(value.compiled, Tree) or value.compiled.constant is None:
                message = "a watch's selector must be plain text without templates: it selects the CRs to read"
                findings.mistake("wrong-value", message, value.node.site)
    writes = [name for name in ("status", "conditions") if name in table.key_sites]
    if "schema" in table.key_sites and draft.is_builtin:
        message = f'{draft.kind.kind} is a built-in kind, whose fields the API server declares: remove "schema"'
        findings.mistake("conflict", message, table.key_sites["schema"])
    elif "schema" in table.key_sites and not draft.kind.group:
        message = "a kind with a schema needs a group, such as example.com: the core group has built-in kinds only"
        findings.mistake("conflict", message, table.key_sites["schema"])
    if draft.is_builtin:
        for name in [*writes, *(["manageStatus"] if "manageStatus" in table.key_sites and table.manage_status else [])]:
            message = f'{draft.kind.kind} is a built-in kind, and ruleop never writes its status: remove "{name}"'
            findings.mistake("conflict", message, table.key_sites[name])
    elif not table.manage_status:
        for name in writes:
            message = f'"{name}" is never written, because of `manageStatus: false`'
            findings.warning("conflict", message, table.key_sites[name])
    _check_rollout(draft, findings)
    _check_account(draft, crds, findings)
    _check_once(draft, findings)
    _check_owners(draft, findings)
    if table.status is not None and isinstance(table.status.node.value, dict):
        taken = [("conditions", 'use "conditions" of the watch'), ("observedGeneration", "remove it")]
        if any(child.run is not None for child in draft.everyone):
            taken.append(("ruleop", "choose another name"))
        for name, instead in taken:
            if name in table.status.node.key_sites:
                message = f"status.{name} is set by ruleop: {instead}"
                findings.mistake("taken-name", message, table.status.node.key_sites[name])


def _check_account(draft: Draft, crds: Iterable[CustomResourceDefinition], findings: Findings) -> None:
    """Checks that a custom resource cannot choose an account of another namespace."""
    given = draft.table.write_as
    if given is None or given.compiled.constant is not None:
        return
    namespace, name = literal_parts(given.compiled.source)
    crd = definition_of(draft.kind, crds)
    own = "{{ metadata.namespace }}"
    if crd is not None and not crd.namespaced:
        message = f"{draft.kind.kind} is cluster-scoped, so it has no account of its own: write the account literally"
        findings.mistake("wrong-value", message, given.node.site)
    elif namespace and not name:
        message = f"a custom resource cannot choose an account of the namespace {namespace}: write the name literally"
        findings.mistake("wrong-value", f"{message}, or `{own}` for the namespace", given.node.site)
    elif not name:
        message = "the custom resource chooses by whose permissions its children are written, among all accounts of its"
        findings.warning("sensitive-field", f"{message} namespace: write the name literally", given.node.site)


def _check_rollout(draft: Draft, findings: Findings) -> None:
    if draft.table.rollout is not None and (draft.is_builtin or not draft.table.manage_status):
        message = '"rollout" reads from the status which CRs are ready, and ruleop does not write it: remove "rollout"'
        findings.mistake("conflict", message, draft.table.key_sites["rollout"])


def _check_owners(draft: Draft, findings: Findings) -> None:
    """Checks `ownedBy`: the child, and that the kinds of owners in between are known."""
    for entry in draft.observed.values():
        if (table := entry.value) is None or table.owned_by is None:
            continue
        site, id_ = table.owned_by.site, table.owned_by.text
        child = draft.children.get(id_)
        if child is None:
            findings.mistake("unknown-id", unknown_child(id_, draft.children), site)
        elif child.table.patch is not None:
            message = f'"{id_}" has `patch`: its objects belong to somebody else. Use `selector` or `name`'
            findings.mistake("out-of-place", message, site)
        elif child.kinds and table.kind is not None and all(chain_of(table, kind) is None for kind in child.kinds):
            owners = " or ".join(sorted(kind.kind for kind in child.kinds))
            message = (
                f"which owners are between {owners} and {table.kind.text} is not known: list their kinds in `through`, "
                "outermost first; `through: []` if there are none"
            )
            findings.mistake("missing-key", message, site)


def _check_once(draft: Draft, findings: Findings) -> None:
    for child in draft.everyone:
        if child.run is None:
            continue
        key, each = ("once", "request id") if child.table.once is not None else ("schedule", "time")
        if child.final:
            message = f'"{child.id}" runs once in any case: `{key}` is for `children`'
            findings.mistake("out-of-place", message, child.run.node.site)
        elif child.many and not (child.table.once is not None and _has_one_for_each_item(child)):
            message = f'"{child.id}" has several objects, and `{key}` makes one for each {each}'
            findings.mistake("out-of-place", message, child.run.node.site)
        if draft.is_builtin or not draft.table.manage_status:
            message = f"`{key}` records its results in the status, which ruleop does not write"
            findings.mistake("conflict", message, child.table.key_sites[key])


def _has_one_for_each_item(child: ChildDraft) -> bool:
    template = child.table.template
    return bool(child.table.for_each) and (template is None or not template.compiled.many)
