"""Checks that no data of a Secret is copied to where everyone can read it: the status, a condition or a message.

A reference is judged by its path: the metadata and type of a Secret may be copied; its data, its annotations as a whole
and the whole object may not, except where only its presence or the number of Secrets is read. A let that contains
Secret data counts as a Secret. In doubt, a reference is an error.

Names and namespaces of children are public too. Children may contain Secret data elsewhere: `secret_reads` finds
where, for messages and plans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jinja2 import Environment, TemplateSyntaxError, nodes

from ruleop.core.errors import Site
from ruleop.core.kinds import GroupKind
from ruleop.core.rules.checks.random_functions import metadata_lines
from ruleop.core.rules.language.model import SECRET
from ruleop.core.templating import SAME_ITEMS, SECRET_FUNCTIONS, Expression, Reference, TextTemplate, secret_slots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.core.rules.checks.scopes import Part
    from ruleop.core.rules.findings import Findings
    from ruleop.core.rules.language.parsed import ChildDraft, Draft
    from ruleop.core.templating import SlotPlace, YamlNode

_PUBLIC_FIELDS = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
_COPY = "kubectl.kubernetes.io/last-applied-configuration"
_NAMES = frozenset(
    {"name", "namespace", "uid"}
)  # of the metadata; kubectl stores a copy of the object in an annotation
_OBJECT_KEYS = frozenset({"template", "object", "forEach", "namespace"})  # values that become a part of an object
_BODY_KEYS = frozenset({"template", "object", "namespace"})
_NO_SLOTS: frozenset[SlotPlace] = frozenset()
_PARSER = Environment(autoescape=False)  # noqa: S701 - only used for parsing


@dataclass(frozen=True, slots=True)
class _Secrets:
    many: Mapping[str, bool]  # id -> whether it is a list
    lets: frozenset[str]  # lets that contain Secret data


_WORD = re.compile(r"[^\s.,:=|'\"\[\]{}()]+")


@dataclass(frozen=True, slots=True)
class SecretReads:
    """The parts of Secrets that a child reads: the slots of its body whose values come from one, and all words of the
    body, which are public."""

    slots: frozenset[SlotPlace] = frozenset()
    words: frozenset[str] = frozenset()


def check_secrecy(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    parts = list(parts)
    secrets = _Secrets(secret_ids(draft), frozenset())
    for part in parts:
        if part.let and any(_exposes(part, reference, secrets, templates) for reference in part.compiled.references):
            secrets = _Secrets(secrets.many, secrets.lets | {part.let})
    for part in parts:
        for reference in part.compiled.references if part.public else ():
            if _exposes(part, reference, secrets, templates):
                path = ".".join(step or "*" for step in reference.path)
                message = (
                    f"`{path}` would expose the data of a Secret in {part.view.title}: "
                    "use its metadata, or test whether it exists"
                )
                findings.mistake("secret-data", message, reference.site, word=reference.name, start=part.site)


def secret_holders(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str]) -> frozenset[str]:
    """The children that may contain Secret data: Secrets, and children that read more than a name of a Secret or of
    another such child. Error messages of the API server about them may quote it."""
    secrets = _holders(draft, parts, templates)
    return frozenset(child.id for child in draft.everyone if child.id in secrets.many)


def _holders(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str]) -> _Secrets:
    parts = [part for part in parts if part.let or (part.child is not None and part.key in _OBJECT_KEYS)]
    secrets, before = _Secrets(secret_ids(draft), frozenset()), None
    while secrets != before:
        before = secrets
        for part in parts:
            if any(
                _exposes(part, reference, secrets, templates, allowed=_is_name)
                for reference in part.compiled.references
            ):
                if part.child is None:
                    secrets = replace(secrets, lets=secrets.lets | {part.let})
                else:
                    secrets = replace(secrets, many={**secrets.many, part.child.id: part.child.many})
    return secrets


# -- slots of children -------------------------------------------------------------------------------------------------


def secret_reads(
    draft: Draft, parts: Iterable[Part], templates: Mapping[str, str], *, generated: bool = True
) -> Mapping[str, SecretReads]:
    """The children that read data of Secrets. `generated`: or generate some."""
    parts = list(parts)
    secrets, own = _holders(draft, parts, templates), secret_ids(draft)
    of_child: dict[str, list[Part]] = {}
    for part in parts:
        if part.child is not None:
            of_child.setdefault(part.child.id, []).append(part)
    found = {}
    for id_, its_parts in of_child.items():
        loop = next((part for part in its_parts if part.key == "forEach"), None)
        slots = [
            _slots_of(part, loop, templates, secrets, own, generated=generated)
            for part in its_parts
            if part.key in _BODY_KEYS
        ]
        reads = any(
            _exposes(part, reference, secrets, templates)
            for part in its_parts
            if part.key not in _BODY_KEYS
            for reference in part.compiled.references
        )
        if reads or any(slots):
            words = frozenset(word for part in its_parts for word in _words(part, templates))
            found[id_] = SecretReads(_NO_SLOTS.union(*slots), words)
    return found


def _words(part: Part, templates: Mapping[str, str]) -> Iterator[str]:
    if isinstance(part.compiled, TextTemplate):
        for name in part.compiled.files:
            yield from _WORD.findall(templates[name])
        return
    for text in _texts(part.node):
        yield from _WORD.findall(text)


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


def _slots_of(
    part: Part,
    loop: Part | None,
    templates: Mapping[str, str],
    secrets: _Secrets,
    own: Mapping[str, bool],
    *,
    generated: bool,
) -> frozenset[SlotPlace]:
    reads_any = part.compiled.names & {"live", *secrets.many, *secrets.lets, *([] if loop is None else [_item(part)])}
    if not reads_any and not any(name in SECRET_FUNCTIONS for name, _ in part.compiled.calls):
        return frozenset()
    names = {name: [(name,)] for name in ("live", *secrets.many, *secrets.lets)}
    sources: list[list[tuple[str, str | Site]]]
    if isinstance(part.compiled, TextTemplate):
        sources = [[(templates[part.compiled.name], f"templates/{part.compiled.name}")]]
    else:
        sources = [[(text, site)] for text, site in part.node.texts() if "{{" in text or "{%" in text]
    if loop is not None and isinstance(loop.compiled, Expression):
        each = (f"{{% for {_item(part)} in ({loop.compiled.source}) %}}{{% endfor %}}", loop.site)
        sources = [[*texts, each] for texts in sources]
    environment = part.compiled.renderer.environment
    return _NO_SLOTS.union(
        *(
            secret_slots(
                environment,
                texts,
                templates,
                names,
                lambda path: _is_data(path, secrets, own),
                generated=generated,
            )
            for texts in sources
        )
    )


def _item(part: Part) -> str:
    return part.child.item_name if part.child is not None else ""


def _is_data(path: Sequence[str | None], secrets: _Secrets, own: Mapping[str, bool]) -> bool:
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


def is_secret_field(path: Sequence[str | None]) -> bool:
    """Whether a field of a Secret needs protection: its data, but not the keys in a loop over it."""
    return not _is_public(path) and not (path[0] in ("data", "stringData") and path[1:] == (None, "key"))


def check_names(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    """Reports names and namespaces of children that contain Secret data. In the text of a template this is a guess by
    its lines."""
    parts = list(parts)
    reads = secret_reads(draft, parts, templates, generated=False)
    for part in parts:
        if part.child is None or part.child.id not in reads or part.key not in _BODY_KEYS:
            continue
        for field, place in _public_slots(part, part.child, reads[part.child.id].slots, templates):
            message = (
                f"`{place.expression}` would expose the data of a Secret in {field}, which everyone can read: "
                "use its metadata, or a checksum (`sha256`)"
            )
            findings.mistake("secret-data", message, place.site, word=place.expression, start=part.site)


def _public_slots(
    part: Part, child: ChildDraft, slots: Iterable[SlotPlace], templates: Mapping[str, str]
) -> Iterator[tuple[str, SlotPlace]]:
    found = sorted(slots, key=lambda place: (place.site.line, place.site.column, place.expression))
    if part.key == "namespace":
        yield from ((f"the namespace of the child {child.id}", place) for place in found if place.site == part.site)
        return
    for field in ("name", "namespace"):
        lines = list(_lines_of(part, field, templates))
        for place in found:
            if any(place.site == site and place.expression in text for text, site in lines):
                yield f"metadata.{field}", place


def _lines_of(part: Part, field: str, templates: Mapping[str, str]) -> Iterator[tuple[str, Site]]:
    """The texts of metadata.name or metadata.namespace in a body."""
    if isinstance(part.compiled, TextTemplate):
        path = part.compiled.name
        for number, text in metadata_lines(templates[path], field):
            yield text, Site(f"templates/{path}", number)
        return
    node = _member(_member(part.node, "metadata"), field)
    if node is not None and isinstance(node.value, str):
        yield node.value, node.site


def _member(node: YamlNode | None, name: str) -> YamlNode | None:
    return node.value.get(name) if node is not None and isinstance(node.value, dict) else None


# -- paths -------------------------------------------------------------------------------------------------------------


def _is_public(path: Sequence[str | None]) -> bool:
    if path[0] != "metadata":
        return path[0] in _PUBLIC_FIELDS
    if len(path) < 2 or path[1] is None:
        return False  # with the annotations
    return path[1] != "annotations" or (len(path) > 2 and path[2] not in (None, _COPY))


def _is_name(path: Sequence[str | None]) -> bool:
    return path[0] in _PUBLIC_FIELDS - {"metadata"} or (path[0] == "metadata" and len(path) > 1 and path[1] in _NAMES)


def secret_ids(draft: Draft) -> dict[str, bool]:
    """The ids of children and observed resources that are Secrets, and whether each is a list."""
    many = {child.id: child.many for child in draft.everyone if any(kind.versionless == SECRET for kind in child.kinds)}
    for entry in draft.observed.values():
        table = entry.value
        if table is not None and table.kind is not None and GroupKind(table.group.text, table.kind.text) == SECRET:
            many[entry.name] = table.selector is not None
    return many


def _exposes(
    part: Part,
    reference: Reference,
    secrets: _Secrets,
    templates: Mapping[str, str],
    *,
    allowed: Callable[[Sequence[str | None]], bool] = _is_public,
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
        uses = [use for source in _sources(part, templates) for use in _uses_of_whole(source, name, reference.site)]
        return not uses or not all(map(_is_harmless, uses))
    if secrets.many[name]:
        inner = inner[1:]
    return not inner or not allowed(inner)


def _sources(part: Part, templates: Mapping[str, str]) -> Iterator[tuple[str, Site]]:
    """The texts of a part with their start."""
    if isinstance(part.compiled, TextTemplate):
        for name in part.compiled.files:
            yield templates[name], Site(f"templates/{name}", 1)
        return
    for text, site in part.node.texts():
        yield text if "{{" in text or "{%" in text else "{{ " + text + " }}", site


def _uses_of_whole(source: tuple[str, Site], name: str, where: Site) -> Iterator[list[nodes.Node]]:
    """The uses of the id without an attribute on the line of a reference: the node, and its ancestors from the inside
    out."""
    text, start = source
    if start.path != where.path:
        return
    try:
        tree = _PARSER.parse(text)
    except TemplateSyntaxError:
        return  # text that is not a template
    pending: list[list[nodes.Node]] = [[tree]]
    while pending:
        ancestry = pending.pop()
        line = (ancestry[0].lineno or 1) + start.line - 1
        if (
            _is_id(ancestry[0], name)
            and line == where.line
            and not isinstance(ancestry[1], (nodes.Getattr, nodes.Getitem))
        ):
            yield ancestry
        pending += [[node, *ancestry] for node in ancestry[0].iter_child_nodes()]


def _is_id(node: nodes.Node, name: str) -> bool:
    if isinstance(node, nodes.Getattr):
        return node.attr == name and isinstance(node.node, nodes.Name) and node.node.name == "live"
    return isinstance(node, nodes.Name) and node.name == name


def _is_harmless(use: list[nodes.Node]) -> bool:
    """Whether a list of Secrets is only iterated over. The use of an item is a reference of its own."""
    inner, *outer = use
    for node in outer:
        if isinstance(node, nodes.For):
            return node.iter is inner
        if not isinstance(node, nodes.Filter) or node.node is not inner:
            return False
        if node.name == "map":
            return any(pair.key == "attribute" for pair in node.kwargs)
        if node.name in ("length", "count"):
            return True
        if node.name not in SAME_ITEMS:
            break
        inner = node
    return False
