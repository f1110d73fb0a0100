"""Files with JSON Schemas for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ruleop.core.printable import printable_json

if TYPE_CHECKING:
    from ruleop.core.kinds import JSON

WATCHES: Final = "watches.schema.json"
TESTS: Final = "tests.schema.json"
CHOICES: Final = "ruleop.schema.json"
CHOICES_FILE: Final = "ruleop.yaml"


def schema_text(schema: dict[str, JSON]) -> str:
    """The file of a schema: the same bytes each time."""
    document = orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return printable_json(document.decode())


def schema_comment(path: str) -> str:
    """The comment by which editors with the YAML language server find the schema of a file."""
    return f"# yaml-language-server: $schema={path}"
