"""The cluster and the operator that the options of a command name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleop.authoring.generate.installation.operator_choices import read_choices
from ruleop.core.rules import ProjectErrors
from ruleop.operator.kube.cluster_flags import Access

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_access(folder: str, flags: Mapping[str, Any]) -> Access:
    """The values of `cluster_options`, taken out of all flags of a command on the project in a folder."""
    given = {name: flags[name] for name in ("kubeconfig", "context", "namespace", "operator_namespace")}
    return Access(**given, name=flags["name"] or _name(folder))


def _name(folder: str) -> str:
    try:
        return read_choices(Path(folder)).name
    except ProjectErrors:  # reported by loading
        return Access().name
