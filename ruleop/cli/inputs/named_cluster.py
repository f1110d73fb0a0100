"""The cluster and the operator that the options of a command name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ruleop.cli.inputs.operator_name import operator_name
from ruleop.operator.wire.cluster_flags import Access

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_access(folder: str, flags: Mapping[str, Any]) -> Access:
    """The values of `cluster_options`, taken out of all flags of a command on the project in a folder. Raises
    ProjectErrors if ruleop.yaml is invalid: the command could work on another operator."""
    given = {name: flags[name] for name in ("kubeconfig", "context", "namespace", "operator_namespace")}
    return Access(**given, name=operator_name(folder, flags["name"]))
