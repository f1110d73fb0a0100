"""The names that are visible in each place. A `Part` is one expression or template of a watch with the view that it
has.

The views follow "Names" in docs/rules/children.md. In doubt they are narrow, because a view can be widened later:

- `when`, `readyWhen`, `deletion`, `onImmutable` and `when` of an ignored path see the CR, vars, let and observed
  objects, but no children, not even through `live.`: whether a child is desired must not depend on the results of
  others in the same pass. `deletion` is evaluated when nothing is rendered any more.
- `once` sees the same, and the existing objects of other children: a run stays, whatever they become.
- `validate` is evaluated before any child is rendered, and sees none.
- `let` sees earlier names; `observe` sees the lets that read no observed object, because observed objects must not
  depend on one another.
- a `finalize` child sees the other finalize children, and the existing objects of other children, which are not
  rendered during deletion; it does not wait for them. They do not see it. One with `forEachOf` is made while the CR
  lives, too: it sees the items, and no other finalize child sees it or is seen by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ruleop.language.rules.keys.value_types import Templated
from ruleop.language.templates import Expression, StringTemplate, TextTemplate, Tree, YamlNode
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ruleop.errors import Site
    from ruleop.language.rules.keys.parsed import ChildDraft, Draft
    from ruleop.language.rules.keys.watches_yaml import FullSelectorTable
    from ruleop.language.templates import syntax
    from ruleop.language.templates.bodies.body import Printed
    from ruleop.language.templates.bodies.documents import Possible
    from ruleop.language.templates.compile import Library

RESOURCE = frozenset({"cr", "metadata", "spec", "status", "vars"})
ALWAYS = RESOURCE | {"live", "ready"}
RESERVED = ALWAYS | {"item", "index", "this"}


@dataclass(frozen=True, slots=True)
class ScopeView:
    title: str  # the name of the place in messages
    lets: frozenset[str] = frozenset()
    observed: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    ready: frozenset[str] = (
        frozenset()
    )  # children whose readiness is known, and which are ordered before a child that reads it
    live: frozenset[str] = frozenset()
    items: tuple[str, ...] = ()  # the names of the items of forEach, outermost first
    items_of: str = ""  # the child whose loops these are
    index: bool = False  # of the items
    this: bool = False
    reads_status: bool = True

    @property
    def names(self) -> frozenset[str]:
        names = RESOURCE | self.lets | self.observed | self.children
        if self.ready:
            names |= {"ready"}
        if self.live:
            names |= {"live"}
        names |= {*self.items}
        if self.index:
            names |= {"index"}
        if self.this:
            names |= {"this"}
        return names if self.reads_status else names - {"status"}


Compiled = Expression | StringTemplate | TextTemplate | Tree


@dataclass(frozen=True, slots=True)
class RulePart:
    key: str  # the key of the language
    view: ScopeView
    compiled: Compiled
    node: YamlNode
    child: ChildDraft | None = None  # the child it belongs to
    observed: str = ""  # the id of the observed resource it belongs to
    let: str = ""  # the name of the let
    loop: str = ""  # the name of the item of the loop
    body: bool = False  # the body of the child

    @property
    def site(self) -> Site:
        return self.node.site

    def gives_items_to(self, other: RulePart) -> bool:
        """Whether this is a loop whose items the other part can read."""
        return self.child is not None and self.child.id == other.view.items_of and self.loop in other.view.items

    @property
    def public(self) -> bool:
        """Whether the value is readable by everyone: in the status, a condition, a message or an Event."""
        return self.key in ("status", "conditions", "validate.message", "expire")


Value = Templated[Expression] | Templated[StringTemplate] | Templated[TextTemplate] | Templated[Tree]


def parts(draft: Draft) -> Iterator[RulePart]:
    """All expressions and templates of a watch, in the order of evaluation."""
    yield from _let_parts(draft)
    lets, observed = frozenset(entry.name for entry in draft.let), frozenset(draft.observed)
    yield from _observe_parts(draft, ScopeView("`observe`", lets))
    # Whose permissions are used must not depend on what others may write: only on the CR, but not on its status.
    yield from _parts_of("writeAs", ScopeView("`writeAs`", reads_status=False), draft.table.write_as)
    if draft.table.expire is not None:
        yield from _parts_of("expire", ScopeView("`expire`", lets, observed), draft.table.expire.after)
    validation = ScopeView("`validate`", lets, observed)
    for validate in draft.table.validate:
        yield from _parts_of("validate", validation, validate.rule)
        yield from _parts_of("validate.message", validation, validate.message)
    children = frozenset(draft.children)
    for child in draft.everyone:
        yield from _child_parts(draft, child, ScopeView("", lets, observed), children)
    ids = children | frozenset(draft.final)
    yield from _parts_of(
        "status", ScopeView("`status`", lets, observed, ids, ids, ids, reads_status=False), draft.table.status
    )
    for condition in draft.table.conditions:
        for value in (condition.status, condition.reason, condition.message):
            yield from _parts_of("conditions", ScopeView("`conditions`", lets, observed, ids, ids, ids), value)


def _parts_of(
    key: str, view: ScopeView, value: Value | None, child: ChildDraft | None = None, observed: str = ""
) -> Iterator[RulePart]:
    if value is not None:
        yield RulePart(key, view, value.compiled, value.node, child, observed)


def _let_parts(draft: Draft) -> Iterator[RulePart]:
    earlier: list[str] = []
    for entry in draft.let:
        if entry.value is not None:
            view = ScopeView("`let`", frozenset(earlier), frozenset(draft.observed))
            yield RulePart("let", view, entry.value.compiled, entry.value.node, let=entry.name)
        earlier.append(entry.name)


def _observe_parts(draft: Draft, outer: ScopeView) -> Iterator[RulePart]:
    for id_, entry in draft.observed.items():
        if (table := entry.value) is None:
            continue
        yield from _parts_of("observe.forEach", outer, table.for_each, observed=id_)
        view = replace(outer, items=(table.item,), index=True) if "forEach" in table.key_sites else outer
        selected: Iterable[Value] = selector_values(table.selector) if table.selector is not None else ()
        for value in (table.name, table.namespace, *selected):
            yield from _parts_of("observe", view, value, observed=id_)
        where = replace(outer, title="`where`", this=True)
        yield from _parts_of("observe.where", where, table.where, observed=id_)


def selector_values(selector: FullSelectorTable) -> Iterator[Templated[StringTemplate] | Templated[Tree]]:
    for label in selector.match_labels:
        if label.value is not None:
            yield label.value
    for requirement in selector.match_expressions:
        yield from requirement.values
    if selector.given is not None:
        yield selector.given


def _child_parts(draft: Draft, child: ChildDraft, outer: ScopeView, children: frozenset[str]) -> Iterator[RulePart]:
    """`children`: that are rendered while the CR lives; all their views have the same set."""
    peers = frozenset(draft.peers(child)) if child.final else children
    seen = children | peers if child.final else children
    looped, source = child.has_items, draft.looped(child)
    items = tuple(each.name for each in source.loops)
    kind = "finalize child" if child.final else "child"

    def view(key: str, *, children: bool, this: bool = False) -> ScopeView:
        title = f'the {kind} "{child.id}"' if key in ("template", "object") else f"`{key}`"
        if children:
            return ScopeView(title, outer.lets, outer.observed, seen, peers, seen, items, source.id, looped, this)
        return ScopeView(title, outer.lets, outer.observed, items=items, items_of=source.id, index=looped, this=this)

    table = child.table
    for number, each in enumerate(child.loops):
        if each.value is not None:
            earlier = replace(view("forEach", children=True), items=items[:number], index=False)
            yield RulePart("forEach", earlier, each.value.compiled, each.value.node, child, loop=each.name)
    yield from _parts_of("when", view("when", children=False), table.when, child)
    others = seen - {child.id}  # an id that a run itself changes would never come to rest
    yield from _parts_of("once", replace(view("once", children=False), live=others), table.once, child)
    for key, value in (("schedule", table.schedule), ("timeZone", table.time_zone)):
        yield from _parts_of(key, view(key, children=False), value, child)
    yield from _parts_of("waitFor", view("waitFor", children=True), table.wait_for, child)
    yield from _parts_of("namespace", view("namespace", children=True), table.namespace, child)
    if table.patch is not None and table.patch.selector is not None:  # else its namespace is in the body
        yield from _parts_of("namespace", view("namespace", children=True), table.patch.namespace, child)
        for part in selector_values(table.patch.selector):
            yield from _parts_of("selector", view("selector", children=True), part, child)
    yield from _parts_of("deletion", view("deletion", children=False), table.deletion, child)
    yield from _parts_of("readyWhen", view("readyWhen", children=False, this=True), table.ready_when, child)
    for ignored in child.ignore:
        yield from _parts_of("apply.ignore", view("apply.ignore", children=False), ignored.when, child)
    yield from _parts_of("apply.onImmutable", view("apply.onImmutable", children=False), child.on_immutable, child)
    if child.body is not None:
        key = "template" if table.template is not None else "object"
        yield RulePart(key, view(key, children=True), child.body.compiled, child.body.node, child, body=True)


def written(part: RulePart, library: Library) -> Iterator[syntax.Template]:
    """The trees of a part."""
    if isinstance(part.compiled, TextTemplate):
        yield from map(library.written_tree, part.compiled.files)
    elif isinstance(part.compiled, Expression):
        yield library.written_string("{{ " + part.compiled.source + " }}", part.site)
    else:
        yield from library.written_value(part.node).texts


def loops_of(part: RulePart, parts: Iterable[RulePart], library: Library) -> list[syntax.Template]:
    """The loops of `forEach` that give the items their values, as templates."""
    loops = [(each, each.compiled) for each in parts if each.gives_items_to(part)]
    return [
        library.written_string(f"{{% for {each.loop} in ({compiled.source}) %}}{{% endfor %}}", each.site)
        for each, compiled in loops
        if isinstance(compiled, Expression)
    ]


# -- what only checks ask ----------------------------------------------------------------------------------------------


def possible_in(part: RulePart, library: Library) -> Possible:
    """The documents that a part may give."""
    return library.possible(part.compiled.name if isinstance(part.compiled, TextTemplate) else part.node)


def metadata_slots(part: RulePart, name: str, library: Library) -> Iterator[Printed]:
    """The values that are printed in a field of the metadata of a child."""
    for body in possible_in(part, library).bodies:
        for field in body.fields:
            if field.path == ("metadata", name):
                yield from field.slots
