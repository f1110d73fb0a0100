"""Writes data as YAML that kubectl, and our own reader, take for the same data."""

from __future__ import annotations

from typing import Any

import yaml

from ruleop.templating.yaml_reader import NotJson, resolve_scalar


class _YamlDumper(yaml.CSafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _yaml_string(dumper: Any, text: str) -> Any:
    """Blocks for text of several lines, quotes for what kubectl would read as something else than text."""
    try:
        quoted = not isinstance(resolve_scalar(text), str)
    except NotJson:
        quoted = True
    style = "|" if "\n" in text else '"' if quoted else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_YamlDumper.add_representer(str, _yaml_string)


def yaml_text(data: Any) -> str:
    return (
        str(yaml.dump(data, Dumper=_YamlDumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=10**6))
        .removesuffix("...\n")
        .rstrip("\n")
    )
