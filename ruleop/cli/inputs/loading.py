"""The project as its authors load it: `ruleop.yaml` gives values to variables that the rules read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.cli.inputs.project import read_rule_files, variables
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.checking import checked
from ruleop.language.rules.operator_choices import read_choices

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ruleop.cli.inputs.project import Folder
    from ruleop.language.rules import Finding
    from ruleop.language.rules.loading import Loaded


def load_with_sources(folder: Folder, env_files: Iterable[str]) -> Loaded:
    """The project for its author, with what the rules were made from. Raises the same, also for ruleop.yaml."""
    try:
        environ = project_variables(folder, env_files)
    except ProjectErrors as errors:
        raise ProjectErrors({*errors.findings, *_other_mistakes(folder, env_files)}) from None
    return checked(read_rule_files(folder), environ=environ)


def project_variables(folder: Folder, env_files: Iterable[str]) -> Mapping[str, str]:
    """The variables that watches.yaml can read, with those that ruleop.yaml gives. Raises ProjectErrors."""
    return {**read_choices(Path(folder.name)).env, **variables(env_files)}


def _other_mistakes(folder: Folder, env_files: Iterable[str]) -> Iterable[Finding]:
    """Those of the rules, except variables: ruleop.yaml may give them."""
    try:
        return checked(read_rule_files(folder), environ=variables(env_files)).project.findings
    except ProjectErrors as errors:
        return [each for each in errors.findings if each.code != "environment"]
