"""`ruleop generate`: files that are made from the rules or from ruleop itself."""

from __future__ import annotations

from typing import Final

import click

from ruleop.cli.program import CommandGroup

COMMANDS: Final = {
    "crd": "Print the CustomResourceDefinitions of watches that have `schema`.",
    "schema": "Print the JSON Schema of watches.yaml or of rule tests, for editors.",
}


@click.group(
    cls=CommandGroup,
    lines=COMMANDS,
    prefix="generate_",
    example="ruleop generate crd --out crds/",
    no_args_is_help=True,
)
def command() -> None:
    """Generate files: CRDs, the JSON Schema for editors.

    The same input gives the same bytes each time.
    """
