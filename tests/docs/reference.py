"""The generated parts of the pages: all keys in docs/reference/keys.md and docs/testing.md, from the tables that parse
the files; the checks, the reasons of Ready, the filters, and the options of the commands.

`python -m tests.docs.reference` writes the pages again, and the outputs of examples that differ.
"""

from __future__ import annotations

import json
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from typing import Any

from ruleop.authoring.generate.kind_docs import REASONS
from ruleop.authoring.ruletests import format as rule_tests
from ruleop.language.rules.check_ids import CHECKS
from ruleop.language.rules.keys import watches_yaml as language
from ruleop.language.rules.keys.tables import AtMostOne, ExactlyOne, Excludes, Key, Needs, NotBesideMapping, Table, keys
from ruleop.language.templates.filters.registry import FILTERS
from tests.docs.examples import define, examples, make_live, transcript, write
from tests.docs.messages import ROOT
from tests.docs.options import options
from tests.docs.read_names import read_names

KEYS = ROOT / "docs" / "reference" / "keys.md"
TESTING = ROOT / "docs" / "testing.md"
# Each page with its tables, and the level of their headings
REFERENCES = ((KEYS, language.TABLES, "##"), (TESTING, rule_tests.TABLES, "###"))
EXAMPLES = (*sorted((ROOT / "docs" / "rules").glob("*.md")), TESTING)
"""The pages with examples that are run."""
BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"
TITLES = {
    "FileTable": ("watches.yaml as a mapping", "Instead of a list of watches; also an included file."),
    "WatchTable": ("A watch", ""),
    "ChildTable": ("A child", "Of `children` and `finalize`."),
    "PatchTable": (
        "A patch",
        "Of a child: [fields of an object of others](../rules/children.md#fields-of-objects-of-others-patch).",
    ),
    "ObserveTable": ("An observed resource", "Of `observe`."),
    "ConditionTable": ("A condition", "Of `conditions`."),
    "ValidateTable": ("A validation", "Of `validate`."),
    "ApplyTable": ("apply", "Of a file, a watch or a child."),
    "IgnoreTable": ("An ignored path", "Of `ignore`: a path by itself, or with a condition."),
    "FullSelectorTable": ("A selector", "Or a plain mapping of labels and their values."),
    "RequirementTable": ("A requirement", "Of `matchExpressions`."),
    "ExpireTable": ("expire", "Of a watch: [its custom resources end by themselves](../rules/life.md#expire)."),
    "RolloutTable": ("rollout", "Of a watch: [the waves of an edit](../rules/life.md#rollout)."),
    "PolicyRuleTable": ("A permission", "Of `rbac`: a rule of a role."),
    "SchemaTable": (
        "schema",
        "Of a watch: its CustomResourceDefinition in short form. [The words](../rules/status.md#schema).",
    ),
    "OtherVersionTable": ("A version of schema", "Of `versions`."),
    "CelRuleTable": ("A rule of validation", "Of `schema` and its versions; the API server tests it."),
    "ColumnTable": ("A column", "Of `columns`."),
    "ScaleTable": ("scale", "Of `schema`."),
    "CaseTable": ("A case", "A test file is a list of cases."),
    "StepTable": ("A step", "Of `then`."),
    "ExpectTable": ("expect", "Of a case or a step."),
    "ExpectedConditionTable": ("An expected condition", "Of `conditions`: its status alone, or a mapping."),
    "ExistingTable": ("A change of what exists", "Of `existing`, beside files and objects."),
}
WORDS: dict[str, str] = {
    "TextValue": "text",
    "AllowedChecks": "mapping of ids and reasons",
    "Verbatim": "mapping",
    "Fields": "name: type, or fields, or JSON Schema",
    "TypeOfFields": "type, or fields, or JSON Schema",
    "Flag": "true or false",
    "Count": "whole number",
    "NumberOrPercent": "whole number, or percentage",
    "DurationValue": "duration",
    "BareExpression": "expression",
    "GivenObjectsType": "expression",
    "Loops": "expression, or name: expression",
    "Template": "template",
    "TemplateFile": "file below templates/",
    "FieldPath": "path",
    "ListPath": "path",
    "SelectorType": "selector",
    "PatchType": "[a patch](#a-patch)",
    "IgnoreType": "path, or ignored path",
    "StatusType": "mapping with templates, or file below templates/",
    "FileOrObject": "file, or object",
    "OneOrMore": "text, or list of texts",
    "TrueOrList": "`true`, or list of children",
    "ExpectedConditionType": "status, or [an expected condition](#an-expected-condition)",
    "ExistingType": "file, object, or [a change](#a-change-of-what-exists)",
    "RowsType": "list of mappings, or mapping of lists",
}


def reference(tables: Iterable[type[Table]], level: str) -> str:
    return "\n".join("\n".join(_table(table, level)) + "\n" for table in tables)


def _table(table: type[Table], level: str) -> Iterator[str]:
    title, where = TITLES[table.__name__]
    yield f"{level} {title}\n"
    notes = [where, *map(_constraint, table.CONSTRAINTS)]
    if said := " ".join(note for note in notes if note):
        yield textwrap.fill(said, 120, break_on_hyphens=False) + "\n"
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for _, key in keys(table):
        yield f"| `{key.name}` | {_type(key.type)} | {_default(key)} | {_cell(key.doc)} |"


def _constraint(constraint: Any) -> str:
    if isinstance(constraint, ExactlyOne):
        *others, last = (f"`{each}`" for each in constraint.keys)
        return f"Exactly one of {', '.join(others)} and {last}."
    if isinstance(constraint, AtMostOne):
        *others, last = (f"`{each}`" for each in constraint.keys)
        return f"At most one of {', '.join(others)} and {last}."
    if isinstance(constraint, Excludes):
        return f"With `{constraint.key}` none of {', '.join(f'`{name}`' for name in constraint.others)}."
    if isinstance(constraint, Needs):
        instead = f" or `{constraint.or_else}`" if constraint.or_else else ""
        return f"`{constraint.key}` only with `{constraint.other}`{instead}."
    if isinstance(constraint, language.NeedsOrder):
        return "`label` only with `order: label`, which needs it."
    if isinstance(constraint, NotBesideMapping):
        return f"No `{constraint.key}` with names."
    return ""


def _type(type_: Any) -> str:
    match type(type_).__name__:
        case "WordChoice":
            return " or ".join(f"`{option}`" for option in type_.options)
        case "ListOf":
            return f"list: {_type(type_.item)}"
        case "MapOf":
            return f"name: {_type(type_.member)}"
        case "OrTemplate":
            return f"{_type(type_.otherwise)}; or template"
        case "TemplateTree":
            return "mapping with templates" if type_.mapping else "any value with templates"
        case "TemplateValue":
            return f"template: {_type(type_.form)}" if type(type_.form).__name__ == "WordChoice" else "template"
        case "TableOf":
            title = TITLES[type_.table.__name__][0]
            return f"[{title[0].lower()}{title[1:]}](#{title.lower().replace(' ', '-').replace('.', '')})"
        case name:
            return WORDS[name]


def _default(key: Key) -> str:
    if key.required:
        return "required"
    return "" if key.default is None or key.default in ("", [], {}) else f"`{json.dumps(key.default).strip(chr(34))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written(text: str, tables: Iterable[type[Table]], level: str) -> str:
    """The page with the reference as it is now."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{reference(tables, level)}\n{END}{rest.split(END)[1]}"


def checks() -> str:
    rows = (f"| {each.id} | `{each.code}` | {each.title} | {_cell(each.remedy)} |" for each in CHECKS)
    return "\n".join(["| id | code | finds | what to do |", "|---|---|---|---|", *rows]) + "\n"


def reasons() -> str:
    return "\n".join(["| reason | |", "|---|---|", *(f"| {name} | {text} |" for name, text in REASONS.items())]) + "\n"


def filters() -> str:
    """The filters that have an example. Those of Jinja without one are as in Jinja."""
    rows = (
        f"| {_usage(name)} | {_cell(' '.join(cleandoc(each.function.__doc__ or '').split()))} "
        f"| `{_cell(each.example[0])}` gives `{each.example[1]}` |"
        for name, each in FILTERS.items()
        if each.example is not None
    )
    return "\n".join(["| filter | | example |", "|---|---|---|", *rows]) + "\n"


def _usage(name: str) -> str:
    """The filter with its parameters as a template writes them, and its other names."""
    declared = FILTERS[name]
    found = [*signature(declared.function).parameters.values()][2 if declared.needs else 1 :]
    others = (other for other, each in FILTERS.items() if each.function is declared.function and other != name)
    brackets = f"({', '.join(map(_parameter, found))})" if found else ""
    return ", ".join([f"`{name}{brackets}`", *(f"`{other}`" for other in others)])


def _parameter(each: Parameter) -> str:
    if each.kind is Parameter.VAR_POSITIONAL:
        return "..."
    default = repr(each.default) if isinstance(each.default, str) else str(each.default).lower()
    return each.name if each.default is Parameter.empty else f"{each.name}={default}"


TABLES: dict[Path, tuple[str, Callable[[], str]]] = {
    ROOT / "docs" / "checks.md": ("checks", checks),
    ROOT / "docs" / "rules" / "children.md": ("read names", read_names),
    ROOT / "docs" / "rules" / "status.md": ("reasons", reasons),
    ROOT / "docs" / "templates.md": ("filters", filters),
    ROOT / "docs" / "reference" / "options.md": ("options", options),
}
"""The page of each other generated part, with the name in its marks."""


def with_table(text: str, name: str, table: str) -> str:
    """The page with this part as it is now."""
    head, rest = text.split(f"<!-- {name}: begin -->\n")
    return f"{head}<!-- {name}: begin -->\n{table}<!-- {name}: end -->\n" + rest.split(f"<!-- {name}: end -->\n")[1]


def _with_outputs(page: Path, text: str) -> str:
    lines = text.split("\n")
    changes: dict[int, tuple[int, list[str]]] = {}
    for example in examples(page).values():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            os.chdir(root)
            for step in example.steps:
                if step.what == "file":
                    write(root, step)
                    continue
                define(root)
                if step.what == "live":
                    make_live(root, step)
                    continue
                now = transcript(root, step.text)
                if now != step.text:
                    changes[step.line] = (step.text.count("\n"), now.rstrip("\n").split("\n"))
            os.chdir(ROOT)
    for line in sorted(changes, reverse=True):
        count, fresh = changes[line]
        lines[line : line + count] = fresh
    return "\n".join(lines)


if __name__ == "__main__":
    for each, tables, level in REFERENCES:
        each.write_text(written(each.read_text(encoding="utf-8"), tables, level), encoding="utf-8")
    for each, (name, made) in TABLES.items():
        each.write_text(with_table(each.read_text(encoding="utf-8"), name, made()), encoding="utf-8")
    for each in EXAMPLES:
        each.write_text(_with_outputs(each, each.read_text(encoding="utf-8")), encoding="utf-8")
