"""AGENTS.md of a new project: the rules language on one page, for coding assistants.

Its text and its idioms are in agents.md. The tables of keys and the names of filters come from the code.
"""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Final

from ruleop.language.rules.keys import watches_yaml as language
from ruleop.language.rules.keys.schema_keys import SchemaTable
from ruleop.language.rules.keys.tables import keys
from ruleop.language.rules.keys.value_types import Choice
from ruleop.language.templates import FILTER_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.rules.keys.tables import Key, Table

_TABLES: Final[dict[str, type[Table]]] = {
    "A watch": language.WatchTable,
    "A child, in `children` and `finalize`": language.ChildTable,
    "`apply` of a child": language.ApplyTable,
    "`patch` of a child, in place of template or object": language.PatchTable,
    "An entry of `observe`": language.ObserveTable,
    "An entry of `conditions`": language.ConditionTable,
    "An entry of `validate`": language.ValidateTable,
    "`schema` of a watch": SchemaTable,
}


def agents_page() -> str:
    text = importlib.resources.files(__package__).joinpath("agents.md").read_text(encoding="utf-8")
    filters = ", ".join(f"`{name}`" for name in sorted(FILTER_NAMES))
    return text.replace("<!-- filters -->", filters).replace("<!-- keys -->\n", "\n".join(_key_tables()))


def _key_tables() -> Iterator[str]:
    for title, table in _TABLES.items():
        rows = "".join(f"| `{key.name}` | {_meaning(key)} |\n" for _, key in keys(table))
        yield f"| {title} | |\n|---|---|\n{rows}"


def _meaning(key: Key) -> str:
    options = key.type.options if isinstance(key.type, Choice) else ()
    notes = [key.doc, *(["Required."] if key.required else [])]
    if options:
        notes.append(f"One of {', '.join(f'`{each}`' for each in options)}.")
    return " ".join(notes).replace("|", "\\|")
