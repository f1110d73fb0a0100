"""The anchors of one YAML document, for files that tools write: each alias stands for the value of its anchor, as for kubectl.

An alias costs a few characters and may stand for a whole document, in which there are aliases again: 300 bytes can describe a billion
values. So what the aliases of a file stand for is counted, and bounded, before anything is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.templating.tree.yaml_reader import YamlNode

MAX_VALUES: Final = 250_000
MAX_CHARACTERS: Final = 8 * 1024 * 1024


class AnchorError(Exception):
    """The message says what is wrong with an anchor, an alias or a merge key."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.final = final  # nothing after it can be read


class _Size(NamedTuple):
    """How many values there are in a value, how many characters, and how deep it is."""

    values: int
    characters: int
    depth: int


class Anchors:
    def __init__(self, *, max_depth: int) -> None:
        self.max_depth = max_depth
        self._known: dict[str, YamlNode | None] = {}  # None while the value is being read
        self._kept: list[YamlNode] = []  # all that ever had an anchor, so that their ids stay theirs
        self._sizes: dict[int, _Size] = {}
        self._values = self._characters = 0

    def new_document(self) -> None:
        """An anchor is known to the end of its document; the bounds are those of the file."""
        self._known.clear()

    def begin(self, name: str) -> None:
        self._known[name] = None

    def end(self, name: str, node: YamlNode) -> None:
        self._known[name] = node
        self._kept.append(node)
        self._sizes[id(node)] = self._size(node)

    def expand(self, name: str, depth: int) -> YamlNode:
        """The value of an alias that stands so deep."""
        if name not in self._known:
            raise AnchorError(f"the alias *{name} has no anchor: write &{name} before the value that it repeats, in the same document")
        found = self._known[name]
        if found is None:
            raise AnchorError(f"the alias *{name} stands inside the value of its own anchor")
        size = self._sizes[id(found)]
        self._values += size.values
        self._characters += size.characters
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS:
            most = f"{MAX_VALUES:,} values or {MAX_CHARACTERS // 1024 // 1024} MiB"
            raise AnchorError(f"the aliases of this file stand for more than {most}: write the values out", final=True)
        if depth + size.depth - 1 > self.max_depth:
            raise AnchorError(f"with the alias *{name}, nested deeper than {self.max_depth} levels")
        return found

    def _size(self, node: YamlNode) -> _Size:
        """What has an anchor is measured once, however often it is repeated."""
        if (known := self._sizes.get(id(node))) is not None:
            return known
        value = node.value
        if not isinstance(value, (dict, list)):
            return _Size(1, len(value) if isinstance(value, str) else 0, 1)
        inner = [self._size(each) for each in (value.values() if isinstance(value, dict) else value)]
        characters = sum(map(len, value)) if isinstance(value, dict) else 0
        return _Size(
            1 + sum(each.values for each in inner),
            characters + sum(each.characters for each in inner),
            1 + max((each.depth for each in inner), default=0),
        )


def merged(members: dict[str, YamlNode], key_sites: dict[str, Site], value: YamlNode) -> tuple[dict[str, YamlNode], dict[str, Site]]:
    """The members of a mapping after its merge key, `<<: *base` or `<<: [*first, *second]`, of which the first counts.

    The members beside a merge key replace those that it brings. kubectl, though, goes by their order; where the two differ, neither is
    taken.
    """
    sources = value.value if isinstance(value.value, list) else [value]
    found: dict[str, YamlNode] = {}
    sites: dict[str, Site] = {}
    for source in sources:
        if not isinstance(source.value, dict):
            raise AnchorError("the merge key << takes a mapping or a list of mappings")
        for key, member in source.value.items():
            if key in members:
                raise AnchorError(f'the merge key << comes after the key "{key}", which it brings too: put << first')
            found.setdefault(key, member)
            sites.setdefault(key, source.key_sites[key])
    return {**members, **found}, {**key_sites, **sites}
