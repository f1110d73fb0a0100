"""The JSON Schema of watches.yaml, for editors: made from the tables that the reader goes by, so the two cannot disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.rules.language.tables import table_schema
from ruleop.rules.language.watches_yaml import TABLES, WATCHES, FileTable

if TYPE_CHECKING:
    from ruleop.kinds import JSON


def watches_schema() -> dict[str, JSON]:
    """What a schema can say of watches.yaml and of the files it includes. Names, cycles and templates are the reader's business."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ruleop rules (watches.yaml)",
        "if": {"type": "array"},
        "then": WATCHES.schema() | {"minItems": 1},
        "else": {"$ref": f"#/$defs/{FileTable.DEFINITION}"},
        "$defs": {table.DEFINITION: table_schema(table) for table in TABLES},
    }
