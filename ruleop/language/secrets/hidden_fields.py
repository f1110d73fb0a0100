"""The fields of a child's objects whose values can come from Secrets, as its template tells without being rendered.

A field is hidden if a `{{ }}` in its value prints such data (`Secrecy.slots`), the whole field. Where the name of a
field is computed, it stands for all names that are not written out, and an item of a list without a literal name for
all items. All documents and branches count together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.language.secrets.masks import SHOWN, WHOLE, Hidden, any_of, both
from ruleop.language.templates import RuleErrors, TextTemplate, syntax
from ruleop.language.templates.syntax import EFFECTS, PRINTING, find
from ruleop.language.templates.tree import nodes
from ruleop.language.templates.tree.evaluation import takes_items
from ruleop.language.templates.tree.nodes import BlockItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ruleop.language.templates import SlotPlace, Tree
    from ruleop.language.templates.tree.pieces import Form
    from ruleop.language.templates.tree.templates import Templates

_SPREAD: Final = Hidden(others=WHOLE, named=True, items=(("", WHOLE),))
"""Of a value that is inserted among entries or items."""


def hidden_fields(body: TextTemplate | Tree, places: frozenset[SlotPlace]) -> Hidden:
    """The hidden fields of the objects of a body. `places`: the slots whose values can come from Secrets."""
    if not places:
        return SHOWN
    if not isinstance(body, TextTemplate) and body.only is not None:
        return WHOLE
    return _Reader(body.templates, places).documents(body.file.form.documents)


class _Reader:
    """Reads the trees of a template and of the files that it includes."""

    def __init__(self, templates: Templates, places: frozenset[SlotPlace]) -> None:
        self.templates, self.places = templates, places
        self.open: list[Form] = []  # the included files that are being read

    def documents(self, documents: nodes.Documents) -> Hidden:
        return any_of(
            any_of(map(self.documents, each.bodies)) if isinstance(each, nodes.DocumentBlock) else self.node(each)
            for each in documents.members
        )

    def node(self, node: nodes.Node | None) -> Hidden:
        match node:
            case nodes.Value():
                return self._printed(node.slot)
            case nodes.Joined():
                return WHOLE if self._prints(node.parts) else SHOWN
            case nodes.TextBlock():
                parts = [[item.node] if isinstance(item, BlockItem) else item.parts for item in node.items]
                return WHOLE if any(map(self._prints, parts)) else SHOWN
            case nodes.Choice():
                return any_of(map(self.node, node.branches))
            case nodes.Mapping() | nodes.ListNode() | nodes.Blocks():
                before = [None, *node.members]
                return any_of(map(self._member, node.members, before), apart=True)
        return SHOWN

    def _member(self, member: nodes.Entry | nodes.Block | nodes.Node, before: object) -> Hidden:
        """`before`: the member before it."""
        match member:
            case nodes.Entry():
                value = self.node(member.value)
                if isinstance(member.key, str):
                    return Hidden(names={member.key: value})
                return _SPREAD if self._prints(member.key.parts) else Hidden(others=value)
            case nodes.SpreadKey():
                return _SPREAD if self._prints(member.key.parts) else SHOWN
            case nodes.Spread():
                found = self._printed(member.slot)
                is_below = isinstance(before, nodes.Entry) and takes_items(before)
                return both(found, Hidden(names={str(before.key): found})) if is_below else found  # type: ignore[attr-defined]
            case nodes.Statement():
                return SHOWN if isinstance(member.node, EFFECTS) else any_of(map(self.node, member.bodies))
        return Hidden(items=((_literal_name(member), self.node(member)),))

    def _printed(self, slot: syntax.Printing) -> Hidden:
        """Of what stands at the place of a `{{ }}` or an include."""
        if not self._prints([slot]):
            return SHOWN
        if not slot.place.alone:
            return WHOLE
        form = self._included(slot)
        if form is None or form in self.open:
            return _SPREAD
        self.open.append(form)
        try:
            return self.documents(form.documents)
        except RuleErrors:  # it is text
            return WHOLE
        finally:
            self.open.pop()

    def _prints(self, parts: Iterable[object]) -> bool:
        """Whether statements print data of Secrets."""
        return any(
            self._is_source(slot) for part in parts if isinstance(part, syntax.Stmt) for slot in find(part, *PRINTING)
        )

    def _is_source(self, slot: syntax.Printing) -> bool:
        if (form := self._included(slot)) is None or form in self.open:
            return form is not None or slot.place in self.places
        self.open.append(form)
        try:
            return self._prints(form.body)
        finally:
            self.open.pop()

    def _included(self, slot: syntax.Printing) -> Form | None:
        names = slot.files if isinstance(slot, syntax.Include) else ()
        return next((self.templates.file(name).form for name in names if self.templates.has(name)), None)


def _literal_name(item: nodes.Node) -> str:
    if isinstance(item, nodes.Mapping):
        for entry in item.members:
            if isinstance(entry, nodes.Entry) and entry.key == "name" and isinstance(entry.value, nodes.Constant):
                return str(entry.value.value)
    return ""
