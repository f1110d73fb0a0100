"""`ruleop generate schema`."""

from __future__ import annotations

import click

from ruleop.authoring.generate.installation.operator_choices import choices_schema
from ruleop.authoring.ruletests.format import test_schema
from ruleop.authoring.scaffold.schemas import CHOICES, TESTS, WATCHES, schema_text
from ruleop.cli.generating.generated import generated_options, print_or_write
from ruleop.cli.program import Command, UsageError
from ruleop.core.rules import watches_schema


@click.command(cls=Command, example="ruleop generate schema --out schemas/")
@click.option("--tests", is_flag=True, help="The schema of rule tests (*.test.yaml), instead of that of watches.yaml.")
@click.option("--choices", is_flag=True, help="The schema of ruleop.yaml, instead of that of watches.yaml.")
@generated_options
def command(tests: bool, choices: bool, out: str, check: bool) -> int:
    """Print the JSON Schema of watches.yaml, of rule tests or of ruleop.yaml, for editors.

    --out writes all to files, or with --tests or --choices one. An editor with the YAML language server finds a schema
    by a comment at the top of a file, such as `# yaml-language-server: $schema=schemas/watches.schema.json`. Exit
    status 0: done. 1: --check found a file that is missing or not current. 2: wrong usage, or a file cannot be written.
    """
    files = schema_files()
    if tests and choices:
        raise UsageError("--tests and --choices exclude each other")
    name = TESTS if tests else CHOICES if choices else WATCHES
    return print_or_write(files if name == WATCHES else {name: files[name]}, files[name], out=out, check=check)


def schema_files() -> dict[str, str]:
    """The text of each schema, by the name of its file."""
    return {
        WATCHES: schema_text(watches_schema()),
        TESTS: schema_text(test_schema()),
        CHOICES: schema_text(choices_schema()),
    }
