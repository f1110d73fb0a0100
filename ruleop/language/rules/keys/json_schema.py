"""The JSON Schema of watches.yaml for editors, generated from the tables that parse the file, so the two always
agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.language.rules.check_ids import SILENCEABLE
from ruleop.language.rules.keys.tables import table_schema
from ruleop.language.rules.keys.watches_yaml import TABLES, WATCHES, FileTable

if TYPE_CHECKING:
    from ruleop.kubernetes.kinds import JSON


def watches_schema() -> dict[str, JSON]:
    """The schema of watches.yaml and of included files. It cannot check names, cycles and templates."""
    definitions: dict[str, JSON] = {table.DEFINITION: table_schema(table) for table in TABLES}
    definitions[FileTable.DEFINITION]["properties"]["allow"]["propertyNames"] = {
        "enum": [check.id for check in SILENCEABLE]
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ruleop rules (watches.yaml)",
        "if": {"type": "array"},
        "then": WATCHES.schema() | {"minItems": 1},
        "else": {"$ref": f"#/$defs/{FileTable.DEFINITION}"},
        "$defs": definitions,
    }
