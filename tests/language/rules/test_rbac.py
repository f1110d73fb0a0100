"""`rbac` in a watch: rules of a role, which the author of the rules grants the operator."""

from __future__ import annotations

import pytest

from tests.language.rules.projects import rule, said, watch

RULE = "{apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, update]}"


def test_a_permission_is_read_as_it_is_written():
    (found,) = rule(f"rbac: [{RULE}]\nchildren: {{}}").reach.rbac
    assert (found.groups, found.resources) == (("apps",), ("deployments", "deployments/scale"))
    assert (found.verbs, found.names) == (("get", "update"), ())
    assert (found.site.line, found.site.column) == (4, 10)


def test_a_permission_changes_no_plan():
    assert rule(f"rbac: [{RULE}]\nchildren: {{}}").digest == rule("children: {}").digest


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{apiGroups: [apps], verbs: [get]}", 'a permission needs the key "resources"'),
        ("{apiGroups: [apps], resources: [], verbs: [get]}", "is an empty list"),
        ("{apiGroups: [Apps], resources: [pods], verbs: [get]}", "must be an API group"),
        ("{apiGroups: [''], resources: [Pod], verbs: [get]}", "must be a resource in the plural"),
        ("{apiGroups: [''], resources: [pods], verbs: [GET]}", "must be a verb"),
        (
            "{apiGroups: [''], resources: [pods], verb: [get]}",
            'unknown key "verb" in a permission (did you mean "verbs"?)',
        ),
    ],
)
def test_a_mistake_in_a_permission_is_reported_at_its_place(written: str, message: str):
    assert any(message in each for each in said(watch(f"rbac: [{written}]\nchildren: {{}}")))
