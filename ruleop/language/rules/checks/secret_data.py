"""Reports data of Secrets where everyone can read it: in the status, a condition, a message, or the name of a child."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.language.rules.facts.possible_bodies import metadata_slots
from ruleop.language.rules.facts.secret_reads import (
    BODY_KEYS,
    Secrets,
    exposes,
    holders_of,
    loops_of,
    secrecy_of,
    secret_ids,
    slots_of,
)
from ruleop.language.secrets.secret_values import is_name_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.language.rules.facts.scopes import RulePart
    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.templates import SlotPlace
    from ruleop.language.templates.compile import Library

_RECORDED_KEYS = frozenset({"once", "schedule", "timeZone"})
"""Their values are in the status, in names and labels of the objects, and in messages."""


def check_secrets(draft: Draft, parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    """Reports data of Secrets in public places."""
    parts = list(parts)
    secrets = Secrets(secret_ids(draft), frozenset())
    for part in parts:
        if part.let and any(exposes(reference, secrets) for reference in part.compiled.references):
            secrets = replace(secrets, lets=secrets.lets | {part.let})
    holders = holders_of(draft, parts)
    ended = {each.table.for_each_of.text for each in draft.final.values() if each.table.for_each_of is not None}
    recorded = dict.fromkeys(ended, "forEachOf") | {each.id: "once" for each in draft.everyone if each.run is not None}
    for part in parts:
        gives_items = bool(part.loop) and part.child is not None and part.child.id in recorded
        gives_objects = bool(part.loop) and part.child is not None and part.child.table.objects is not None
        for reference in part.compiled.references if part.public or gives_items or gives_objects else ():
            path = ".".join(step or "*" for step in reference.path)
            if part.public and exposes(reference, secrets):
                message = (
                    f"`{path}` would expose the data of a Secret in {part.view.title}: "
                    "use its metadata, or test whether it exists"
                )
            elif gives_objects and exposes(reference, holders, allowed=is_name_field):
                message = (
                    f"`{path}` would give whole objects from data of a Secret, and everyone can read their names: "
                    "read the Secret in the body of a `template`"
                )
            elif gives_items and exposes(reference, holders, allowed=is_name_field):
                assert part.child is not None
                message = (
                    f"`{path}` would give the items data of a Secret, and they are recorded for "
                    f"`{recorded[part.child.id]}`: "
                    "loop over something else, and read the Secret in the body"
                )
            else:
                continue
            findings.mistake("secret-data", message, reference.site, word=reference.name, start=part.site)
    secrecy = secrecy_of(draft, parts, library, generated=False)
    for part in parts:
        if part.child is None or part.key not in BODY_KEYS | _RECORDED_KEYS:
            continue
        slots = secrecy[part.child.id].slots
        if part.key in _RECORDED_KEYS:
            slots = slots_of(part, loops_of(part, parts), library, holders, secret_ids(draft), generated=False)
        for field, place in _public_slots(part, part.child, slots, library):
            message = (
                f"`{place.expression}` would expose the data of a Secret in {field}, which everyone can read: "
                "use its metadata, or a checksum (`sha256`)"
            )
            findings.mistake("secret-data", message, place.site, word=place.expression, start=part.site)


def _public_slots(
    part: RulePart, child: ChildDraft, slots: Iterable[SlotPlace], library: Library
) -> Iterator[tuple[str, SlotPlace]]:
    found = sorted(slots, key=lambda place: (place.site.line, place.site.column, place.expression))
    if part.key in _RECORDED_KEYS:
        yield from ((f"`{part.key}` of the child {child.id}", place) for place in found)
        return
    if part.key == "namespace":
        yield from ((f"the namespace of the child {child.id}", place) for place in found if place.site == part.site)
        return
    for field in ("name", "namespace"):
        printed = {slot.place for slot in metadata_slots(part, field, library)} if found else set()
        yield from ((f"metadata.{field}", place) for place in found if place in printed)
