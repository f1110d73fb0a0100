"""Selectors of Services, PodDisruptionBudgets and NetworkPolicies that select the Pods of no child.

Such a Service has no endpoints, and such a budget guards nothing; nothing reports it in a cluster. Labels are compared
as far as they are known before anything is rendered. A selector may be for Pods of others: nothing is reported where
the rule makes no Pods, observes some, or has a child of a custom kind whose controller may make some.

A workload whose own selector does not match the labels of its Pods is refused by the API server.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ruleop.authoring.checking.known_names import OF_CR, KnownMembers, KnownName, KnownNames, can_be, may_be, shown
from ruleop.authoring.checking.pods import MAKE_NOTHING, pod_template
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.kubernetes.kinds import GroupKind

if TYPE_CHECKING:
    from ruleop.errors import Site
    from ruleop.language.rules import Findings
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates.bodies.body import Body, BodyField, FieldPath

_SELECTOR: Final = ("spec", "selector")
_POLICY: Final = GroupKind("networking.k8s.io", "NetworkPolicy")
_SELECTORS: Final[dict[GroupKind, FieldPath]] = {
    GroupKind("", "Service"): _SELECTOR,
    GroupKind("policy", "PodDisruptionBudget"): _SELECTOR,
    _POLICY: ("spec", "podSelector"),
}
_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})
_SET_BY_CONTROLLERS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels that Pods have without being in a template."""
_END: Final = frozenset({"Job", "CronJob"})
"""Kinds whose Pods serve nothing: a rule of these alone selects the Pods of others."""


class _Required(NamedTuple):
    """A label that a selector requires."""

    values: tuple[KnownName, ...]  # one of them; none: any
    site: Site


@dataclass(frozen=True, slots=True)
class _Pods:
    child: str
    labels: KnownMembers
    end: bool


@dataclass(slots=True)
class _Made:
    """The Pods that the children of a watch make."""

    pods: list[_Pods] = field(default_factory=list)
    may_be_others: bool = False


def check_selectors(all_names: list[KnownNames], findings: Findings) -> None:
    """Of all watches together: a child may be a custom resource of another one."""
    all_made = [_made(names) for names in all_names]
    everyone = [pods for made in all_made for pods in made.pods]
    for names, made in zip(all_names, all_made, strict=True):
        for part in names.sources.body_parts:
            _check_own(part, names, findings)
            if made.may_be_others or all(pods.end for pods in made.pods):
                continue
            for body in names.sources.bodies(part):
                required = _required(body, part, names)
                if required and not any(_match(required, pods.labels) for pods in everyone):
                    _report(required, body.kind.versionless, made.pods, findings)


def _made(names: KnownNames) -> _Made:
    found = _Made()
    for part in names.sources.body_parts:
        bodies, kinds = names.sources.bodies(part), part.child.kinds if part.child is not None else frozenset()
        read = {body.kind for body in bodies}
        found.may_be_others |= any(each not in read and pod_template(each.versionless) is not None for each in kinds)
        custom = {each.versionless for each in kinds if builtin_resource(each) is None}
        found.may_be_others |= not custom <= MAKE_NOTHING
        is_partial = part.child is not None and part.child.table.patch is not None
        for body in bodies:
            if (template := pod_template(body.kind.versionless)) is not None:
                labels = names.of_members(body, (*template, "metadata", "labels"), part)
                labels.is_open |= is_partial
                child = part.child.id if part.child is not None else ""
                found.pods.append(_Pods(child, labels, body.kind.kind in _END))
    for entry in names.sources.watch.draft.observed.values():
        table = entry.value
        if table is not None and table.kind is not None:
            found.may_be_others |= pod_template(GroupKind(table.group.text, table.kind.text)) is not None
    return found


# -- what a selector requires ------------------------------------------------------------------------------------------


def _required(body: Body, part: RulePart, names: KnownNames) -> dict[str, _Required]:
    """The labels that a selector for Pods requires, as far as they are known."""
    kind = body.kind.versionless
    path = _SELECTORS.get(kind)
    if path is None:
        return {}
    if kind.group == "":
        return _labels(names.of_members(body, path, part), body, path)
    return _full(body, path, part, names)


def _full(body: Body, path: FieldPath, part: RulePart, names: KnownNames) -> dict[str, _Required]:
    """The labels of `matchLabels` and `matchExpressions`."""
    of_labels = (*path, "matchLabels")
    found = _labels(names.of_members(body, of_labels, part), body, of_labels)
    expressions: dict[object, dict[object, list[BodyField]]] = defaultdict(lambda: defaultdict(list))
    for each in body.fields:
        if each.path[: len(path) + 1] == (*path, "matchExpressions") and len(each.path) > len(path) + 2:
            expressions[each.path[len(path) + 1]][each.path[len(path) + 2]].append(each)
    for members in expressions.values():
        key, operator = members["key"], members["operator"]
        if len(key) == len(operator) == 1 and not any(key[0].slots) and operator[0].value in ("In", "Exists"):
            allowed = tuple(names.of_field(each, part) for each in members["values"])
            found.setdefault(str(key[0].value), _Required(allowed, key[0].site))
    return found


def _labels(members: KnownMembers, body: Body, path: FieldPath) -> dict[str, _Required]:
    whole = next((each.site for each in body.fields if each.path == path), None)
    found = {}
    for key, value in members.known.items():
        written = members.fields.get(key)
        site = written.site if written is not None else whole
        if site is not None:
            found[key] = _Required((value,), site)
    return found


def _match(required: dict[str, _Required], labels: KnownMembers) -> bool:
    """Whether Pods with these labels may be selected."""
    return all(_has(key, each, labels) for key, each in required.items())


def _has(key: str, required: _Required, labels: KnownMembers) -> bool:
    if key not in labels.known:
        return labels.is_open or key in _SET_BY_CONTROLLERS
    return not required.values or any(may_be(value, labels.known[key]) for value in required.values)


# -- findings ----------------------------------------------------------------------------------------------------------


def _report(required: dict[str, _Required], kind: GroupKind, made: list[_Pods], findings: Findings) -> None:
    similar = max(made, key=lambda pods: sum(_has(key, each, pods.labels) for key, each in required.items()))
    wrong = {key: each for key, each in required.items() if not _has(key, each, similar.labels)}
    if kind == _POLICY and not _is_for_own(wrong, similar.labels):
        return
    key, first = next(iter(wrong.items()))
    of_pods = similar.labels.known.get(key)
    has = f"{key}: {shown(of_pods)}" if of_pods is not None else f"no label {key}"
    message = (
        f'selects the Pods of no child: {_text(key, first)} is required, and the Pods of "{similar.child}" have {has}'
    )
    findings.warning("unmatched-selector", message, first.site)


def _is_for_own(wrong: dict[str, _Required], labels: KnownMembers) -> bool:
    """Whether a selector that may be for Pods of others is meant for these: it has their keys, and the name of the
    CR."""
    return all(key in labels.known for key in wrong) and any(
        OF_CR in value for each in wrong.values() for value in each.values
    )


def _text(key: str, required: _Required) -> str:
    return f"{key}: {' or '.join(map(shown, required.values))}" if required.values else key


def _check_own(part: RulePart, names: KnownNames, findings: Findings) -> None:
    """Of a workload, in all bodies that have the place: some may never be rendered."""
    if part.child is None or part.child.table.patch is not None:
        return
    seen: dict[Site, list[str]] = {}
    for body in names.sources.bodies(part):
        template = pod_template(body.kind.versionless)
        if template is None or body.kind.kind not in _WORKLOADS:
            continue
        of_pods = (*template, "metadata", "labels")
        labels = names.of_members(body, of_pods, part)
        compared = [each for each in body.fields for path in (_SELECTOR, of_pods) if each.path[: len(path)] == path]
        has_slots = any(slot for each in compared for slot in each.slots)  # literals are refused as such
        for key, each in _full(body, _SELECTOR, part, names).items():
            seen.setdefault(each.site, []).append(_refusal(key, each, labels) if has_slots else "")
    for site, refusals in seen.items():
        if all(refusals):
            findings.mistake("unmatched-selector", refusals[0], site)


def _refusal(key: str, required: _Required, labels: KnownMembers) -> str:
    """The reason that the API server refuses a workload; "" if it may accept it."""
    value = labels.known.get(key)
    if value is None:
        return (
            "" if labels.is_open else f"the selector requires the label {key}, and the Pods of the template have none"
        )
    if not required.values or any(can_be(each, value) for each in required.values):
        return ""
    return f"the selector requires {_text(key, required)}, and the Pods of the template have {key}: {shown(value)}"
