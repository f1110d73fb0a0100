"""Names and labels that the API server would reject, and names that two objects would share."""

import pytest

from tests.authoring.checking.projects import said
from tests.definitions import definition
from tests.language.rules.projects import watch

FREE = "{type: object, properties: {team: {type: string}, tier: {type: string, enum: [a, b]}, code: {type: string, pattern: '^[a-z]+$'}, size: {type: integer}, names: {type: array, items: {type: string}}}}"


def names(template: str, *, kind: str = "v1/ConfigMap", body: str = "", child: str = "", spec: str = FREE) -> list[str]:
    version, _, name = kind.rpartition("/")
    files = {
        "templates/a.yaml": f"apiVersion: {version}\nkind: {name}\nmetadata:\n  {template}\n",
        "crds/apps.yaml": definition(spec=spec),
    }
    watches = watch(f"{body}\nchildren:\n  a:\n    template: a.yaml\n    {child}")
    return [
        each.replace("templates/a.yaml:", "").partition(": warning: ")[2] or each.replace("templates/a.yaml:", "")
        for each in said(watches, files)
        if each.startswith(("RO504", "RO505"))
    ]


TO_DO = "make one with `dns_label`, or give the field a pattern and a maxLength in the CRD"


@pytest.mark.parametrize(
    ("template", "kind", "message"),
    [
        ("name: '{{ metadata.name }}_web'", "v1/ConfigMap", '"_" cannot be in a name'),
        ("name: Web-{{ metadata.name }}", "v1/ConfigMap", '"W" cannot be in a name'),
        ("name: web.{{ metadata.name }}", "v1/Service", '"." cannot be in a name'),
        ("name: {{ metadata.name }}-" + 70 * "x", "v1/Service", "this name has at least 71 characters, and at most 63"),
        (
            "name: {{ metadata.name }}-" + 52 * "x",
            "batch/v1/CronJob",
            "this name has at least 53 characters, and at most 52",
        ),
        ("namespace: Team", "v1/ConfigMap", '"T" cannot be in a namespace'),
        ("labels: {a: 'x y'}", "v1/ConfigMap", '" " cannot be in a label value'),
        ("labels: {a: '{{ metadata.name }}/x'}", "v1/ConfigMap", '"/" cannot be in a label value'),
    ],
)
def test_literal_characters_that_no_name_can_have_are_errors(template, kind, message):
    (found, *_) = names(template + "\n  name: {{ metadata.name }}" * ("name:" not in template), kind=kind, body="")
    assert message in found


SHORT = "{type: object, properties: {team: {type: string, pattern: '^[a-z]+$', maxLength: 40}, code: {type: string, pattern: '^[a-z]+$'}}}"


@pytest.mark.parametrize(
    ("name", "kind", "lengths"),
    [
        ("{{ spec.team }}-backup-of-web", "batch/v1/CronJob", "54 characters here, and the API server at most 52"),
        ("{{ spec.team }}-{{ spec.team }}", "v1/Service", "81 characters here, and the API server at most 63"),
        ("{{ spec.team }}-web", "batch/v1/CronJob", ""),
        ("{{ spec.team }}-{{ spec.team }}", "apps/v1/Deployment", ""),
        ("{{ spec.team }}-{{ spec.code }}-backup-of-web", "batch/v1/CronJob", ""),
        ("{{ spec.team | upper }}-backup-of-web", "batch/v1/CronJob", ""),
    ],
)
def test_a_name_is_too_long_for_its_kind_if_all_its_parts_are_bounded(name, kind, lengths):
    found = [each for each in names(f"name: '{name}'", kind=kind, spec=SHORT) if "would have the same name" not in each]
    assert len(found) == bool(lengths)
    assert lengths in "".join(found)


def test_labels_of_a_custom_kind_are_its_own():
    text = "name: '{{ metadata.name }}'\nspec: {groups: [{rules: [{labels: {severity: 'very bad'}}]}]}"
    assert names(text, kind="monitoring.coreos.com/v1/PrometheusRule") == []


def test_a_name_of_free_text_is_a_warning():
    assert names("name: '{{ metadata.name }}-{{ spec.team }}'") == [
        f"`spec.team` may be any text, and so no valid name: {TO_DO}"
    ]


@pytest.mark.parametrize(
    "value",
    [
        "{{ spec.team | dns_label }}",
        "{{ spec.team | sha256 }}",
        "{{ spec.tier }}",
        "{{ spec.code }}",
        "{{ spec.size }}",
        "{{ spec.names | length }}",
        "{{ spec.unknown }}",
    ],
)
def test_a_bounded_value_can_be_part_of_a_name(value):
    assert names(f"name: '{{{{ metadata.name }}}}-{value}'") == []


def test_free_text_is_followed_through_let_items_and_loops():
    found = names(
        "name: '{{ metadata.name }}-{{ short }}-{{ item }}'",
        body="let: {short: '{{ spec.team | lower }}'}",
        child="forEach: spec.names",
    )
    assert sorted(each.partition("` ")[0] for each in found) == ["`item", "`short"]


def test_a_value_checked_by_validate_or_when_counts_as_bounded():
    template = "name: '{{ metadata.name }}-{{ spec.team }}'"
    assert names(template, body="validate:\n  - {rule: spec.team | length < 9, message: too long}") == []
    assert names(template, child="when: spec.team is not defined") == []


def test_a_rule_of_the_crd_bounds_what_it_mentions():
    rule = "{rule: \"self.team.matches('^[a-z]+$')\"}"
    spec = f"{{type: object, x-kubernetes-validations: [{rule}], properties: {{team: {{type: string}}, other: {{type: string}}}}}}"
    assert names("name: '{{ metadata.name }}-{{ spec.team }}'", spec=spec) == []
    assert names("name: '{{ metadata.name }}-{{ spec.other }}'", spec=spec) != []


def test_names_of_roles_may_have_any_characters():
    assert names("name: 'System:{{ metadata.name }}'", kind="rbac.authorization.k8s.io/v1/Role") == []


def test_a_constant_name_is_shared_by_all_resources_of_a_namespace():
    assert names("name: web") == [
        "the ConfigMap of two Apps of one namespace would have the same name: use metadata.name in it"
    ]
    assert names("name: '{{ vars.prefix }}-web'", body="vars: {prefix: a}") != []
    assert names("name: '{{ metadata.namespace }}-web'") != []


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("{{ metadata.name | sha256 }}", ""),
        ("{{ cr.metadata.uid }}", ""),
        ("{{ full }}-x", "let: {full: '{{ metadata.name }}'}"),
        ("{{ names.full }}-x", "let: {names: {full: '{{ metadata.name }}'}}"),
        ("{{ spec.code }}", ""),
        ("{{ other.data.name }}", "observe: {other: {version: v1, kind: ConfigMap, name: a}}"),
    ],
)
def test_a_name_derived_from_the_resource_is_unique(name, body):
    assert names(f'name: "{name}"', body=body) == []


def test_items_of_a_loop_need_different_names():
    child = "forEach: spec.names\n    as: each"
    assert names("name: '{{ metadata.name }}-x'", child=child) == [
        "the ConfigMap of each item of `forEach` would have the same name: use `each` or `index` in it"
    ]
    assert names("name: '{{ metadata.name }}-{{ index }}'", child=child) == []
    assert names("name: '{{ metadata.name }}-{{ each | dns_label }}'", child=child) == []


def test_items_of_each_loop_need_different_names():
    child = "forEach: {each: spec.names, part: each.parts, other: spec.names}"
    would = "the ConfigMap of each item of `forEach` would have the same name: use"
    assert names("name: '{{ metadata.name }}-{{ part | dns_label }}'", child=child) == [
        f"{would} `other` or `index` in it"
    ]
    assert names("name: '{{ metadata.name }}-{{ (each ~ other) | dns_label }}'", child=child) == [
        f"{would} `part` or `index` in it"
    ]
    assert names("name: '{{ metadata.name }}-{{ (part ~ other) | dns_label }}'", child=child) == []
    assert names("name: '{{ metadata.name }}-{{ index }}'", child=child) == []


def test_a_template_in_a_constant_namespace_is_outside_of_its_resources():
    def found(namespace: str, body: str = "") -> list[str]:
        text = (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ metadata.name }}}}\n  namespace: {namespace}\n"
        )
        watches = watch(f"{body}\nchildren:\n  a:\n    template: a.yaml")
        return [each for each in said(watches, {"templates/a.yaml": text}) if each.startswith("RO501")]

    (only,) = found("kube-system")
    assert only == (
        'RO501 templates/a.yaml:5:14: warning: the child "a" is in the namespace kube-system, whatever that of its CR '
        "is: set `reach: cluster` in the watch to allow that"
    )
    assert found("shop", body="namespaces: [shop]") == []
    assert found("shop", body="reach: cluster") == []
    assert found("{{ metadata.namespace }}") == []
    assert found("{{ spec.namespace }}") == []


def test_items_may_differ_in_their_namespace():
    child = "forEach: spec.names\n    as: each"
    found = names(
        "name: '{{ metadata.name }}'\n  namespace: '{{ each | dns_label }}'", child=child, body="reach: cluster"
    )
    assert found == []


CHILD = "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n"


def two(first: str, second: str, more: str = "", kind: str = "ConfigMap") -> list[str]:
    files = {
        "templates/a.yaml": CHILD.format(name=first, kind="ConfigMap"),
        "templates/b.yaml": CHILD.format(name=second, kind=kind),
        "crds/apps.yaml": definition(spec=FREE),
    }
    return said(watch(f"children:\n  a: {{template: a.yaml}}\n  b:\n    template: b.yaml\n    {more}"), files)


def test_two_children_have_names_of_their_own():
    same = "{{ metadata.name }}-x"
    assert two(same, same) == [
        'RO505 templates/b.yaml:4:9: the ConfigMap has the same name as that of "a": choose another'
    ]
    assert two(same, "{{ metadata.name }}-y") == []
    assert two(same, same, kind="Secret") == []
    assert two(same, same, more="when: spec.size is defined") == []
