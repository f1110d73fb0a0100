"""Writes data as YAML that every parser takes for the same data: kubectl's, ruleop's own, and those of YAML 1.1 and 1.2.

libyaml chooses the form of a scalar by the rules of YAML 1.1 alone. Two things are therefore decided here: what looks like something other
than text to kubectl is quoted, and only text that cannot be misread is written as a block. A block ends where the text around it decides;
in quotes, a text says itself where it ends.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from ruleop.templating.tree.yaml_reader import NotJson, resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kinds import JSON

_TEXT: Final = "tag:yaml.org,2002:str"
_resolve_1_1: Final[Callable[[type[yaml.Node], str, tuple[bool, bool]], str]] = yaml.resolver.Resolver().resolve
_END: Final = "...\n"
_NUMBERS: Final = yaml.representer.SafeRepresenter()
_NEVER_IN_BLOCKS: Final = re.compile("[\r\x85\u2028\u2029\ufeff]")  # line breaks to YAML 1.1 only, or turned into \n by a parser
_ESCAPED: Final = re.compile("[\n\r\x85\u2028\u2029\ufeff]")


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> yaml.ScalarNode:
    if text.isprintable():
        style = None if _is_text_to_kubectl(text) else '"'
    elif _is_block(text):
        style = "|"
    else:
        style = '"' if _ESCAPED.search(text) or not _is_text_to_kubectl(text) else None
    node: yaml.ScalarNode = dumper.represent_scalar(_TEXT, text, style=style)
    return node


_Dumper.add_representer(str, _represent_text)


def reads_as_text(text: str) -> bool:
    """Whether an unquoted scalar is text to kubectl and to YAML 1.1, in which dates and sexagesimal numbers are not."""
    return _is_text_to_kubectl(text) and _resolve_1_1(yaml.ScalarNode, text, (True, False)) == _TEXT


def _is_text_to_kubectl(text: str) -> bool:
    try:
        return isinstance(resolve_scalar(text), str)
    except NotJson:
        return False


def _is_block(text: str) -> bool:
    """Whether a block scalar holds this text exactly, also when it is indented further line by line. No line is all
    blanks, and the text ends in a line, or in one line break."""
    if "\n" not in text or _NEVER_IN_BLOCKS.search(text):
        return False
    lines = text.removesuffix("\n").split("\n")
    return bool(lines[-1]) and all(not line or line.strip() for line in lines)


def yaml_document(data: JSON) -> str:
    """A whole document, with the line break at its end."""
    return _written(data, whole=True)


def yaml_text(data: JSON) -> str:
    """The same to stand in other text: it has no line break at its end, and needs none."""
    return _written(data, whole=False).removesuffix("\n")


def number_text(number: float) -> str:
    """A number as both versions of YAML read it: to YAML 1.1, `1e-9` is text and `1.0e-09` a number."""
    return str(_NUMBERS.represent_float(number).value)


def _written(data: JSON, *, whole: bool) -> str:
    stream = io.StringIO()
    dumper = _Dumper(stream, default_flow_style=False, sort_keys=False, allow_unicode=True, width=-1, explicit_end=True)
    try:
        dumper.open()
        node = dumper.represent_data(data)
        last = _last_node(node)
        # A block by itself has no column to be indented from; one at the end of a part of a text would lose its last line break.
        if isinstance(last, yaml.ScalarNode) and last.style == "|" and (last is node or (not whole and last.value.endswith("\n"))):
            last.style = '"'
        dumper.serialize(node)
        dumper.close()
    finally:
        dumper.dispose()
    return stream.getvalue().removesuffix(_END)  # the mark of the document's end, which is always written


def _last_node(node: yaml.Node) -> yaml.Node:
    """What a document ends with."""
    while not isinstance(node, yaml.ScalarNode) and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node
