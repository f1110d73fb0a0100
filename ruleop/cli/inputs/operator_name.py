"""The name of the project's operator."""

from __future__ import annotations

from pathlib import Path


def operator_name(folder: str, given: str) -> str:
    """That of `--name`, else that of `ruleop.yaml`. Raises ProjectErrors."""
    if given:
        return given
    # An operator in a cluster has no such file: the manifests that are generated from it give the name.
    from ruleop.language.rules.loading.operator_choices import read_choices  # noqa: PLC0415

    return read_choices(Path(folder)).name
