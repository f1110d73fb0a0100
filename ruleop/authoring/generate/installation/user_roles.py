"""Roles for people who work with the custom resources of a project. They are part of Kubernetes' own roles view, edit
and admin, so that who may edit a namespace may edit the custom resources in it. Only the operator writes the status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.yaml_layout import Noted
from ruleop.core.planning.model.rbac_children import RBAC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.generate.installation.operator_choices import Choices
    from ruleop.core.kinds import Object
    from ruleop.core.rules import Project
    from ruleop.core.schema.crd.crds import CustomResourceDefinition

_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch", "delete", "deletecollection"]
_SCALE: Final = ["update", "patch"]
ROLES: Final = ("view", "edit", "admin")


def user_roles(project: Project, choices: Choices) -> list[Object]:
    """Each role is complete, so that it can also be bound by itself."""
    crds = {(crd.group, crd.kind): crd for crd in project.crds}
    kinds = dict.fromkeys((rule.kind.group, rule.kind.kind) for rule in project.rules)
    watched = [crds[kind] for kind in kinds if kind in crds]
    return [_role(name, watched, choices) for name in ROLES] if watched else []


def _role(name: str, watched: list[CustomResourceDefinition], choices: Choices) -> Object:
    metadata = {"name": f"{choices.name}-{name}", "labels": {f"{RBAC}/aggregate-to-{name}": "true"}}
    rules = [rule for crd in watched for rule in _rules(crd, writes=name != "view")]
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _rules(crd: CustomResourceDefinition, *, writes: bool) -> Iterator[Any]:
    rule = _rule(crd, "", [*_READ, *(_WRITE if writes else ())])
    if crd.namespaced:
        yield rule
    else:
        words = f"{crd.kind} is cluster-scoped: only a ClusterRoleBinding gives access to it, no RoleBinding"
        yield Noted(words, rule)
    served = [each for each in crd.versions if each.served]
    if any(each.status_subresource for each in served):
        yield _rule(crd, "/status", ["get"])
    if any(each.scale_subresource for each in served):
        yield _rule(crd, "/scale", ["get", *(_SCALE if writes else ())])


def _rule(crd: CustomResourceDefinition, subresource: str, verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [crd.group], "resources": [f"{crd.plural}{subresource}"], "verbs": verbs}
