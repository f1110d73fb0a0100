"""The choices for an operator in a cluster: those of `ruleop.yaml`, or of options, which override them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from ruleop.cli.program import UsageError
from ruleop.language.rules import operator_choices
from ruleop.language.rules.operator_choices import Choices, Rules, read_choices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ruleop.language.rules.keys.value_types import TextValue

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final[dict[str, tuple[TextValue, str, str]]] = {
    "name": (
        operator_choices.NAME,
        "NAME",
        "The name of the operator: of its account, roles, Lease, inventory and release.",
    ),
    "namespace": (operator_choices.NAMESPACE, "NAMESPACE", "The namespace in which the operator runs."),
    "namespaces": (operator_choices.NAMESPACE, "A,B", "The namespaces that it watches. Default: all."),
    "image": (operator_choices.IMAGE, "IMAGE", f"The image that runs. Default: {operator_choices.GENERIC_IMAGE}."),
    "rules-image": (
        operator_choices.RULES_IMAGE,
        "IMAGE",
        "An image of the rules alone, with its digest, mounted in place of a ConfigMap. Needs Kubernetes 1.35.",
    ),
    "version": (operator_choices.VERSION, "VERSION", "The version of the operator that these rules make."),
}


def choice_options(*names: str) -> Callable[[F], F]:
    """Options for these choices. All default to `ruleop.yaml`."""

    def decorate(command: F) -> F:
        for name in reversed(names):
            if name == "rules":
                text = "Mount the rules on the generic image, or use an image that holds them."
                command = click.option("--rules", type=click.Choice(get_args(Rules)), help=text)(command)
            else:
                _, metavar, text = _OPTIONS[name]
                command = click.option(f"--{name}", default="", metavar=metavar, help=text)(command)
        return command

    return decorate


def chosen(folder: str, flags: Mapping[str, Any]) -> Choices:
    """Raises ProjectErrors with the mistakes of `ruleop.yaml`, and UsageError for an option."""
    found = read_choices(Path(folder))
    given: dict[str, Any] = {}
    for name, value in flags.items():
        if not value:
            continue
        if name == "namespaces":
            names = [each.strip() for each in value.split(",") if each.strip()]
            given[name] = tuple(dict.fromkeys(_valid(name, each, operator_choices.NAMESPACE) for each in names))
        elif name in _OPTIONS:
            given[name] = _valid(name, value, _OPTIONS[name][0])
        elif name == "rules":
            given |= {"rules": value, "rules_image": ""}
        elif name == "rules_image":
            given |= {"rules": "configmap", name: _valid("rules-image", value, operator_choices.RULES_IMAGE)}
    if flags.get("rules") and flags.get("rules_image"):
        raise UsageError("--rules-image mounts an image of rules, and --rules chooses another way: use one of them")
    return replace(found, **given)


def require_image(option: str, value: str) -> None:
    """Raises UsageError."""
    _valid(option, value, operator_choices.IMAGE)


def require_namespace(option: str, value: str) -> None:
    """Raises UsageError."""
    _valid(option, value, operator_choices.NAMESPACE)


def _valid(option: str, value: str, form: TextValue) -> str:
    if not form.fits(value):
        raise UsageError(f'--{option} must be {form.form}, not "{value}"')
    return value
