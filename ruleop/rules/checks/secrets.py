"""Secret data must not end where anybody can read it: in the status, a condition or a message.

A reference is judged by its path: a Secret's metadata and type may be shown; its data may not, nor may the whole of it, except where only
its presence or the number of Secrets is asked for. A let that holds Secret data is as secret as what it holds. Where a text does not tell,
the answer is no.
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
_SHOWN = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
_NAMES = frozenset({"name", "namespace", "uid"})  # of the metadata; kubectl keeps a copy of the whole object in an annotation
_FILLING = frozenset({"template", "object", "forEach", "namespace"})  # what becomes part of an object
_PARSER = Environment(autoescape=False)  # noqa: S701 - it only parses


@dataclass(frozen=True, slots=True)
class _Secrets:
    many: Mapping[str, bool]  # id -> whether it is a list
    lets: frozenset[str]  # those that hold Secret data


def check_secrecy(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str], findings: Findings) -> None:
    parts = list(parts)
    secrets = _Secrets(_ids(draft), frozenset())
    for part in parts:
        if part.let and any(_shows(part, reference, secrets, templates) for reference in part.compiled.references):
            secrets = _Secrets(secrets.many, secrets.lets | {part.let})
    for part in parts:
        for reference in part.compiled.references if part.public else ():
            if _shows(part, reference, secrets, templates):
                path = ".".join(step or "*" for step in reference.path)
                message = f"`{path}` would show the data of a Secret in {part.view.title}: show its metadata, or whether it is there"
                findings.mistake("secret-data", message, reference.site, word=reference.name, start=part.site)


def secret_holders(draft: Draft, parts: Iterable[Part], templates: Mapping[str, str]) -> frozenset[str]:
    """The children in which Secret data may stand: Secrets, and those into which more than a name is read from one, or from another
    such child. What the API server says of them may quote it."""
    parts = [part for part in parts if part.let or (part.child is not None and part.key in _FILLING)]
    secrets, before = _Secrets(_ids(draft), frozenset()), None
    while secrets != before:
        before = secrets
        for part in parts:
            if any(_shows(part, reference, secrets, templates, shown=_only_named) for reference in part.compiled.references):
                if part.child is None:
                    secrets = replace(secrets, lets=secrets.lets | {part.let})
                else:
                    secrets = replace(secrets, many={**secrets.many, part.child.id: part.child.many})
    return frozenset(child.id for child in draft.everyone if child.id in secrets.many)


def _may_be_shown(path: Sequence[str | None]) -> bool:
    return path[0] in _SHOWN


def _only_named(path: Sequence[str | None]) -> bool:
    return path[0] in _SHOWN - {"metadata"} or (path[0] == "metadata" and len(path) > 1 and path[1] in _NAMES)


def _ids(draft: Draft) -> dict[str, bool]:
    many = {child.id: child.many for child in draft.everyone if any(kind.versionless == SECRET for kind in child.kinds)}
    for entry in draft.observed.values():
        table = entry.value
        if table is not None and table.kind is not None and GroupKind(table.group.text, table.kind.text) == SECRET:
            many[entry.name] = table.selector is not None
    return many


def _shows(
    part: Part,
    reference: Reference,
    secrets: _Secrets,
    templates: Mapping[str, str],
    *,
    shown: Callable[[Sequence[str | None]], bool] = _may_be_shown,
) -> bool:
    """Whether it reads more of a Secret than what may be `shown`."""
    path = reference.path[1:] if reference.path[0] == "live" else reference.path
    name = path[0] if path else None
    if path[-1:] == ("?",):
        return False  # only whether it is there, or how many
    if name in secrets.lets:
        return True
    if name is None or name not in secrets.many:
        return False
    inner = path[1:]
    if not inner:
        uses = [use for source in _sources(part, templates) for use in _whole_uses(source, name, reference.site)]
        return not uses or not all(map(_is_harmless, uses))
    if secrets.many[name]:
        inner = inner[1:]
    return not inner or not shown(inner)


def _sources(part: Part, templates: Mapping[str, str]) -> Iterator[tuple[str, Site]]:
    """The texts of a part, and where each begins."""
    if isinstance(part.compiled, TextTemplate):
        for name in part.compiled.files:
            yield templates[name], Site(f"templates/{name}", 1)
        return
    for text, site in part.node.texts():
        yield text if "{{" in text or "{%" in text else "{{ " + text + " }}", site


def _whole_uses(source: tuple[str, Site], name: str, where: Site) -> Iterator[list[nodes.Node]]:
    """Where, on the line of a reference, the id stands without an attribute behind it: the node, and all around it from the inside out."""
    text, begin = source
    if begin.path != where.path:
        return
    try:
        tree = _PARSER.parse(text)
    except TemplateSyntaxError:
        return  # text that is no template
    pending: list[list[nodes.Node]] = [[tree]]
    while pending:
        around = pending.pop()
        line = (around[0].lineno or 1) + begin.line - 1
        if _is_id(around[0], name) and line == where.line and not isinstance(around[1], (nodes.Getattr, nodes.Getitem)):
            yield around
        pending += [[node, *around] for node in around[0].iter_child_nodes()]


def _is_id(node: nodes.Node, name: str) -> bool:
    if isinstance(node, nodes.Getattr):
        return node.attr == name and isinstance(node.node, nodes.Name) and node.node.name == "live"
    return isinstance(node, nodes.Name) and node.name == name


def _is_harmless(use: list[nodes.Node]) -> bool:
    """Whether a list of Secrets is only walked through: what is done with an item is a reference of its own."""
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
