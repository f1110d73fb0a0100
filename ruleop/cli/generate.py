"""`ruleop generate`: files that are made from the rules or from ruleop itself."""

from __future__ import annotations

from typing import Final

import click

from ruleop.cli.program import CommandGroup

COMMANDS: Final = {
    "argocd": "Print the health of the kinds for Argo CD.",
    "bundle": "Make a bundle for the Operator Lifecycle Manager.",
    "crd": "Print the CustomResourceDefinitions of watches that have `schema`.",
    "dashboard": "Print a Grafana dashboard of the operator, or its alerts.",
    "docs": "Print a reference of the kinds for people who write custom resources, in Markdown.",
    "graph": "Draw the rules: children, observed objects, and what depends on what.",
    "helm": "Make a Helm chart that installs the operator.",
    "image": "Print a Dockerfile that puts the rules on the generic image.",
    "manifests": "Print the objects that install the operator, for kubectl or kustomize.",
    "policy": "Print admission policies of the rules of `validate`.",
    "rbac": "Print the service account and the roles of the operator.",
    "schema": "Print the JSON Schema of watches.yaml, rule tests or ruleop.yaml, for editors.",
}

_RULES: Final = ("argocd", "docs", "graph", "policy", "schema")


@click.group(
    cls=CommandGroup,
    lines=COMMANDS,
    homes={name: f"generate_{'rules' if name in _RULES else 'installation'}.generate_{name}" for name in COMMANDS},
    example="ruleop generate crd --out crds/",
    no_args_is_help=True,
)
def command() -> None:
    """Generate what a cluster needs: CRDs, roles, manifests, a chart.

    The same input gives the same bytes each time.
    """
