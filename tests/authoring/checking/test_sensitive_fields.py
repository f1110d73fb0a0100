"""Where a custom resource decides what a Pod runs and reaches, its kind gives that power to everyone who may write
it."""

import pytest

from tests.authoring.checking.projects import said
from tests.definitions import definition
from tests.language.rules.projects import watch

SPEC = (
    "{type: object, properties: {image: {type: string}, registry: {type: string}, tag: {type: string}, shell: {type: string}, "
    "account: {type: string}, level: {type: string, enum: [a, b]}, port: {type: integer}, root: {type: boolean}, "
    "volumes: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}, "
    "roles: {type: object, additionalProperties: {type: string, enum: [view, edit]}}}}"
)


def sensitive(text: str, kind: str = "apps/v1\nkind: Deployment") -> list[str]:
    files = {
        "templates/a.yaml": f"apiVersion: {kind}\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\n{text}\n",
        "crds/apps.yaml": definition(spec=SPEC),
    }
    found = [each for each in said(watch("children: {a: {template: a.yaml}}"), files) if each.startswith("RO703")]
    return [each.partition("warning: ")[2].partition(": bound it")[0] for each in found]


def pod(text: str) -> list[str]:
    return sensitive(f"spec: {{template: {{spec: {text}}}}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{containers: [{image: '{{ spec.registry }}/app:1'}]}", "`spec.registry` lets a CR decide which program runs (spec.template.spec.containers.image)"),
        ("{containers: [{command: [sh, -c, '{{ spec.shell }}']}]}", "`spec.shell` lets a CR decide which program runs (spec.template.spec.containers.command)"),
        ("{initContainers: [{args: ['{{ spec.shell }}']}]}", "`spec.shell` lets a CR decide the arguments of a program (spec.template.spec.initContainers.args)"),
        ("{volumes: [{hostPath: {path: '{{ spec.shell }}'}}]}", "`spec.shell` lets a CR decide which data of the node or of Secrets a Pod reads (spec.template.spec.volumes.hostPath.path)"),
        ("{volumes: '{{ spec.volumes }}'}", "`spec.volumes` lets a CR decide which data of the node or of Secrets a Pod reads (spec.template.spec.volumes)"),
        ("{serviceAccountName: '{{ spec.account }}'}", "`spec.account` lets a CR decide the permissions of a Pod (spec.template.spec.serviceAccountName)"),
        ("{securityContext: {runAsUser: {{ spec.port }}}}", "`spec.port` lets a CR decide what a Pod may do on its node (spec.template.spec.securityContext.runAsUser)"),
        ("{hostNetwork: {{ spec.root }}}", "`spec.root` lets a CR decide what a Pod may do on its node (spec.template.spec.hostNetwork)"),
    ],
)  # fmt: skip
def test_fields_of_a_pod_decided_by_the_cr_are_reported(text, message):
    assert pod(text) == [message]


@pytest.mark.parametrize(
    "text",
    [
        "{containers: [{image: '{{ spec.image }}'}]}",
        "{containers: [{image: 'nginx:{{ spec.tag }}'}]}",
        "{containers: [{image: 'registry.example.com:5000/team/app:{{ spec.tag }}'}]}",
        "{containers: [{args: ['--port={{ spec.port }}', '--level', '{{ spec.level }}', '--name={{ spec.shell }}']}]}",
        "{containers: [{args: ['{{ metadata.name }}']}]}",
        "{containers: [{env: [{name: A, value: '{{ spec.shell }}'}]}]}",
        "{volumes: [{name: a, persistentVolumeClaim: {claimName: '{{ spec.shell }}'}}]}",
        "{serviceAccountName: '{{ spec.level }}'}",
        "{serviceAccountName: '{{ metadata.name }}'}",
    ],
)
def test_a_bounded_or_usual_value_is_not_reported(text):
    assert pod(text) == []


def test_fields_of_roles_and_bindings_decided_by_the_cr_are_reported():
    role = "rbac.authorization.k8s.io/v1\nkind: RoleBinding"
    assert sensitive("roleRef: {name: '{{ spec.account }}'}", role) == [
        "`spec.account` lets a CR decide what somebody may do (roleRef.name)"
    ]
    loop = "subjects:\n{% for each in spec.roles %}\n  - {name: a, role: '{{ each.value }}'}\n{% endfor %}"
    assert sensitive(loop, role) == []


def test_a_sensitive_field_can_be_allowed_on_its_line():
    text = "spec: {template: {spec: {serviceAccountName: '{{ spec.account }}'}}} {# ruleop: allow RO703 only admins write Apps #}"
    assert sensitive(text) == []


@pytest.mark.parametrize(
    "field", ["{containers: [{image: '{{ spec.imge }}/app:1'}]}", "{securityContext: '{{ spec.securty }}'}"]
)
def test_a_field_that_the_crd_does_not_have_is_reported_as_unknown_only(field):
    assert pod(field) == []


def test_a_comment_in_the_crd_accepts_all_fields_of_its_kind():
    files = {
        "templates/a.yaml": (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [\n"
            "  {command: ['{{ spec.shell }}'],\n   image: '{{ spec.registry }}/a:1'}]}}}\n"
        ),
        "crds/apps.yaml": definition(spec=SPEC),
        "crds/others.yaml": "# ruleop: allow RO703 the fields of Redis\n" + definition("Other", spec=SPEC),
    }
    rules = watch("children: {a: {template: a.yaml}}")
    assert [each[:5] for each in said(rules, files)].count("RO703") == 2
    assert [each[:5] for each in said(rules, files)].count("RO802") == 1, "a comment about another kind accepts nothing"
    files["crds/apps.yaml"] = "# ruleop: allow RO703 the fields of Redis\n" + files["crds/apps.yaml"]
    del files["crds/others.yaml"]
    assert [each for each in said(rules, files) if each.startswith(("RO703", "RO80"))] == []
