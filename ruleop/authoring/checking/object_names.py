"""Names and labels that the API server would reject, and names that two objects would share."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.authoring.checking.dataflow import NUMBERS
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.names import LABEL_KINDS, MAX_LABEL, is_label, is_label_value, is_object_name, longest_name
from ruleop.language.secrets.secret_values import CHECKSUMS
from ruleop.language.templates.bodies.body import Printed, as_written
from ruleop.language.templates.syntax import chain_of, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.checking.dataflow import IsSource, Path, Sources
    from ruleop.kubernetes.kinds import GroupKind, Kind
    from ruleop.language.rules import Findings
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates import syntax
    from ruleop.language.templates.bodies.body import BodyField, FieldPath

NAME: Final = ("metadata", "name")
NAMESPACE: Final = ("metadata", "namespace")
_CLEAN: Final = NUMBERS | CHECKSUMS | {"dns_label", "regex_replace"}
_FREE_GROUP: Final = "rbac.authorization.k8s.io"
_IDENTITIES: Final = frozenset({"metadata.name", "metadata.uid"})
_TOO_LONG: Final = (
    "the CRD allows a {rule.what} of {longest} characters here, and the API server at most {rule.most}: lower a "
    "maxLength in the CRD"
)
_MAKE_ONE: Final = "make one with `dns_label`, or give the field a pattern and a maxLength in the CRD"


def check_object_names(sources: Sources, findings: Findings) -> None:
    for part in sources.body_parts:
        found = [
            (field, rule, body.kind)
            for body in sources.bodies(part)
            for field in body.fields
            if not field.spread and (rule := _rule(field, body.kind)) is not None
        ]
        for field, rule, kind in found:
            if text := _literal_mistake(field, rule, kind):
                findings.mistake("invalid-name", text, field.site)
            elif (longest := _longest(field, sources)) > rule.most:
                findings.warning("invalid-name", _TOO_LONG.format(rule=rule, longest=longest), field.site)
        if any(piece.place for field, _, _ in found for piece in field.slots if not _is_of_metadata(piece.node)):
            _check_free_text([(field, rule.what) for field, rule, _ in found], part, sources, findings)
        _check_collisions(part, sources, findings)
    _check_children(sources, findings)


def _check_free_text(found: list[tuple[BodyField, str]], part: RulePart, sources: Sources, findings: Findings) -> None:
    free = sources.places(part, partial(_is_free_text, sources, sources.free(part)), clean=_CLEAN)
    for field, what in found:
        for slot in field.slots:
            if slot.place in free:
                message = f"`{slot.place.expression}` may be any text, and so no valid {what}: {_MAKE_ONE}"
                findings.warning("invalid-name", message, slot.place.site, word=slot.place.expression)


def _is_of_metadata(node: syntax.Node) -> bool:
    """Whether an expression is `metadata.name`, or another field of the CR's metadata."""
    path = chain_of(node)
    return path[:1] == ("metadata",) and len(path) == 2


# -- what the API server rejects ---------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    what: str
    allowed: str  # characters, as in a regular expression
    most: int


def _rule(field: BodyField, kind: Kind) -> _Rule | None:
    """The kind of name that a field holds, the characters that it may have, and how many."""
    if field.path == NAMESPACE:
        return _Rule("namespace", "-a-z0-9", MAX_LABEL)
    if field.path == NAME:
        if kind.group == _FREE_GROUP:
            return None
        allowed = "-a-z0-9" if kind.versionless in LABEL_KINDS else "-.a-z0-9"
        return _Rule("name", allowed, longest_name(kind.versionless))
    if is_label_field(field.path, kind):
        return _Rule("label value", "-._A-Za-z0-9", MAX_LABEL)
    return None


def is_label_field(path: FieldPath, kind: Kind) -> bool:
    """Whether a field is the value of a label. Custom kinds may have other things called labels."""
    if path[-3:-1] == ("metadata", "labels"):
        return len(path) == 3 or builtin_resource(kind) is not None
    if path[-2:-1] == ("matchLabels",):
        return builtin_resource(kind) is not None
    return path[:-1] == ("spec", "selector") and (kind.group, kind.kind) == ("", "Service")


def _literal_mistake(field: BodyField, rule: _Rule, kind: Kind) -> str:
    what, allowed, most = rule
    texts = list(_texts(field.pieces)) if field.pieces else []
    if any(field.slots):
        bad = next((found[0] for text in texts if (found := re.search(f"[^{allowed}]", text))), "")
        length = sum(map(len, texts))
    else:
        value = field.value
        if not isinstance(value, str):
            return ""  # a matter of types
        bad, length = "", len(value)
        if not _is_valid(value, what, kind):
            bad = next(iter(re.findall(f"[^{allowed}]", value)), value if length <= most else "")
    if bad:
        return f'"{bad}" cannot be in a {what}: use {_WORDS[allowed]}, with a letter or digit at both ends'
    if length > most:
        return f"this {what} has at least {length} characters, and at most {most} are allowed"
    return ""


def _longest(field: BodyField, sources: Sources) -> int:
    """The most characters that the CRD allows a text to have; 0 if it bounds not all parts."""
    lengths = [
        len(piece) if isinstance(piece, str) else _most(piece.node, sources)
        for piece in field.pieces
        if isinstance(piece, str) or not piece.captured
    ]
    return sum(lengths) if len(lengths) == len(field.pieces) and all(lengths) else 0


def _most(node: syntax.Node, sources: Sources) -> int:
    """The maxLength of a field of the CR that is printed as it is; 0 if there is none."""
    path = tuple(step if isinstance(step, str) else None for step in chain_of(node))
    if path[:1] not in (("metadata",), ("spec",)):
        return 0
    most = (sources.schema(path) or {}).get("maxLength")
    return most if isinstance(most, int) else 0


_WORDS: Final = {
    "-a-z0-9": "lowercase letters, digits and `-`",
    "-.a-z0-9": "lowercase letters, digits, `-` and `.`",
    "-._A-Za-z0-9": "letters, digits, `-`, `_` and `.`",
}


def _is_valid(value: str, what: str, kind: Kind) -> bool:
    if what == "label value":
        return is_label_value(value)
    return is_label(value) if what == "namespace" else is_object_name(kind.versionless, value)


def _texts(pieces: tuple[str | Printed, ...]) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        elif piece.captured:
            yield from _texts(piece.captured)


def _is_free_text(sources: Sources, is_free: IsSource, path: Path) -> bool:
    """Whether the CRD says that a field is text, and not which."""
    schema = sources.schema(path)
    return schema is not None and schema.get("type") == "string" and is_free(path)


# -- names that two objects share --------------------------------------------------------------------------------------


def _check_collisions(part: RulePart, sources: Sources, findings: Findings) -> None:
    given = _given_namespace(part, sources)
    for body in sources.bodies(part):
        fields = body.fields
        names = [field for field in fields if field.path == NAME]
        if len(names) != 1 or any(field.spread and field.path in {(), ("metadata",)} for field in fields):
            continue
        slots = [slot for field in fields if field.path in {NAME, NAMESPACE} for slot in field.slots]
        is_shared = part.child is not None and part.child.table.patch is not None  # by several CRs, each its own fields
        if not is_shared and not _is_own(slots, part, sources) and not any(map(_differs_between_resources, given)):
            scope = "" if sources.crd is not None and not sources.crd.namespaced else " of one namespace"
            whose = f"two {sources.watch.rule.kind.kind}s{scope}"
            what = "metadata.name"
        elif item := _missing_item(slots, given, part, sources):
            whose, what = "each item of `forEach`", f"`{item}` or `index`" if part.view.index else f"`{item}`"
        else:
            continue
        message = f"the {body.kind.kind} of {whose} would have the same name: use {what} in it"
        findings.warning("name-collision", message, names[0].site)


def _check_children(sources: Sources, findings: Findings) -> None:
    """Reports children that always render the same object. Of children with conditions, one may replace the other."""
    first: dict[tuple[bool, GroupKind, tuple[str, ...]], str] = {}
    for part in sources.body_parts:
        found, child = sources.bodies(part), part.child
        if (
            child is None
            or len(found) != 1
            or {"when", "forEach", "forEachOf", "namespace"} & child.table.key_sites.keys()
        ):
            continue
        places = [field for field in found[0].fields if field.path in {NAME, NAMESPACE}]
        texts = tuple(text_of(field, part) for field in places)
        if not texts or "" in texts:
            continue
        id_ = first.setdefault((child.final, found[0].kind.versionless, texts), child.id)
        if id_ != child.id:
            message = f'the {found[0].kind.kind} has the same name as that of "{id_}": choose another'
            findings.mistake("name-collision", message, places[0].site)


def text_of(field: BodyField, part: RulePart) -> str:
    """The text of a field with its expressions; "" if they may have another meaning in another template."""
    assigned = {name for name, _ in part.compiled.assigned}
    is_same = all(
        isinstance(each, str) or not (each.captured or assigned & names_in(each.node)) for each in field.pieces
    )
    return as_written(field.pieces) if is_same else ""


def _is_own(slots: list[Printed], part: RulePart, sources: Sources) -> bool:
    """Whether one of the slots differs between two CRs."""
    if any(_is_of_metadata(slot.node) and slot.place.expression in _IDENTITIES for slot in slots):
        return True
    places = {slot.place for slot in slots}
    return bool(places) and not places.isdisjoint(sources.places(part, _differs_between_resources))


def _missing_item(slots: list[Printed], given: list[Path], part: RulePart, sources: Sources) -> str:
    """The item of a loop of `forEach` on which the name depends neither directly nor by the items of inner loops; "" if
    there is none."""
    places = {slot.place for slot in slots}
    for loop in part.view.items:
        is_item = partial(_is_item, frozenset({"index", *_loops_over(loop, part, sources)}))
        if not any(map(is_item, given)) and places.isdisjoint(sources.places(part, is_item, by_item=True)):
            return loop
    return ""


def _loops_over(item: str, part: RulePart, sources: Sources) -> list[str]:
    """The item, and those of loops over something of it."""
    found = [item]
    for each in sources.watch.parts:
        if each.loop and each.view.items_of == part.view.items_of and each.compiled.names & {*found}:
            found.append(each.loop)
    return found


def _is_item(items: frozenset[str], path: Path) -> bool:
    return path[0] == "item" and path[1] in items


def _differs_between_resources(path: Path) -> bool:
    """Whether a field can differ between two CRs of one namespace. That of another object may, for all we know."""
    return path[0] != "item" and path[:2] != ("metadata", "namespace")


def _given_namespace(part: RulePart, sources: Sources) -> list[Path]:
    """The fields that `namespace` of the child reads."""
    child = part.child
    found: list[Path] = []
    for each in sources.watch.parts:
        if each.key == "namespace" and each.child is child:
            for reference in each.compiled.references:
                is_item = reference.path[0] in {*part.view.items, "index"}
                found.append(("item", *reference.path) if is_item else reference.path)
    return found
