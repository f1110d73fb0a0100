"""`adopt: orphans` with a name and a namespace that the CR decides is reported, and `adopt: helm` without a
namespace."""

from __future__ import annotations

import pytest

from ruleop.language.rules import ProjectErrors
from tests.planning.harness import project

GLOBAL = "- group: example.com\n  version: v1\n  kind: Global\n"
HEAD = "apiVersion: v1\nkind: %s\n"
BLOCK = HEAD + "metadata:\n  labels: {a: b}\n  name: %s\n  namespace: %s\nspec: {name: '{{ spec.x }}'}\n"
FLOW = HEAD + "metadata: {name: %s, namespace: %s}\n"
FROM_CR, OWN = '"{{ spec.name }}"', '"{{ metadata.namespace }}"'


def warnings(body: str, **files: str) -> list[str]:
    return [each.message for each in project(body, **files).findings if each.code == "adopts-any"]


@pytest.mark.parametrize("text", [BLOCK, FLOW])
@pytest.mark.parametrize(
    ("name", "namespace", "warns"),
    [
        (FROM_CR, FROM_CR, True),
        ("x-{{ spec.name }}", "{{ spec.place }}", True),
        ("fixed", FROM_CR, False),
        (FROM_CR, "fixed", False),
        (FROM_CR, OWN, False),
        (FROM_CR, '"{{ vars.place }}"', False),
    ],
)
def test_a_template_whose_name_and_namespace_come_from_the_cr_is_warned_of(
    text: str, name: str, namespace: str, warns: bool
):
    a = text % ("ConfigMap", name, namespace)
    body = "vars: {place: far}\nreach: cluster\nchildren: {a: {template: a.yaml, adopt: orphans}}"
    assert bool(warnings(body, a=a)) == warns
    assert not warnings(body.replace(", adopt: orphans", ""), a=a)


@pytest.mark.parametrize(("namespace", "warns"), [("far", False), ("'{{ spec.place }}'", True)])
def test_an_inline_object_whose_name_and_namespace_come_from_the_cr_is_warned_of(namespace: str, warns: bool):
    (message, *_), expected = (
        (
            warnings(
                f"reach: cluster\nchildren: {{a: {{adopt: orphans, namespace: {namespace}, object: "
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ spec.name }}'}}}}"
            )
            or ["none"]
        ),
        "with `adopt: orphans`, a CR that decides the name and the namespace can take over any object of this kind that has no owner: leave `adopt` out, or make one of them constant",
    )
    assert message == (expected if warns else "none")


def test_a_cluster_scoped_object_whose_name_comes_from_the_cr_is_warned_of():
    a = "apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ spec.name }}'}\n"
    assert len(warnings("reach: cluster\nchildren: {a: {template: a.yaml, adopt: orphans}}", a=a)) == 1
    assert not warnings("reach: cluster\nchildren: {a: {template: a.yaml}}", a=a)


def test_a_name_from_the_cr_without_reach_is_not_warned_of():
    a = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ spec.name }}'}\n"
    assert not warnings("children: {a: {template: a.yaml, adopt: orphans}}", a=a)


def test_a_cluster_scoped_cr_has_no_helm_release():
    body = "reach: cluster\nchildren: {a: {template: a.yaml, adopt: helm}}"
    a = FLOW % ("ConfigMap", "web", "far")
    assert project(body, a=a).rules[0].adopts_helm_releases
    with pytest.raises(ProjectErrors, match="`adopt: helm` needs a CR with a namespace, as a Helm release has one"):
        project(body, GLOBAL, a=a)
