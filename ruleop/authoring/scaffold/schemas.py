"""Files with JSON Schemas for editors."""

from __future__ import annotations

from typing import Final

WATCHES: Final = "watches.schema.json"
TESTS: Final = "tests.schema.json"
CHOICES: Final = "ruleop.schema.json"


def schema_comment(path: str) -> str:
    """The comment by which editors with the YAML language server find the schema of a file."""
    return f"# yaml-language-server: $schema={path}"
