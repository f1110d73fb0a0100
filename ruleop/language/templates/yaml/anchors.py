"""The anchors of a YAML document, in files that tools write: an alias is replaced by the value of its anchor, as in
kubectl.

An alias of a few characters may represent a whole document with more aliases: 300 bytes can describe a billion values.
So the size of all expanded aliases of a file is counted and bounded before anything is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.language.templates.yaml.yaml_node import YamlNode

MAX_VALUES: Final = 250_000
MAX_CHARACTERS: Final = 8 * 1024 * 1024


class AnchorError(Exception):
    """An invalid anchor, alias or merge key."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.final = final  # the rest of the file cannot be read


class _Size(NamedTuple):
    """The number of values and characters in a value, and its depth."""

    values: int
    characters: int
    depth: int


class Anchors:
    def __init__(self, *, max_depth: int) -> None:
        self.max_depth = max_depth
        self._known: dict[str, YamlNode | None] = {}  # None while the value is being read
        self._anchored: list[YamlNode] = []  # all anchored values, so that their ids are not reused
        self._sizes: dict[int, _Size] = {}
        self._values = self._characters = 0

    def new_document(self) -> None:
        """Clears the anchors, which are valid in one document. The bounds apply to the whole file."""
        self._known.clear()

    def begin(self, name: str) -> None:
        self._known[name] = None

    def end(self, name: str, node: YamlNode) -> None:
        self._known[name] = node
        self._anchored.append(node)
        self._sizes[id(node)] = self._size(node)

    def expand(self, name: str, depth: int) -> YamlNode:
        """The value of an alias at the given depth."""
        if name not in self._known:
            raise AnchorError(
                f"the alias *{name} has no anchor: write &{name} before a value earlier in the same document"
            )
        found = self._known[name]
        if found is None:
            raise AnchorError(f"the alias *{name} is inside the value of its own anchor")
        size = self._sizes[id(found)]
        self._values += size.values
        self._characters += size.characters
        if self._values > MAX_VALUES or self._characters > MAX_CHARACTERS:
            limits = f"{MAX_VALUES:,} values or {MAX_CHARACTERS // 1024 // 1024} MiB"
            raise AnchorError(
                f"the aliases of this file expand to more than {limits}: write the values out", final=True
            )
        if depth + size.depth - 1 > self.max_depth:
            raise AnchorError(f"the alias *{name} makes the document nested deeper than {self.max_depth} levels")
        return found

    def _size(self, node: YamlNode) -> _Size:
        """The size of a value. Anchored values are measured once."""
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


def merge_members(
    members: dict[str, YamlNode], key_sites: dict[str, Site], value: YamlNode
) -> tuple[dict[str, YamlNode], dict[str, Site]]:
    """The members of a mapping with those of its merge key, `<<: *base` or `<<: [*first, *second]`, of which the first
    wins.

    By the specification, members of the mapping override merged ones. In kubectl the order decides, so a case in which
    the two differ is an error.
    """
    sources = value.value if isinstance(value.value, list) else [value]
    found: dict[str, YamlNode] = {}
    sites: dict[str, Site] = {}
    for source in sources:
        if not isinstance(source.value, dict):
            raise AnchorError("the merge key << takes a mapping or a list of mappings")
        for key, member in source.value.items():
            if key in members:
                raise AnchorError(f'the merge key << comes after the key "{key}", which it also contains: put << first')
            found.setdefault(key, member)
            sites.setdefault(key, source.key_sites[key])
    return {**members, **found}, {**key_sites, **sites}
