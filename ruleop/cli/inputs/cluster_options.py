"""The options of the commands that read a cluster. A command that has them works without a cluster too, so this imports
no client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

KUBECONFIG: Final = "Path of the kubeconfig. Default: $KUBECONFIG, the pod's service account, ~/.kube/config."
CONTEXT: Final = "Context of the kubeconfig. Default: the current one."
DEFAULT_NAME: Final = "Default: that of ruleop.yaml, or ruleop."


def flag(name: str, **settings: Any) -> Callable[[F], F]:
    """An option that is also read from RULEOP_<NAME>."""
    variable = "RULEOP_" + name.split("/", maxsplit=1)[0].lstrip("-").upper().replace("-", "_")
    return click.option(name, envvar=variable, show_envvar=True, **settings)


def connection_options(command: F) -> F:
    """The options that name a cluster."""
    command = flag("--context", default="", metavar="NAME", help=CONTEXT)(command)
    return flag("--kubeconfig", default="", metavar="FILE", help=KUBECONFIG)(command)


def operator_options(command: F) -> F:
    """The options that name an operator."""
    command = flag(
        "--operator-namespace",
        default="",
        metavar="NAMESPACE",
        help="Namespace of the operator's inventory. Default: it is searched in all namespaces.",
    )(command)
    help_ = f"Name of the operator, as in `ruleop run --name`. {DEFAULT_NAME}"
    return flag("--name", default="", metavar="NAME", help=help_)(command)


def cluster_options(command: F) -> F:
    """The options that name a cluster, a namespace in it, and its operator."""
    command = connection_options(operator_options(command))
    return click.option("-n", "--namespace", default="", metavar="NS", help="Namespace. Default: the context's.")(
        command
    )


# -- local cluster options ---------------------------------------------------------------------------------------------
#
# The options of the commands that start a cluster in memory.


port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the API server. Default: a free one."
)


def new_file(_context: click.Context, parameter: click.Parameter, path: str) -> str:
    """The callback of an option that names a file to write."""
    if path and Path(path).exists():
        raise click.BadParameter(f"{path} exists; name a file that does not", param_hint=parameter.opts[0])
    return path


# -- operator name -----------------------------------------------------------------------------------------------------
#
# The name of the project's operator.


def operator_name(folder: str, given: str) -> str:
    """That of `--name`, else that of `ruleop.yaml`. Raises ProjectErrors."""
    if given:
        return given
    # An operator in a cluster has no such file: the manifests that are generated from it give the name.
    from ruleop.language.rules.operator_choices import read_choices  # noqa: PLC0415

    return read_choices(Path(folder)).name
