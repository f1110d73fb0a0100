"""Checks that no data of a Secret is copied to where everyone can read it: the status, a condition or a message.

A reference is judged by its path: the metadata and type of a Secret may be copied; its data and the whole object may
not, except where only its presence or the number of Secrets is read. A let that contains Secret data counts as a
Secret. In doubt, a reference is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jinja2 import Environment, TemplateSyntaxError, nodes

from ruleop.errors import Site
from ruleop.kinds import GroupKind
from ruleop.templating import SAME_ITEMS, Reference, TextTemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ruleop.rules.checks.scopes import Part
    from ruleop.rules.findings import Findings
    from ruleop.rules.language.parsed import Draft

SECRET = GroupKind("", "Secret")
_PUBLIC_FIELDS = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
_NAMES = frozenset(
    {"name", "namespace", "uid"}
)  # of the metadata; kubectl stores a copy of the object in an annotation
_OBJECT_KEYS = frozenset({"template", "object", "forEach", "namespace"})  # values that become a part of an object
_PARSER = Environment(autoescape=False)  # noqa: S701 - only used for parsing


@dataclass(frozen=True, slots=True)
class _Secrets:
    many: Mapping[str, bool]  # id -> whether it is a list
    lets: frozenset[str]  # lets that contain Secret data


def check_secrecy(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    parts = list(parts)
    secrets = _Secrets(_secret_ids(draft), frozenset())
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
    parts = [part for part in parts if part.let or (part.child is not None and part.key in _OBJECT_KEYS)]
    secrets, before = _Secrets(_secret_ids(draft), frozenset()), None
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
    return frozenset(child.id for child in draft.everyone if child.id in secrets.many)


def _is_public(path: Sequence[str | None]) -> bool:
    return path[0] in _PUBLIC_FIELDS


def _is_name(path: Sequence[str | None]) -> bool:
    return path[0] in _PUBLIC_FIELDS - {"metadata"} or (path[0] == "metadata" and len(path) > 1 and path[1] in _NAMES)


def _secret_ids(draft: Draft) -> dict[str, bool]:
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
