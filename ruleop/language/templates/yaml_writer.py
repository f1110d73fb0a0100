"""Writes YAML that every parser reads as the same data: kubectl's, ruleop's own, and those of YAML 1.1 and 1.2.

libyaml chooses the style of a scalar by the rules of YAML 1.1 alone. So this module quotes strings that kubectl would
parse as another type, and writes a block scalar only where it is unambiguous: the end of a block depends on the text
around it, the end of a quoted string does not."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from ruleop.language.templates.yaml_reader import NotJson, resolve_scalar
from ruleop.printable import printable_lines, printable_yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kubernetes.kinds import JSON

_TEXT: Final = "tag:yaml.org,2002:str"
_resolve_1_1: Final[Callable[[type[yaml.Node], str, tuple[bool, bool]], str]] = yaml.resolver.Resolver().resolve
_END: Final = "...\n"
_NUMBERS: Final = yaml.representer.SafeRepresenter()
_NOT_IN_BLOCKS: Final = re.compile(
    "[\r\x85\u2028\u2029\ufeff]"
)  # line breaks in YAML 1.1 only, or changed to \n by parsers
_ESCAPED: Final = re.compile("[\n\r\x85\u2028\u2029\ufeff]")


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.ScalarNode:
    if text.isprintable():
        style = None if _is_string_in_kubectl(text) else '"'
    elif _is_block(text):
        style = "|"
    else:
        style = '"' if _ESCAPED.search(text) or not _is_string_in_kubectl(text) else None
    node: yaml.ScalarNode = dumper.represent_scalar(_TEXT, text, style=style)
    return node


class _PrintableDumper(_Dumper):
    """Puts text into double quotes where it has characters that a terminal would obey; libyaml escapes some of them."""


def _represent_printable(dumper: Any, text: str) -> yaml.ScalarNode:
    if text.isprintable() or printable_lines(text) == text:
        return _represent_text(dumper, text)
    node: yaml.ScalarNode = dumper.represent_scalar(_TEXT, text, style='"')
    return node


_Dumper.add_representer(str, _represent_text)
_PrintableDumper.add_representer(str, _represent_printable)


def reads_as_text(text: str) -> bool:
    """Whether an unquoted scalar is a string in kubectl and in YAML 1.1, in which dates and sexagesimal numbers are
    not."""
    return _is_string_in_kubectl(text) and _resolve_1_1(yaml.ScalarNode, text, (True, False)) == _TEXT


def _is_string_in_kubectl(text: str) -> bool:
    try:
        return isinstance(resolve_scalar(text), str)
    except NotJson:
        return False


def _is_block(text: str) -> bool:
    """Whether a block scalar represents this text exactly, even if its lines are indented further: no line is only
    spaces, and the text ends with a line or with one line break."""
    if "\n" not in text or _NOT_IN_BLOCKS.search(text):
        return False
    lines = text.removesuffix("\n").split("\n")
    return bool(lines[-1]) and all(not line or line.strip() for line in lines)


def yaml_document(data: JSON) -> str:
    """A whole document, with a final line break, that a terminal shows as it is."""
    return printable_yaml(_write(data, whole=True))


def yaml_text(data: JSON, *, indent: int = 2, sort: bool = False) -> str:
    """YAML to be inserted into other text, without a final line break."""
    return _write(data, whole=False, indent=indent, sort=sort).removesuffix("\n")


def number_text(number: float) -> str:
    """A number that both versions of YAML read as one: in YAML 1.1, `1e-9` is a string and `1.0e-09` a number."""
    return str(_NUMBERS.represent_float(number).value)


def _write(data: JSON, *, whole: bool, indent: int = 2, sort: bool = False) -> str:
    stream = io.StringIO()
    dumper = (_PrintableDumper if whole else _Dumper)(
        stream,
        default_flow_style=False,
        sort_keys=sort,
        allow_unicode=True,
        width=-1,
        indent=indent,
        explicit_end=True,
    )
    try:
        dumper.open()
        node = dumper.represent_data(data)
        last = _last_node(node)
        # A block alone has no column to be indented from; one at the end of inserted text would lose its last line
        # break.
        if (
            isinstance(last, yaml.ScalarNode)
            and last.style == "|"
            and (last is node or (not whole and last.value.endswith("\n")))
        ):
            last.style = '"'
        dumper.serialize(node)
        dumper.close()
    finally:
        dumper.dispose()
    return stream.getvalue().removesuffix(_END)  # the end marker of the document, which is always written


def _last_node(node: yaml.Node) -> yaml.Node:
    """The last scalar or empty container of a document."""
    while not isinstance(node, yaml.ScalarNode) and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node
