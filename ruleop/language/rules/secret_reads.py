"""The parts of Secrets that templates and expressions read, and a report of those that everyone could read then.

No data of a Secret may be copied to where everyone can read it: the status, a condition, a message, the name or the
namespace of a child. A reference is judged by its path: the metadata and type of a Secret may be copied; its data, its
annotations as a whole and the whole object may not, except where only its presence or the number of Secrets is read. A
let that contains Secret data counts as a Secret. In doubt, a reference is an error.

Children may contain Secret data elsewhere: `secrecy_of` finds where, for messages and plans.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.language.rules.scopes import loops_of, metadata_slots, written
from ruleop.language.secrets.secrecy import Secrecy, words_of
from ruleop.language.secrets.secret_values import (
    CHECKSUMS,
    SECRET,
    is_name_field,
    is_public_field,
    is_secret_field,
)
from ruleop.language.templates import SECRET_FUNCTIONS, Reference, TextTemplate, syntax
from ruleop.language.templates.compile import origins_of, slots_from
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import SlotPlace, YamlNode
    from ruleop.language.templates.compile import Library

_OBJECT_KEYS = frozenset({"template", "object", "forEach", "namespace"})  # values that become a part of an object
BODY_KEYS = _OBJECT_KEYS - {"forEach"}
_NO_SLOTS: frozenset[SlotPlace] = frozenset()


@dataclass(frozen=True, slots=True)
class Secrets:
    many: Mapping[str, bool]  # id -> whether it is a list
    lets: frozenset[str]  # lets that contain Secret data


# -- children ----------------------------------------------------------------------------------------------------------


def secrecy_of(
    draft: Draft, parts: Iterable[RulePart], library: Library, *, generated: bool = True
) -> Mapping[str, Secrecy]:
    """The secrecy of each child. It holds data of Secrets if it is one, generates some, or reads more than a name of a
    Secret or of another such child. `generated`: what it generates counts as read."""
    parts = list(parts)
    secrets, own = holders_of(draft, parts), secret_ids(draft)
    found = {}
    for child in draft.everyone:
        its_parts = [part for part in parts if part.child is child]
        slots = _NO_SLOTS.union(
            *(
                slots_of(part, parts, library, secrets, own, generated=generated)
                for part in its_parts
                if part.key in BODY_KEYS
            )
        )
        read = {
            part.key
            for part in its_parts
            if part.key not in BODY_KEYS and any(exposes(reference, secrets) for reference in part.compiled.references)
        }
        reads = bool(slots or read)
        words = frozenset(word for part in its_parts for word in _words(part, library)) if reads else frozenset()
        holds = child.id in secrets.many or bool(slots)
        found[child.id] = Secrecy(holds=holds, reads=reads, loops="forEach" in read, slots=slots, words=words)
    return found


def holders_of(draft: Draft, parts: Iterable[RulePart]) -> Secrets:
    parts = [part for part in parts if part.let or (part.child is not None and part.key in _OBJECT_KEYS)]
    secrets, before = Secrets(secret_ids(draft), frozenset()), None
    while secrets != before:
        before = secrets
        for part in parts:
            if any(exposes(reference, secrets, allowed=is_name_field) for reference in part.compiled.references):
                if part.child is None:
                    secrets = replace(secrets, lets=secrets.lets | {part.let})
                else:
                    secrets = replace(secrets, many={**secrets.many, part.child.id: part.child.many})
    return secrets


def _words(part: RulePart, library: Library) -> Iterator[str]:
    if isinstance(part.compiled, TextTemplate):
        texts = [library.texts[name] for name in part.compiled.files]
    else:
        texts = [*_texts(part.node)]
    for text in texts:
        yield from words_of(text)


def _texts(node: YamlNode) -> Iterator[str]:
    value = node.value
    if isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)
    else:
        yield str(value)


def slots_of(
    part: RulePart,
    parts: Iterable[RulePart],
    library: Library,
    secrets: Secrets,
    own: Mapping[str, bool],
    *,
    generated: bool,
) -> frozenset[SlotPlace]:
    ids = {"live", *secrets.many, *secrets.lets}
    names = part.compiled.names & {*ids, *part.view.items}
    if not names and not any(name in SECRET_FUNCTIONS for name, _ in part.compiled.calls):
        return _NO_SLOTS
    items = [tree for loop in loops_of(part, parts, library) for tree in library.with_run_files(loop)]
    return _NO_SLOTS.union(
        *(
            slots_from(
                origins_of(
                    [*trees, *items],
                    {name: [(name,)] for name in ids},
                    clean=CHECKSUMS,
                    functions=SECRET_FUNCTIONS if generated else frozenset(),
                    by_name=False,
                ),
                lambda path: _is_data(path, secrets, own),
            )
            for trees in _trees(part, library)
        )
    )


def _trees(part: RulePart, library: Library) -> Iterator[list[syntax.Template]]:
    """The trees of each text of a part, with those of the files that it runs."""
    if isinstance(part.compiled, TextTemplate):
        yield library.written_trees([part.compiled.name])
        return
    for tree in written(part, library):
        yield library.with_run_files(tree)


def _is_data(path: Sequence[str | None], secrets: Secrets, own: Mapping[str, bool]) -> bool:
    """Whether a field holds data of a Secret: of a Secret itself, or of a child that contains such data."""
    if path[0] == "live":
        path = path[1:]
    if not path or path[0] is None or path[0] in secrets.lets:
        return True
    if path[0] not in secrets.many:
        return False
    inner = path[2:] if secrets.many[path[0]] else path[1:]
    if not inner:
        return True
    if path[0] not in own and inner[0] == "status":
        return False
    return is_secret_field(inner)


# -- references --------------------------------------------------------------------------------------------------------


def secret_ids(draft: Draft) -> dict[str, bool]:
    """The ids of children and observed resources that are Secrets, and whether each is a list."""
    many = {child.id: child.many for child in draft.everyone if any(kind.versionless == SECRET for kind in child.kinds)}
    for entry in draft.observed.values():
        table = entry.value
        if table is not None and table.object_kind.versionless == SECRET:
            many[entry.name] = table.many
    return many


def exposes(
    reference: Reference, secrets: Secrets, *, allowed: Callable[[Sequence[str | None]], bool] = is_public_field
) -> bool:
    """Whether a reference reads more of a Secret than `allowed` allows."""
    path = reference.path[1:] if reference.path[0] == "live" else reference.path
    name = path[0] if path else None
    if path[-1:] == ("?",):
        return False  # only the presence or the number
    if name in secrets.lets:
        return True
    if name is None or name not in secrets.many:
        return False
    inner = path[1:]
    if not inner:
        return not reference.passes
    if secrets.many[name]:
        inner = inner[1:]
    return not inner or not allowed(inner)


# -- reports -----------------------------------------------------------------------------------------------------------

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
            findings.mistake("secret-data", message, reference.site, word=reference.name)
    secrecy = secrecy_of(draft, parts, library, generated=False)
    for part in parts:
        if part.child is None or part.key not in BODY_KEYS | _RECORDED_KEYS:
            continue
        slots = secrecy[part.child.id].slots
        if part.key in _RECORDED_KEYS:
            slots = slots_of(part, parts, library, holders, secret_ids(draft), generated=False)
        for field, place in _public_slots(part, part.child, slots, library):
            message = (
                f"`{place.expression}` would expose the data of a Secret in {field}, which everyone can read: "
                "use its metadata, or a checksum (`sha256`)"
            )
            findings.mistake("secret-data", message, place.site, word=place.expression)


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
