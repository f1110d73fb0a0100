"""`render` and `plan` hold the objects of children to the schemas of their kinds."""

import textwrap

import pytest
import yaml

from ruleop.authoring.checking.refused_objects import violations, with_violations
from ruleop.authoring.offline import EPOCH, OfflineKinds, prepare
from ruleop.language.rules.checking import build_project
from ruleop.planning import FixedObjects, Observed, plan
from tests.definitions import definition
from tests.docs.messages import ROOT
from tests.language.rules.projects import watch

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: nginx
"""
OPEN = "{type: object, x-kubernetes-preserve-unknown-fields: true}"


def problems(
    template: str, spec: dict[str, object] | None = None, body: str = "children: {a: {template: a.yaml}}", **files: str
):
    texts = {
        "watches.yaml": watch(body),
        "crds/apps.yaml": definition(spec=OPEN),
        "templates/a.yaml": template,
        **{f"crds/{name}.yaml": text for name, text in files.items()},
    }
    project = build_project(texts, root="/project", environ={})
    cr = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "x"}, "spec": spec or {}}
    resource, findings = prepare(project, cr)
    assert findings == []
    (rule,) = project.rules
    observed = Observed(FixedObjects([]), OfflineKinds(project), now=EPOCH, seed=b"")
    return [
        (str(each.site), each.message)
        for each in with_violations(plan(rule, resource, observed), rule, project).problems
    ]


def test_an_object_that_fits_has_no_problem():
    assert problems(DEPLOYMENT) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("spec:\n  sel", "spec:\n  replicas: {{ spec.x }}\n  sel", 5, 'spec.replicas: must be an integer, not "2"'),
        ("spec:\n  sel", "spec:\n  replica: 3\n  sel", 5, "spec.replica: is an unknown field (did you mean replicas?)"),
        ("image: nginx", "image: nginx\n          env: [{name: A, value: 7}]", 12, "spec.template.spec.containers[0].env[0].value: must be a string, not 7"),
        ("image: nginx", "imagePullPolicy: {{ spec.x }}", 11, 'spec.template.spec.containers[0].imagePullPolicy: must be one of "Always", "IfNotPresent", "Never", not "2"'),
        ("  selector: {matchLabels: {app: web}}\n", "", 4, "spec.selector: is required"),
        ("{app: web}}\n  template", "{app: {{ spec.n }}}}\n  template", 5, "spec.selector.matchLabels.app: must be a string, not 1"),
    ],
)  # fmt: skip
def test_a_value_that_its_field_does_not_accept_is_a_problem_at_its_line(old, new, line, message):
    assert old in DEPLOYMENT
    ((site, found),) = problems(DEPLOYMENT.replace(old, new), {"x": "2", "n": 1})
    assert found == f"Deployment/web: {message}"
    assert site.split(":")[:2] == ["templates/a.yaml", str(line)]


def test_values_of_secrets_are_not_in_the_message():
    template = 'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {password: "{{ spec.password }}"}\ntype: {{ spec.n }}\n'
    found = problems(template, {"password": "not-base-64!", "n": 4711})
    assert [message for _, message in found] == [
        "Secret/a: data.password: must be a byte, not a string",
        "Secret/a: type: must be a string, not a number",
    ]


def test_an_object_of_a_crd_is_held_to_it():
    other = definition("Other", spec="{type: object, required: [size], properties: {size: {type: integer}}}")
    text = textwrap.dedent("""\
        apiVersion: example.com/v1
        kind: Other
        metadata: {name: a, labels: {a: '1'}}
        spec:
          size: "{{ spec.size }}"
          siez: 1
        """)
    assert problems(text, {"size": 3}, other=other) == [
        ("templates/a.yaml:5:3", 'Other/a: spec.size: must be an integer, not "3"'),
        (
            "templates/a.yaml:6:3",
            "Other/a: spec.siez: is not in Other's schema, and the API server drops it (did you mean size?)",
        ),
    ]


def test_a_field_that_another_manager_may_set_is_not_required_of_server_side_apply():
    body = "children: {a: {template: a.yaml, apply: {strategy: server-side}}}"
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n"
    assert problems(text, body=body) == []


MANIFESTS = [
    each
    for name in ("tests/contract/manifests.yaml", "tests/cluster/builtin.yaml")
    for document in yaml.load_all((ROOT / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for each in (document if isinstance(document, list) else [document])
    if each is not None
]


def without_nulls(value):
    """As templates render: ruleop omits nulls."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']}-{each['metadata'].get('name', '')}")
def test_a_manifest_that_the_api_server_accepts_has_no_violation(manifest):
    project = build_project({"watches.yaml": "watches: []"}, root="/project", environ={})
    assert [str(each) for each in violations(without_nulls(manifest), project)] == []


def test_base64_may_have_line_breaks():
    project = build_project({"watches.yaml": "watches: []"}, root="/project", environ={})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "AAAA\nAAE=\n"}}
    assert violations(secret, project) == []
    assert violations({**secret, "data": {"a": "AAAA\n!"}}, project) != []
