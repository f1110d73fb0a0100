"""JSON Schemas for editors, of watches.yaml and of rule tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ruleop.printable import printable_json
from ruleop.rules import watches_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruleop.kinds import JSON

WATCHES: Final = "watches.schema.json"

_SCHEMAS: Final[dict[str, Callable[[], dict[str, JSON]]]] = {WATCHES: watches_schema}
"""The schemas, by the names of their files."""


def schema_files() -> dict[str, str]:
    """The text of each schema, by the name of its file: the same bytes each time."""
    return {name: _text(schema()) for name, schema in _SCHEMAS.items()}


def _text(schema: dict[str, JSON]) -> str:
    document = orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return printable_json(document.decode())


def schema_comment(path: str) -> str:
    """The comment by which editors with the YAML language server find the schema of a file."""
    return f"# yaml-language-server: $schema={path}"
