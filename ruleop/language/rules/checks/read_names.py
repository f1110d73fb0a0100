"""Checks the names that a watch defines, the names that its expressions and templates read, and the order that follows.

All names that a template can read share one namespace: the parts of the CR, ids, lets, the name of an item, Jinja's
keywords. A name with two meanings would silently have one of them, so duplicate definitions are errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.kubernetes.crd import definition_of, schema_at
from ruleop.language.rules.findings import Findings, format_list
from ruleop.language.rules.order import Link, deletion_graph, id_below, names_read_by_let, order, reads
from ruleop.language.rules.scopes import ALWAYS, RESERVED, RulePart
from ruleop.language.templates import FUNCTION_NAMES, JINJA_NAMES, SCOPE_FUNCTIONS, Reference
from ruleop.language.templates.compile import instead_of
from ruleop.nearest import did_you_mean_quoted
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ruleop.errors import Site
    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.order import ChildReads

OWN_CONDITIONS = ("Ready", "Reconciling", "Stalled", "Paused")
_MOST_LISTED = 6  # ids in a message
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALONE = "one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one"
_BOOLEANS = {
    "no": "false",
    "off": "false",
    "n": "false",
    "false": "false",
    "yes": "true",
    "on": "true",
    "y": "true",
    "true": "true",
}
"""Words that other readers of YAML take for a boolean, in any case."""


def check_names(
    draft: Draft, parts: Iterable[RulePart], crds: Iterable[CustomResourceDefinition], findings: Findings
) -> None:
    parts = list(parts)
    _check_defined_names(draft, findings)
    _check_read_names(draft, parts, crds, findings)
    _check_lets(draft, parts, findings)
    _check_dependencies(draft, findings)
    read = reads(draft, parts)
    _check_cycles(draft.children, read, findings)
    _check_cycles(draft.final, read, findings)
    _check_deletion_order(draft, read, findings)
    _check_item_ends(draft, findings)
    _check_run_cycles(draft, findings)


def _check_defined_names(draft: Draft, findings: Findings) -> None:
    """Checks ids, lets and item names for reserved names and duplicates."""
    defined: dict[str, tuple[str, Site]] = {}
    named = [("a let", entry.name, entry.site) for entry in draft.let]
    named += [("an observed resource", entry.name, entry.site) for entry in draft.observed.values()]
    named += [("a finalize child" if child.final else "a child", child.id, child.site) for child in draft.everyone]
    for what, name, site in named:
        if name in defined:
            other, first = defined[name]
            message = (
                f'{what} cannot be named "{name}": {first} has {other} of that name; '
                "all ids and lets share one namespace"
            )
            findings.mistake("taken-name", message, site)
        elif not _is_reserved(what, name, site, findings):
            defined[name] = (what, site)
    items = [(loop.name, loop.site) for child in draft.everyone for loop in child.loops]
    tables = [entry.value for entry in draft.observed.values() if entry.value is not None]
    items += [(table.item_name.text, table.item_name.site) for table in tables if table.item_name is not None]
    for name, site in items:
        if name == "item" or _is_reserved("an item", name, site, findings):
            continue
        if name in defined:
            other, first = defined[name]
            findings.mistake("taken-name", f'an item cannot be named "{name}": {first} has {other} of that name', site)
    _check_conditions(draft, findings)


def _is_reserved(what: str, name: str, site: Site, findings: Findings) -> bool:
    owner = (
        "reserved by ruleop"
        if name in RESERVED or name in SCOPE_FUNCTIONS
        else "reserved by Jinja"
        if name in JINJA_NAMES
        else ""
    )
    if owner:
        findings.mistake("taken-name", f'{what} cannot be named "{name}", which is {owner}: choose another name', site)
    return bool(owner)


def _check_conditions(draft: Draft, findings: Findings) -> None:
    seen: set[str] = set()
    for condition in draft.table.conditions:
        if (word := condition.type) is None:
            continue
        if word.text in OWN_CONDITIONS or (word.text == "Rollout" and draft.table.rollout is not None):
            message = f'the condition "{word.text}" is set by ruleop: choose another type'
            findings.mistake("taken-name", message, word.site)
        elif word.text in seen:
            findings.mistake("taken-name", f'the condition "{word.text}" is a duplicate', word.site)
        seen.add(word.text)


def _check_read_names(
    draft: Draft, parts: Iterable[RulePart], crds: Iterable[CustomResourceDefinition], findings: Findings
) -> None:
    """Checks that every name that is read is visible in its place, and that templates set no name with a meaning."""
    fields = _fields_of_spec(draft, crds)
    for part in parts:
        known = part.view.names
        for name in sorted(part.compiled.names - known - JINJA_NAMES):
            _report_unknown(draft, part, name, fields, findings)
        for name, site in part.compiled.assigned:
            if name in ALWAYS or name in known:
                message = f'a template cannot set "{name}", which is already defined: choose another name'
                findings.mistake("taken-name", message, site, word=name)
        for reference in part.compiled.references:
            _check_reference(draft, part, reference, findings)


def _fields_of_spec(draft: Draft, crds: Iterable[CustomResourceDefinition]) -> dict[str, str]:
    """The fields of the CR's spec, also by the names that Ansible's operator gives them: `pull_policy`."""
    crd = definition_of(draft.kind, crds)
    version = crd.version(draft.kind.version) if crd is not None else None
    spec = schema_at(version.schema, ("spec",)) if version is not None else None
    fields = (spec or {}).get("properties") or {}
    return {_BETWEEN_WORDS.sub("_", field).lower(): field for field in fields} | {field: field for field in fields}


def _report_unknown(draft: Draft, part: RulePart, name: str, fields: Mapping[str, str], findings: Findings) -> None:
    read = [*part.compiled.references, *(Reference((called,), site) for called, site in part.compiled.calls)]
    site = next((reference.site for reference in read if reference.name == name), part.compiled.site)
    if reason := _why_not_visible(draft, part, name):
        findings.mistake("out-of-place", reason, site, word=name)
    elif any(called == name for called, _ in part.compiled.calls):
        instead = f": {hint}" if (hint := instead_of(name)) else did_you_mean_quoted(name, FUNCTION_NAMES)
        findings.mistake("unknown-name", f'unknown function "{name}"{instead}', site, word=name)
    else:
        hint = f"write {boolean}" if (boolean := _BOOLEANS.get(name.lower())) else instead_of(name)
        meant = f' (did you mean "spec.{fields[name]}"?)' if name in fields else ""
        if any(assigned == name for assigned, _ in part.compiled.assigned):
            meant = ": a file of `render()` sees no name that its caller has `set`; include it, or use `let`"
        instead = meant or did_you_mean_quoted(name, part.view.names) or (f": {hint}" if hint else "")
        message = f'"{name}" is not known in {part.view.title}{instead}'
        findings.mistake("unknown-name", message, site, word=name)


def _why_not_visible(draft: Draft, part: RulePart, name: str) -> str:
    """The reason that a name that is defined elsewhere is not visible here; "" if it is not defined anywhere."""
    title = part.view.title
    if name == "status":
        return f"{title} cannot read `status`, because it would change what it reads: read the children instead"
    if name == "this":
        return f"`this` is available only in `readyWhen` and `where`, not in {title}"
    if part.child is not None and part.loop and name in {each.name for each in part.child.table.for_each or ()}:
        return f"{title} cannot read `{name}` here: a list sees only the items of the loops before it"
    if part.child is not None and part.child.table.for_each_of is not None and name == "index":
        return f"{title} cannot read `index`: the item has no position when it has ended"
    if name in ("item", "index"):
        if part.view.items:
            return f"`{name}` is not available in {title}; here the item is named `{part.view.items[-1]}`"
        return f"`{name}` is available only with `forEach`, not in {title}"
    if name in (entry.name for entry in draft.let):
        return f"{title} cannot read `{name}`: a let sees only the names before it"
    if name in draft.observed:
        return f"{title} cannot read the observed `{name}`: observed objects must not depend on observed objects"
    if name in draft.children or name in draft.final or name in ("live", "ready"):
        return _why_no_children(part, name)
    return ""


def _why_no_children(part: RulePart, name: str) -> str:
    title = part.view.title
    if part.child is not None and part.view.children and part.child.final:
        what = "`ready.`" if name == "ready" else f"the finalize child `{name}`"
        return f"{title} cannot read {what}: {_ALONE}"
    if part.child is not None and part.view.children:
        return f"{title} cannot read the finalize child `{name}`, which exists only during deletion"
    hint = ""
    if part.key == "when":
        hint = ": use `waitFor`, or an {% if %} in the template over `live.`"
    elif part.key == "once" and name != "ready":
        hint = f": read the existing object with `live.{name}`"
    elif part.key == "readyWhen" and part.child is not None and name in (part.child.id, "live"):
        hint = ": write `this` for the child itself"
    what = f"`{name}.`" if name in ("live", "ready") else f"the child `{name}`"
    return f"{title} cannot read {what}, only the CR, vars, let and observed objects{hint}"


def _check_reference(draft: Draft, part: RulePart, reference: Reference, findings: Findings) -> None:
    head, *rest = (step for step in reference.path if step != "?")  # which marks that only presence or size is read
    step = rest[0] if rest else None
    if head == "cr" and step == "status" and not part.view.reads_status:
        message = _why_not_visible(draft, part, "status")
        findings.mistake("out-of-place", message, reference.site, word=head)
    elif head == "vars" and step is not None and step not in draft.vars:
        message = f'vars has no "{step}"{did_you_mean_quoted(step, draft.vars)}'
        findings.warning("unknown-name", message, reference.site, word=head)
    elif head in ("live", "ready") and head in part.view.names:
        ids = part.view.live if head == "live" else part.view.ready
        if step not in ids:
            message = (
                f"`{head}` needs an id in plain text, `{head}.{min(ids)}`, so that ruleop knows what the template reads"
            )
            if step is not None:
                message = f"`{head}.{step}`: {_why_no_id(draft, part, step, ids)}"
            findings.mistake("unknown-id", message, reference.site, word=head)


def _why_no_id(draft: Draft, part: RulePart, step: str, ids: frozenset[str]) -> str:
    """The reason that a name below `live` or `ready` is not one of these ids."""
    if step in draft.final:
        is_final = part.child is not None and part.child.final
        return _ALONE if is_final else "a finalize child exists only during deletion"
    if part.key == "once" and part.child is not None and step == part.child.id:
        return "each run would change its own request id, and run again"
    if step in draft.children:
        return "children are not rendered during deletion, so their readiness is unknown"
    return f'no child has the id "{step}"{_suggested_id(step, ids)}'


def _check_dependencies(draft: Draft, findings: Findings) -> None:
    """Checks the ids in `dependsOn`."""
    for child in draft.everyone:
        peers, others = draft.peers(child), draft.children if child.final else draft.final
        for word in child.table.depends_on if child.table.for_each_of is None else ():
            if word.text in peers:
                continue
            named, why = f'"{word.text}"', ""
            if word.text in others:
                why = "children are not rendered during deletion" if child.final else "it exists only during deletion"
            elif word.text in draft.final:
                why = _ALONE
            elif word.text in draft.observed:
                named, why = f'the observed "{word.text}"', "use `waitFor` instead"
            if why:
                findings.mistake("out-of-place", f'"{child.id}" cannot depend on {named}: {why}', word.site)
            else:
                findings.mistake("unknown-id", unknown_child(word.text, peers), word.site)


def unknown_child(word: str, children: Mapping[str, ChildDraft]) -> str:
    """The message about an id that no child has."""
    return f'no child has the id "{word}"{_child_of_kind(word, children) or _suggested_id(word, children)}'


def _child_of_kind(word: str, children: Mapping[str, ChildDraft]) -> str:
    """The end of a message about a word that is the kind of one child."""
    found = [(id_, kind.kind) for id_, child in children.items() for kind in child.kinds]
    found = [(id_, kind) for id_, kind in found if kind.lower() == word.lower()]
    return f' (did you mean "{found[0][0]}", the {found[0][1]}?)' if len(found) == 1 else ""


def _suggested_id(word: str, ids: Collection[str]) -> str:
    """The end of a message about an unknown id: the similar id, or all if there are few."""
    listed = f" (the ids are {format_list(sorted(ids))})" if 1 < len(ids) <= _MOST_LISTED else ""
    return did_you_mean_quoted(word, ids) or listed


def _check_lets(draft: Draft, parts: Iterable[RulePart], findings: Findings) -> None:
    """Checks that `observe` does not read an observed object through a let, nor `status` the status."""
    for part in parts:
        if not part.observed and part.key != "status":
            continue
        for reference in part.compiled.references:
            name = reference.path[0]
            if name not in part.view.lets or name is None:
                continue
            let_names = names_read_by_let(draft, name)
            if part.observed and (observed := sorted(let_names & set(draft.observed))):
                message = f"`observe` cannot read the let `{name}`, which reads the observed `{observed[0]}`"
                findings.mistake("out-of-place", message, reference.site, word=name)
            if part.key == "status" and "status" in let_names:
                message = (
                    f"`status` cannot read the let `{name}`, which reads `status`: "
                    "the status would change what it reads"
                )
                findings.mistake("out-of-place", message, reference.site, word=name)


# -- order -------------------------------------------------------------------------------------------------------------
#
# Children, deletions and runs need one.


def _check_cycles(children: Mapping[str, ChildDraft], read: Mapping[str, ChildReads], findings: Findings) -> None:
    """Reports each child on a cycle once, in the shortest cycle through the first of them in the file."""
    unordered = set(children) - set(order(children, read))
    for name in children:
        if name not in unordered:
            continue
        cycle = _shortest_cycle(name, read)
        if not cycle:
            continue  # it comes after a cycle
        first = cycle[0]
        findings.mistake("cycle", _cycle_message(name, cycle, findings), first.site, word=first.word)
        unordered -= {link.target for link in cycle}


def _shortest_cycle(start: str, read: Mapping[str, ChildReads]) -> list[Link]:
    """The shortest path from a child back to itself, by breadth-first search."""
    paths: dict[str, list[Link]] = {start: []}
    frontier = [start]
    while frontier:
        next_frontier = []
        for name in frontier:
            for link in read[name].links:
                if link.target == start:
                    return [*paths[name], link]
                if link.target not in paths and link.target in read:
                    paths[link.target] = [*paths[name], link]
                    next_frontier.append(link.target)
        frontier = next_frontier
    return []


def _cycle_message(start: str, cycle: list[Link], findings: Findings) -> str:
    if len(cycle) == 1 and cycle[0].word:
        return f'"{start}" reads itself: read the existing object with `live.{start}`'
    if len(cycle) == 1:
        return f'"{start}" depends on itself: remove it from its `dependsOn`'
    source = start
    links = []
    for link in cycle:
        site = findings.with_column(link.site, link.word)
        links.append(f'"{source}" {"reads" if link.word else "depends on"} "{link.target}" ({site})')
        source = link.target
    return f"a cycle: {', '.join(links)}; break it by reading the existing object with `live.<id>`, which does not wait"


def _check_deletion_order(draft: Draft, read: Mapping[str, ChildReads], findings: Findings) -> None:
    """Checks the ids in `deleteAfter`, and reports a child that would wait for itself."""
    for child in draft.final.values():
        if child.table.delete_after:
            message = f'"{child.id}" is removed when its work is done: `deleteAfter` is for `children`'
            findings.mistake("out-of-place", message, child.table.delete_after[0].site)
    graph = deletion_graph(draft, read)
    for child in draft.children.values():
        for word in child.table.delete_after:
            if word.text not in draft.children:
                findings.mistake("unknown-id", unknown_child(word.text, draft.children), word.site)
            elif child.id in reached([word.text], lambda name: graph.get(name, ())):
                first = "itself" if word.text == child.id else f'"{word.text}", which is deleted after "{child.id}"'
                findings.mistake("cycle", f'"{child.id}" cannot be deleted after {first}', word.site)


def _check_run_cycles(draft: Draft, findings: Findings) -> None:
    """Reports children whose request ids read each other's runs: each run would begin another one."""
    runs = {child.id: child.table.once for child in draft.children.values() if child.table.once is not None}
    read = {
        id_: {name for reference in once.compiled.references for name in id_below(reference)} & runs.keys()
        for id_, once in runs.items()
    }
    for id_, once in runs.items():
        if others := sorted(name for name in read[id_] - {id_} if id_ in reached([name], read.__getitem__)):
            message = f'`live.{others[0]}`: the runs of "{id_}" and "{others[0]}" would begin each other without end'
            findings.mistake("cycle", message, once.node.site)


def _check_item_ends(draft: Draft, findings: Findings) -> None:
    """Checks the ids in `forEachOf`."""
    for child in draft.everyone:
        if (word := child.table.for_each_of) is None:
            continue
        named = draft.children.get(word.text)
        if not child.final:
            message = f'"{child.id}" is made while its item exists: `forEachOf` is for `finalize`'
            findings.mistake("out-of-place", message, child.table.key_sites["forEachOf"])
        elif word.text in draft.final:
            message = f'"{word.text}" is a finalize child: `forEachOf` names a child with `forEach`'
            findings.mistake("out-of-place", message, word.site)
        elif named is None:
            findings.mistake("unknown-id", unknown_child(word.text, draft.children), word.site)
        elif not named.table.for_each or named.table.patch is not None:
            message = f'"{word.text}" makes no object for each item of a `forEach`, so it has no items that end'
            findings.mistake("conflict", message, word.site)
        elif named.run is not None:
            message = f'"{word.text}" has `once`: its objects end with their runs, and stand for no item'
            findings.mistake("conflict", message, word.site)
        elif named.table.template is not None and named.table.template.compiled.many:
            message = (
                f'"{word.text}" makes several objects for each item, and one of them has to stand for the item: '
                "make several children of its template"
            )
            findings.mistake("conflict", message, word.site)
