"""Immutable fields of children that a change of the custom resource would change are reported."""

from __future__ import annotations

import pytest

from tests.authoring.checking.projects import said
from tests.definitions import definition
from tests.language.rules.projects import watch

NAME = "{{ metadata.name }}"
RULE = "x-kubernetes-validations: [{rule: RULE}]"
FIELD = f"{{type: object, properties: {{a: {{type: string, {RULE}}}, b: {{type: string}}, c: {{type: string}}, l: {{type: array, items: {{type: object, properties: {{name: {{type: string}}, class: {{type: string}}}}}}}}}}}}"
POD = "spec: {restartPolicy: Never, containers: [{name: a, image: IMAGE}]}"
REMEDY = "make the field of the spec immutable (`self == oldSelf` in the CRD)"
RECREATE = "or set `apply: {onImmutable: recreate}`"


def found(text: str, *, child: str = "", rule: str = "'true'", body: str = "", more: str = "") -> list[str]:
    """The findings of a child of this text; `rule` is that of spec.a."""
    spec = FIELD.replace("RULE", rule)[:-1] + (f", {more}}}" if more else "}")
    watches = watch(f"{body}\nchildren:\n  it:\n    template: a.yaml\n    {child}")
    files = {"templates/a.yaml": text, "crds/apps.yaml": definition(spec=spec)}
    return [each for each in said(watches, files) if each.startswith(("RO510", "RO511"))]


def claim(value: str = "{{ spec.a }}", name: str = NAME, field: str = "storageClassName") -> str:
    return (
        f"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: '{name}'}}\nspec:\n  {field}: {value}\n"
        "  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: '{{ spec.b }}'}}\n"
    )


def stateful(field: str) -> str:
    return (
        f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: '{NAME}'}}\nspec:\n  {field}\n"
        "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}\n"
    )


CLAIMS = (
    "selector: {matchLabels: {a: b}}\n  volumeClaimTemplates:\n    - metadata: {name: d}\n      spec:\n"
    "        accessModes: [ReadWriteOnce]\n        resources: {requests: {storage: VALUE}}"
)


def test_a_claim_whose_class_can_change_is_reported() -> None:
    (only,) = found(claim())
    assert only == (
        "RO510 templates/a.yaml:5:24: warning: `spec.a` can change, and spec.storageClassName of a "
        f"PersistentVolumeClaim cannot: {REMEDY}"
    )


@pytest.mark.parametrize(
    ("text", "immutable"),
    [
        (
            stateful("selector: {matchLabels: {a: '{{ spec.a }}'}}").replace("a: b", "a: '{{ spec.a }}'"),
            "spec.selector of a StatefulSet",
        ),
        (stateful(CLAIMS).replace("VALUE", "'{{ spec.a }}'"), "spec.volumeClaimTemplates of a StatefulSet"),
        (
            stateful("serviceName: '{{ spec.a }}'\n  selector: {matchLabels: {a: b}}"),
            "spec.serviceName of a StatefulSet",
        ),
        (
            f"apiVersion: v1\nkind: Service\nmetadata: {{name: '{NAME}'}}\nspec: {{clusterIP: '{{{{ spec.a }}}}', ports: [{{port: 80}}]}}\n",
            "spec.clusterIP of a Service",
        ),
        (
            f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{NAME}'}}\nimmutable: true\ndata: {{a: '{{{{ spec.a }}}}'}}\n",
            "data of a ConfigMap",
        ),
        (
            f"apiVersion: v1\nkind: Secret\nmetadata: {{name: '{NAME}'}}\ntype: '{{{{ spec.a }}}}'\n",
            "type of a Secret",
        ),
    ],
)
def test_immutable_fields_of_all_kinds_are_known(text: str, immutable: str) -> None:
    (only,) = found(text)
    assert f"`spec.a` can change, and {immutable} cannot: {REMEDY}, {RECREATE}" in only
    assert found(text, child="apply: {onImmutable: recreate}") == []
    assert found(text, rule="self == oldSelf") == []


def test_a_field_that_may_change_is_not_reported() -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{NAME}'}}\ndata: {{a: '{{{{ spec.a }}}}'}}\n"
    assert found(text) == []
    assert found(stateful("replicas: '{{ spec.a }}'\n  selector: {matchLabels: {a: b}}")) == []
    assert found(claim(field="volumeAttributesClassName")) == []


@pytest.mark.parametrize(
    "rule", ["self == oldSelf", "'!oldSelf.matches(self) || self == oldSelf'", "quantity(self) >= quantity(oldSelf)"]
)
def test_a_field_with_a_rule_about_its_changes_is_not_reported(rule: str) -> None:
    assert found(claim(), rule=rule) == []


@pytest.mark.parametrize(
    ("rule", "is_guarded"),
    [
        ("self.a == oldSelf.a", True),
        ("self == oldSelf", True),
        ("self.b == oldSelf.b", False),
        ("self.a != self.b", False),
    ],
)
def test_a_rule_of_the_parent_counts_if_it_is_about_the_field(rule: str, *, is_guarded: bool) -> None:
    assert (found(claim(), more=RULE.replace("RULE", rule)) == []) is is_guarded


@pytest.mark.parametrize(
    "value",
    ["{{ metadata.namespace }}", "{{ vars.class }}", "fast", "{{ metadata.labels.class | default('fast') }}"],
)
def test_a_value_that_is_not_of_the_spec_is_not_reported(value: str) -> None:
    assert found(claim(value), body="vars: {class: fast}") == []


@pytest.mark.parametrize("value", ["{{ class }}", "{{ spec.a | default('fast') }}", "x-{{ spec.a | lower }}"])
def test_a_value_is_followed(value: str) -> None:
    assert len(found(claim(value), body="let: {class: '{{ spec.a }}'}")) == 1


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (f"{NAME}-{{{{ spec.a }}}}", ""),
        ("{{ metadata.name | dns_label(spec.a) }}", ""),
        ("{{ full }}", "let: {full: '{{ metadata.name }}-{{ spec.a }}'}"),
    ],
)
def test_a_value_in_the_name_makes_a_new_object(name: str, body: str) -> None:
    assert found(claim(name=name), body=body) == []
    assert len(found(claim("{{ spec.b }}", name=name), body=body)) == 1


def test_an_item_that_gives_the_name_may_change_the_rest() -> None:
    name = "{{ metadata.name | dns_label(item.name) }}"
    assert len(found(claim("{{ item.class }}", name=name), child="forEach: spec.l")) == 1
    assert found(claim("{{ item.name }}", name=name), child="forEach: spec.l") == []


@pytest.mark.parametrize(
    "child",
    [
        "apply: {onImmutable: recreate}",
        "apply: {ignore: [spec.storageClassName]}",
        "apply: {strategy: create-only}",
        "once: '{{ spec.b }}'",
    ],
)
def test_a_change_with_a_setting_for_it_is_not_reported(child: str) -> None:
    assert found(claim(), child=child) == []


def test_the_setting_of_a_watch_does_not_recreate_a_claim() -> None:
    assert len(found(claim(), body="apply: {onImmutable: recreate}")) == 1


def test_without_a_definition_nothing_is_known() -> None:
    watches = watch("children: {it: {template: a.yaml}}")
    files = {"templates/a.yaml": claim(), "crds/apps.yaml": definition("Other")}
    assert [each for each in said(watches, files) if each.startswith("RO510")] == []


def test_the_short_form_of_a_schema_has_a_word_for_it() -> None:
    watches = watch("schema: {spec: {a: string | required=true}}\nchildren: {it: {template: a.yaml}}")
    files = {"templates/a.yaml": claim().replace("{{ spec.b }}", "1Gi"), "crds/apps.yaml": definition("Other")}
    (only,) = (each for each in said(watches, files) if each.startswith("RO510"))
    assert only.endswith("make the field of the spec immutable (`immutable=true`)")
    immutable = watches.replace("required=true", "required=true immutable=true")
    assert [each for each in said(immutable, files) if each.startswith("RO510")] == []


# -- Jobs --------------------------------------------------------------------------------------------------------------


def job(image: str = "'{{ spec.a }}'", name: str = NAME) -> str:
    return (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: '{name}'}}\nspec:\n  template:\n    spec:\n"
        f"      restartPolicy: Never\n      containers:\n        - name: a\n          args: ['{{{{ spec.b }}}}']\n"
        f"          image: {image}\n"
    )


def test_a_job_that_ignores_a_new_image_is_reported_once() -> None:
    (only,) = found(job())
    assert only == (
        "RO511 templates/a.yaml:11:22: warning: `spec.a` can change, and a Job of this name is not run again: add the "
        'value to the name with `dns_label`, or set `once: "{{ spec.a }}"`, '
        "`apply: {strategy: merge, onImmutable: recreate}`, or `apply: {strategy: create-only}` to keep the first one"
    )
    (only,) = found(job("b:1"))
    assert "`spec.b` can change" in only


@pytest.mark.parametrize(
    "child",
    [
        "once: '{{ spec.a }}'",
        "schedule: '@daily'",
        "apply: {strategy: merge, onImmutable: recreate}",
        "apply: {strategy: create-only}",
    ],
)
def test_a_job_with_a_rule_of_its_own_is_not_reported(child: str) -> None:
    assert found(job(), child=child) == []


def test_a_job_that_would_be_changed_is_rejected() -> None:
    (one, two) = found(job(), child="apply: {strategy: merge}")
    assert "`spec.b` can change, and spec.template of a Job cannot" in one
    assert "`spec.a` can change, and spec.template of a Job cannot" in two


def test_a_job_that_recreates_without_a_strategy_is_still_created_once() -> None:
    assert len(found(job(), child="apply: {onImmutable: recreate}")) == 1


@pytest.mark.parametrize(
    ("name", "child"),
    [
        ("{{ metadata.name | dns_label(spec.a) }}", ""),
        ("{{ metadata.name }}-{{ spec.c }}", ""),
        ("{{ metadata.name | dns_label(item.name) }}", "forEach: spec.l"),
        ("{{ status.run }}", ""),
    ],
)
def test_a_job_that_is_named_by_a_request_is_not_reported(name: str, child: str) -> None:
    assert found(job(name=name), child=child) == []


def test_a_job_of_the_deletion_is_not_reported() -> None:
    watches = watch("finalize: {it: {template: a.yaml}}")
    files = {"templates/a.yaml": job(), "crds/apps.yaml": definition(spec=FIELD.replace("RULE", "'true'"))}
    assert [each for each in said(watches, files) if each.startswith("RO511")] == []


def test_a_job_of_constants_is_not_reported() -> None:
    assert found(job("b:1").replace("{{ spec.b }}", "b")) == []
