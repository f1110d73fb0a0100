"""Finds the kind that a person means: by its kind, its plural, singular or short name, with or without its group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.errors import RuleopError
from ruleop.nearest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection

    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.operator.wire.client.discovery import Catalogue, Served


class UnknownKindError(RuleopError):
    """The cluster serves no kind of this name, or several."""


def find_kind(catalogue: Catalogue, text: str, preferred: Collection[GroupKind] = ()) -> Served:
    """`text`: as in `kubectl get`: App, apps, app, apps.myapp.k8s.io. Of several kinds with this name, that among the
    `preferred` ones is meant."""
    name, _, group = text.lower().partition(".")
    kinds = list(catalogue.preferred.values())
    found = [each for each in kinds if name in _names(each) and _is_group(group, each)]
    if len(found) > 1:
        found = [each for each in found if each.info.kind.versionless in preferred] or found
    if len(found) > 1 and not group:  # as kubectl: built-in kinds of the core group come first
        found = [each for each in found if not each.info.kind.group] or found
    if len(found) == 1:
        return found[0]
    if found:
        titles = " or ".join(sorted(each.info.title for each in found))
        raise UnknownKindError(f"{text} is ambiguous: name {titles}")
    known = {each.info.kind.kind for each in kinds} | {name for each in kinds for name in _names(each)}
    raise UnknownKindError(f"the cluster serves no kind {text!r}{did_you_mean(text.partition('.')[0], sorted(known))}")


def _names(served: Served) -> set[str]:
    return {served.info.kind.kind.lower(), served.info.plural.lower(), *map(str.lower, served.aliases)}


def _is_group(group: str, served: Served) -> bool:
    """Whether the group is this one. A version may precede it, as in `deployments.v1.apps`."""
    kind = served.info.kind
    return group in {"", kind.group, kind.version, f"{kind.version}.{kind.group}"}
