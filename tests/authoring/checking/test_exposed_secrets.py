"""Data of Secrets in ConfigMaps, annotations, environment variables and command lines is reported."""

from __future__ import annotations

import textwrap

import pytest

from tests.authoring.checking.projects import said
from tests.language.rules.projects import watch

OBSERVED = (
    "observe:\n"
    "  creds: {version: v1, kind: Secret, name: x}\n"
    "  all: {version: v1, kind: Secret, selector: {a: b}}\n"
    "  config: {version: v1, kind: ConfigMap, name: z}\n"
)
KEEP = "\nstatus: {seen: '{{ creds.metadata.name }} {{ all | length }} {{ config.data.a }}'}\n"
TEMPLATES = {
    "config": "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\ndata:\n  a: {}\n",
    "secret": "apiVersion: v1\nkind: Secret\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\nstringData:\n  a: {}\n",
    "annotation": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '{{{{ metadata.name }}}}'\n  annotations:\n    a: {}\n",
    "env": (
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\n"
        "spec:\n  containers:\n    - name: a\n      image: b:1\n      env:\n        - name: PASSWORD\n          value: {}\n"
    ),
    "args": (
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\n"
        "spec:\n  containers:\n    - name: a\n      image: b:1\n      args: [--password, {}]\n"
    ),
    "pod": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\nspec:\n"
        "  selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata:\n      labels: {{a: b}}\n"
        "      annotations:\n        c: {}\n    spec: {{containers: [{{name: a, image: 'b:1'}}]}}\n"
    ),
}
COPY = '"{{ creds.data.password | b64decode }}"'


def exposed(where: str, value: str, more: str = "", child: str = "") -> list[str]:
    text = TEMPLATES[where].format(value)
    watches = watch(f"{OBSERVED}{more}\nchildren:\n  a:\n    template: a.yaml\n    {child}{KEEP}")
    return [each for each in said(watches, {"templates/a.yaml": text}) if each.startswith("RO705")]


@pytest.mark.parametrize(
    ("where", "place", "message"),
    [
        ("config", "5:10", "a ConfigMap: write this part into a Secret, and mount that"),
        ("annotation", "6:12", "annotations: use a checksum (`sha256`), or leave it out"),
        ("pod", "10:16", "annotations: use a checksum (`sha256`), or leave it out"),
        (
            "env",
            "10:22",
            "env: use `valueFrom: {secretKeyRef: {name: {{ creds.metadata.name }}, key: password}}` instead of `value`",
        ),
        (
            "args",
            "8:30",
            "a command line: set an environment variable with `valueFrom.secretKeyRef`, and write `$(NAME)` here",
        ),
    ],
)
def test_data_of_a_secret_is_reported_with_what_to_do_instead(where: str, place: str, message: str) -> None:
    expression = "`creds.data.password | b64decode`"
    assert exposed(where, COPY) == [
        f"RO705 templates/a.yaml:{place}: warning: {expression} exposes the data of a Secret in {message}"
    ]


@pytest.mark.parametrize(
    "value",
    [
        '{% set p = creds.data.password %}\n  b: "{{ p }}"',
        '"url=postgres://u:{{ creds.data.p | b64decode }}@db"',
        '"{{ all[0].data.p }}"',
        '"{{ creds.data.username_and_password }}"',
        '"{{ creds.data[spec.key] }}"',
        "|\n    password={{ creds.data.p | b64decode }}",
        '"{{ creds.data | to_json }}"',
        '"{{ creds | to_json }}"',
        '"{{ kept }}"',
        '"{{ item.data.p }}"',
    ],
)
def test_values_are_followed(value: str) -> None:
    loop = "forEach: all" if "item" in value else ""
    assert len(exposed("config", value, "let: {kept: '{{ creds.data.p }}'}", loop)) == 1


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("secret", COPY),
        ("config", '"{{ creds.metadata.name }}"'),
        ("config", '"{{ creds.data | sha256 }}"'),
        ("config", '"{{ checksum }}"'),
        ("config", '"{{ config.data.a }}"'),
        ("config", "\"{{ creds.data['ca.crt'] | b64decode }}\""),
        ("config", "\"{{ creds.data['tls.crt'] | b64decode }}\""),
        ("config", '"{{ creds.data.password is defined }}"'),
        ("annotation", '"{{ creds.data.password | sha256 }}"'),
        ("env", '"{{ creds.metadata.name }}"'),
        ("env", '"postgres://{{ creds.data.username | b64decode }}@db"'),
        ("config", "\"{{ creds.data['db-host'] | b64decode }}\""),
    ],
)
def test_other_values_are_not_reported(where: str, value: str) -> None:
    assert exposed(where, value, "let: {checksum: '{{ creds.data.p | sha256 }}'}") == []


def test_a_generated_password_is_reported_outside_of_a_secret() -> None:
    create_only = "apply: {strategy: create-only}"
    (found,) = exposed("config", '"{{ random_password(9) }}"', child=create_only)
    assert "`random_password(9)` exposes the data of a Secret in a ConfigMap" in found
    assert exposed("secret", '"{{ random_password(9) }}"', child=create_only) == []


@pytest.mark.parametrize(
    ("value", "is_exposed"),
    [
        ("genCA('x').Key", True),
        ("genSelfSignedCert('x')['Key']", True),
        ("genCA('x').get('Key')", True),
        ("genCA('x')[spec.field]", True),
        ("genCA('x') | tojson", True),
        ("(genCA('x') | list)[0]", True),
        ("genCA('x').Cert", False),
        ("genCA('x').Cert | b64encode", False),
    ],
)
def test_the_key_of_a_certificate_is_reported_outside_of_a_secret(value: str, *, is_exposed: bool) -> None:
    for written in (f"{{{{ {value} }}}}", f"{{% set made = {value} %}}{{{{ made }}}}"):
        found = exposed("config", f'"{written}"', child="apply: {strategy: create-only}")
        assert ["exposes the data of a Secret" in each for each in found] == [True] * is_exposed


def test_a_child_that_reads_a_secret_for_a_checksum_may_be_read() -> None:
    first = TEMPLATES["annotation"].format('"{{ creds.data | sha256 }}"')
    second = textwrap.dedent(TEMPLATES["config"].format('"{{ a.data.x }}"')).replace(
        "metadata.name", "metadata.name ~ '-b'"
    )
    watches = watch(f"{OBSERVED}\nchildren: {{a: {{template: a.yaml}}, b: {{template: b.yaml}}}}{KEEP}")
    found = said(watches, {"templates/a.yaml": first, "templates/b.yaml": second})
    assert [each for each in found if each.startswith("RO705")] == []


def test_a_line_can_be_allowed() -> None:
    assert exposed("config", COPY + "  # ruleop: allow RO705 the password is public knowledge") == []
