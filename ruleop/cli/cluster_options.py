"""The options of the commands that read a cluster. A command that has them works without a cluster too, so this imports
no client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from ruleop.kube.access import Access

F = TypeVar("F", bound=Callable[..., Any])

KUBECONFIG: Final = "Path of the kubeconfig. Default: $KUBECONFIG, the pod's service account, ~/.kube/config."
CONTEXT: Final = "Context of the kubeconfig. Default: the current one."


def flag(name: str, **settings: Any) -> Callable[[F], F]:
    """An option that is also read from RULEOP_<NAME>."""
    variable = "RULEOP_" + name.split("/", maxsplit=1)[0].lstrip("-").upper().replace("-", "_")
    return click.option(name, envvar=variable, show_envvar=True, **settings)


def cluster_options(command: F) -> F:
    """The options that name a cluster, a namespace in it, and its operator."""
    options: list[Callable[[F], F]] = [
        click.option("-n", "--namespace", default="", metavar="NS", help="Namespace. Default: the context's."),
        flag("--kubeconfig", default="", metavar="FILE", help=KUBECONFIG),
        flag("--context", default="", metavar="NAME", help=CONTEXT),
        flag(
            "--name",
            default="ruleop",
            show_default=True,
            metavar="NAME",
            help="Name of the operator, as in `ruleop run --name`.",
        ),
        flag(
            "--operator-namespace",
            default="",
            metavar="NAMESPACE",
            help="Namespace of the operator's inventory. Default: it is searched in all namespaces.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def access_of(flags: Mapping[str, Any]) -> Access:
    """The values of `cluster_options`, taken out of all flags of a command."""
    return Access(
        **{name: flags[name] for name in ("kubeconfig", "context", "namespace", "name", "operator_namespace")}
    )
