"""Credentials in manifests: none is in any file of the new project, and the pods get them from Secrets."""

from __future__ import annotations

import base64
import hashlib
import string
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.authoring.scaffold.manifests.plain_credentials import Origins, credentials, in_arguments, is_secret_name
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.new_project import project_files
from tests.authoring.scaffold.projects import planned, rendered
from tests.authoring.scaffold.test_from_manifests import made, obj
from tests.exploration import examples

CREDENTIAL_NAMES = """
API_KEY API_TOKEN SECRET_KEY_BASE AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID JWT_SECRET PGPASSWORD DB_PASS requirepass
clientSecret apiKey spring.datasource.password SENTRY_DSN REDIS_AUTH tls-cert privateKey KEY db.pwd oauth-credentials
"""
PLAIN_NAMES = """
KEY_COUNT keyspace tokenizer PASSWORD_FILE token-ttl proxy_pass fastcgi_pass AUTH_URL publicKey PARTITION_KEY bypass
MAX_TOKENS secret-namespace secretName hotkey keyboard author certificatePath TOKEN_EXPIRY password_min_length monkey
"""


def hidden(text: str, **how: Any) -> list[str]:
    return [text[each.start : each.end] for each in credentials(text, **how)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [*((each, True) for each in CREDENTIAL_NAMES.split()), *((each, False) for each in PLAIN_NAMES.split())],
)
def test_names_of_credentials_are_known(name, expected):
    assert is_secret_name(name) is expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("id=AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("use xoxb-1234-abcd12 here", "xoxb-1234-abcd12"),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nxy\n-----END RSA PRIVATE KEY-----\nb", "-----BEGIN RSA PRIVATE KEY-----\nxy\n-----END RSA PRIVATE KEY-----"),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        ("joe:$apr1$Mx1$abcdef", "$apr1$Mx1$abcdef"),
        ("postgres://app:s3c@ret@web-db:5432/app", "s3c@ret"),
        ("postgres://app:s3/c@ret@web-db:5432/app", "s3/c@ret"),
        ("amqp://a:one@h1,amqp://guest@h2", "one"),
        ("--user admin:hunter2 x", "hunter2"),
        ("Server=db;Password=a,b;User=sa", "a,b"),
        ("--password=a)b&c", "a)b&c"),
        ("password: $ecret", "$ecret"),
        ("api_key=/hunter2", "/hunter2"),
        ("https://abcdef@sentry.io/1", "abcdef"),
        ("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
        ("http://web/?size=2&token=abc&x=1", "abc"),
        ("host = db\npassword = correct horse # new\nuser = joe", "correct horse"),
        ("password: |\n  one\n  two\nuser: joe", "one\n  two"),
        ('{"user": "joe", "password": "a\\"b", "host": "x"}', 'a\\"b'),
        ("requirepass foobared\nmaxmemory 2mb", "foobared"),
        ("basic_auth: {username: joe, password: 'a,b'}", "a,b"),
        ("<user>joe</user><password>abc</password>", "abc"),
        ("X-Auth: Bearer abc123def", "Bearer abc123def"),
        ("${DB_PASSWORD:-hunter2}", "hunter2"),
        ("curl -u joe:hunter2 http://web", "hunter2"),
        ("cG9zdGdyZXM6Ly9hOmJAYy9k", "cG9zdGdyZXM6Ly9hOmJAYy9k"),
    ],
)  # fmt: skip
def test_a_credential_is_found_by_its_form(text, found):
    assert hidden(text) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "kubernetes-dashboard-metrics-scraper",
        "-XX:MaxRAMPercentage=75.0",
        "kafka-0.kafka-headless.default.svc.cluster.local:9092",
        "arn:aws:iam::123456789012:role/AccessRoleForThings",
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "registry.example.com/team/app:v1.2.3-20240101",
        "nginx@sha256:7f9c8d5b47f9c8d5b47f9c8d5b47f9c8d5b47f9c8d5b47f9c8d5b47f9c8d5b4a",
        "2024-01-01T00:00:00Z",
        "com.example.application.SomeVeryLongClassNameFactory",
        "amqp://guest@rabbit",
        "postgres://app:$(DB_PASSWORD)@web-db:5432/app",
        "proxy_pass http://web-db:80;",
        "the token expires soon",
        "password = ${DB_PASSWORD}",
        "PASSWORD=$(cat /run/secrets/db)",
        "http://web:8080/@scope/x",
        "--user 1000:1000",
        "password_file: /run/secrets/db",
        "auth: true",
        "tls.key: /etc/tls/tls.key",
    ],
)
def test_plain_text_stays(text):
    assert hidden(text) == []


def test_a_value_in_a_command_ends_with_its_word():
    assert hidden("PGPASSWORD=abc pg_dump -h db", lines=False) == ["abc"]


def test_the_value_of_an_option_is_the_next_argument():
    arguments = ["mysql", "-h", "db", "-psecret", "--token", "ab cd", "--api-key=zz", "--verbose", "--password"]
    found = in_arguments(arguments, Origins({}, frozenset()))
    texts = {index: [arguments[index][each.start : each.end] for each in spans] for index, spans in found.items()}
    assert texts == {3: ["secret"], 5: ["ab cd"], 6: ["zz"]}


def test_data_of_a_secret_are_found_in_other_text():
    origins = Origins(
        {"hunter2": ("s", "password"), "joe-user": ("s", "username"), "web": ("s", "x")}, frozenset({"web"})
    )
    assert hidden("xhunter2x joe-user joe-users web aHVudGVyMg==", origins=origins) == [
        "hunter2",
        "joe-user",
        "aHVudGVyMg==",
    ]


def deployment(container: dict[str, Any], **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "web", "image": "acme/web:1.2", **container}], **pod}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    return obj("Deployment", "web", "apps/v1", spec={"selector": {"matchLabels": {"app": "web"}}, "template": template})


def container_of(objects: list[dict[str, Any]], tmp_path: Any) -> dict[str, Any]:
    found = rendered(planned(made(objects), tmp_path))["Deployment/web"]
    container: dict[str, Any] = found["spec"]["template"]["spec"]["containers"][0]
    return container


def reference(key: str, name: str = "web-credentials") -> dict[str, Any]:
    return {"secretKeyRef": {"name": name, "key": key}}


@pytest.mark.slow
def test_a_variable_refers_to_a_secret_that_users_make(tmp_path):
    objects = [deployment({"env": [{"name": "API_TOKEN", "value": "abc123"}, {"name": "DEBUG", "value": "1"}]})]
    project = made(objects)
    assert container_of(objects, tmp_path)["env"][0] == {"name": "API_TOKEN", "valueFrom": reference("API_TOKEN")}
    assert project.samples[0]["spec"]["credentialsSecret"] == "web-credentials"
    place = "Deployment/web:spec.template.spec.containers[name=web].env[name=API_TOKEN].value"
    assert project.credentials == (("Secret/web-credentials:API_TOKEN", place),)


def test_equal_credentials_are_one_key_and_different_ones_two(tmp_path):
    values = {"DB_PASSWORD": "one", "OLD_PASSWORD": "one", "API_KEY": "two"}
    env = [{"name": name, "value": value} for name, value in values.items()]
    keys = [
        each["valueFrom"]["secretKeyRef"]["key"] for each in container_of([deployment({"env": env})], tmp_path)["env"]
    ]
    assert keys == ["DB_PASSWORD", "DB_PASSWORD", "API_KEY"]


def test_the_password_of_a_url_is_moved_alone_so_that_the_host_follows_the_service(tmp_path):
    env = [{"name": "DATABASE_URL", "value": "postgres://app:s3cret@web-db:5432/app"}]
    service = obj("Service", "web-db", spec={"ports": [{"port": 5432}]})
    assert container_of([service, deployment({"env": env})], tmp_path)["env"] == [
        {"name": "DATABASE_URL_PASSWORD", "valueFrom": reference("DATABASE_URL_PASSWORD")},
        {"name": "DATABASE_URL", "value": "postgres://app:$(DATABASE_URL_PASSWORD)@web-db:5432/app"},
    ]


def test_an_argument_expands_a_variable(tmp_path):
    container = container_of([deployment({"args": ["--token=abc", "--password", "def"]})], tmp_path)
    assert container["args"] == ["--token=$(TOKEN)", "--password", "$(PASSWORD)"]
    assert [each["name"] for each in container["env"]] == ["TOKEN", "PASSWORD"]


@pytest.mark.slow
def test_a_new_variable_hides_none_of_the_container(tmp_path):
    env = [{"name": "TOKEN", "value": "plain"}, {"name": "X", "value": "Bearer abc123def"}]
    container = container_of(
        [deployment({"args": ["--api-token", "abc"], "env": [{"name": "API_TOKEN", "value": "0"}, *env]})], tmp_path
    )
    assert [each["name"] for each in container["env"]] == ["X_AUTHORIZATION", "API_TOKEN2", "API_TOKEN", "TOKEN", "X"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["mysqladmin", "ping", "-psecret"], ["sh", "-c", 'mysqladmin ping -p"${PASSWORD}"']),
        (["sh", "-c", "redis-cli -a secret ping"], ["sh", "-c", 'redis-cli -a "${PASSWORD}" ping']),
        (["sh", "-c", "mysql -p'secret'"], ["sh", "-c", "mysql -p''\"${PASSWORD}\"''"]),
        (["sh", "-c", 'PASSWORD="secret" x'], ["sh", "-c", 'PASSWORD="${PASSWORD}" x']),
    ],
)
def test_a_probe_reads_the_variable_in_a_shell(command, expected, tmp_path):
    container = container_of([deployment({"livenessProbe": {"exec": {"command": command}}})], tmp_path)
    assert container["livenessProbe"]["exec"]["command"] == expected
    assert container["env"] == [{"name": "PASSWORD", "valueFrom": reference("PASSWORD")}]


def test_a_value_of_a_secret_of_the_application_refers_to_it(tmp_path):
    secret = obj(
        "Secret", "web-jwt", data={"jwt": base64.b64encode(b"superjwtsecret").decode(), "user": "YWRtaW5qb2U="}
    )
    env = [{"name": "SIGN_WITH", "value": "superjwtsecret"}, {"name": "ADMIN", "value": "adminjoe"}]
    found = container_of([secret, deployment({"env": env})], tmp_path)["env"]
    assert [each["valueFrom"] for each in found] == [reference("jwt", "web-jwt"), reference("user", "web-jwt")]


@pytest.mark.slow
def test_a_config_map_with_a_credential_becomes_a_secret_that_reads_it(tmp_path):
    config = obj("ConfigMap", "web-config", data={"app.ini": "[db]\nhost = web-db:5432\npassword = hunter2\n"})
    service = obj("Service", "web-db", spec={"ports": [{"port": 5432}]})
    volumes = [
        {"name": "a", "configMap": {"name": "web-config", "items": [{"key": "app.ini", "path": "x"}]}},
        {"name": "b", "projected": {"sources": [{"configMap": {"name": "web-config"}}]}},
    ]
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "web-config", "key": "app.ini"}}}]
    pods = deployment({"env": env, "envFrom": [{"configMapRef": {"name": "web-config"}}]}, volumes=volumes)
    found = rendered(planned(made([config, service, pods]), tmp_path))
    text = "[db]\nhost = web-db:5432\npassword = change-me\n"  # from the placeholder in existing/
    assert found["Secret/web-config"]["stringData"] == {"app.ini": text}
    pod = found["Deployment/web"]["spec"]["template"]["spec"]
    assert pod["volumes"] == [
        {"name": "a", "secret": {"secretName": "web-config", "items": [{"key": "app.ini", "path": "x"}]}},
        {"name": "b", "projected": {"sources": [{"secret": {"name": "web-config"}}]}},
    ]
    assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "web-config"}}]
    assert pod["containers"][0]["env"][0]["valueFrom"] == {"secretKeyRef": {"name": "web-config", "key": "app.ini"}}


def test_a_config_map_that_others_use_too_gets_placeholders(tmp_path):
    config = obj("ConfigMap", "web-config", data={"app.ini": "password = hunter2\n"})
    custom = obj("Dashboard", "web", "acme.io/v1", spec={"configMapRef": {"name": "web-config"}})
    project = made([config, custom])
    found = rendered(planned(project, tmp_path))
    assert found["ConfigMap/web-config"]["data"] == {"app.ini": "password = change-me\n"}
    assert project.credentials == (("change-me", "ConfigMap/web-config:data['app.ini']"),)


def test_numbers_are_credentials_only_as_passwords(tmp_path):
    custom = obj(
        "Grafana", "web", "acme.io/v1", spec={"adminPassword": 123456, "maxTokens": 512, "token": {"value": "abc"}}
    )
    found = rendered(planned(made([custom]), tmp_path))["Grafana/web"]
    assert found["spec"] == {"adminPassword": "change-me", "maxTokens": 512, "token": {"value": "change-me"}}


def test_the_namespace_of_a_secret_stays_as_it_is(tmp_path):
    container = {"args": ["--secret-namespace=prod", "--token-selector=a=b", "--secret=s3cret"]}
    objects = [deployment(container)]
    assert container_of(objects, tmp_path)["args"] == [*container["args"][:2], "--secret=$(SECRET)"]


def test_a_file_in_a_variable_is_read_line_by_line(tmp_path):
    env = [{"name": "CONFIG", "value": "user: joe\npassword: correct horse\n"}, {"name": "PGPASSWORD", "value": 123456}]
    found = container_of([deployment({"env": env})], tmp_path)["env"]
    assert [each["name"] for each in found] == ["CONFIG_PASSWORD", "CONFIG", "PGPASSWORD"]
    assert found[1]["value"] == "user: joe\npassword: $(CONFIG_PASSWORD)\n"


def test_fields_of_custom_kinds_and_annotations_get_placeholders(tmp_path):
    meta = {
        "annotations": {
            "acme.io/webhook-token": "abc",
            "checksum/config": "7f9c8d5b47f9c8d5b47f9c8d5b47f9c8d5b47f9c8d5b4",
            "web-config-hash": hashlib.sha256(b"config").hexdigest(),
            "acme.io/config-checksum": hashlib.md5(b"config").hexdigest(),  # noqa: S324 - a checksum
            "acme.io/password-hash": hashlib.sha256(b"password").hexdigest(),
            "acme.io/session": hashlib.sha256(b"session").hexdigest(),
        }
    }
    custom = obj(
        "Grafana",
        "web",
        "acme.io/v1",
        metadata=meta,
        spec={"adminPassword": "x", "secretName": "web-tls", "size": "big"},
    )
    found = rendered(planned(made([custom]), tmp_path))["Grafana/web"]
    hidden = dict.fromkeys(("acme.io/webhook-token", "acme.io/password-hash", "acme.io/session"), "change-me")
    assert found["metadata"]["annotations"] == {**meta["annotations"], **hidden}
    assert found["spec"] == {"adminPassword": "change-me", "secretName": "web-tls", "size": "big"}


# -- a planted credential is in no file -----------------------------------------------------------------------------

_MIXED = st.text(string.ascii_letters + string.digits, min_size=24, max_size=40).filter(
    lambda text: sum(each.isdigit() for each in text) >= 5 and sum(each.isupper() for each in text) >= 5
)
_RANDOM = st.one_of(
    _MIXED,
    st.sampled_from(["ghp_", "AKIA", "glpat-", "sk_live_", "xoxb-"]).flatmap(
        lambda prefix: st.text(string.ascii_lowercase + string.digits, min_size=12, max_size=20).map(prefix.__add__)
    ),
    st.uuids().map(str),
)
_PASSWORD = st.text(string.ascii_letters + string.digits + "!*_~^", min_size=8, max_size=14).map("Zq".__add__)
_NAME = st.sampled_from(["API_KEY", "DB_PASSWORD", "JWT_SECRET", "AUTH_TOKEN", "SENTRY_DSN", "SECRET_KEY_BASE"])
_TEXTS = st.sampled_from(["{}", "x {} y", "--a={}", "see http://web/{}/x", "a: {}\nb: 2\n", '{{"a": "{}"}}', "a,{};b"])
_NAMED_TEXTS = st.sampled_from(
    [
        *("--token={}", "password={}", "http://joe:{}@web/x", "a: 1\npassword: {}\nb: 2\n", '{{"apiKey": "{}"}}'),
        *(
            "PGPASSWORD={} psql",
            "http://web/?token={}&x=1",
            "<secret>{}</secret>",
            "export API_KEY='{}'\n",
            "redis-cli -a {}",
        ),
    ]
)


@st.composite
def applications(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[str]]:
    planted: list[str] = []
    data: dict[str, str] = {}

    def text(*, is_named: bool = True) -> tuple[str, str]:
        """A text with a credential in it: found by its form, by the text, by a Secret, or by the text's name."""
        how = draw(st.integers(0, 3 if is_named else 2))
        value = draw(_RANDOM if how == 0 else _PASSWORD)
        planted.append(value)
        if how == 2:
            data[f"password{len(data)}"] = value
        whole = draw(_NAMED_TEXTS if how == 1 else st.just("{}") if how == 3 else _TEXTS)
        return draw(_NAME) if how == 3 else f"X{len(planted)}", whole.format(value)

    def entries(most: int = 3) -> dict[str, str]:
        return dict(text() for _ in range(draw(st.integers(0, most))))

    def arguments() -> list[str]:
        found = ["run"]
        for name, value in entries().items():
            found += [value] if name.startswith("X") else [f"--{name.lower()}", value]
        return found

    def container() -> dict[str, Any]:
        return {
            "env": [{"name": name, "value": value} for name, value in entries().items()],
            "args": arguments(),
            "command": ["sh", "-c", *arguments()],
            "livenessProbe": {"exec": {"command": arguments()}},
            "readinessProbe": {
                "httpGet": {
                    "path": "/",
                    "port": 80,
                    "httpHeaders": [{"name": n, "value": v} for n, v in entries().items()],
                }
            },
            "envFrom": [{"configMapRef": {"name": "web-config"}}],
        }

    objects = [
        obj("ConfigMap", "web-config", data=entries() | {"app.conf": text(is_named=False)[1]}),
        obj(
            "ConfigMap",
            "web-other",
            data=entries(),
            binaryData={"b": base64.b64encode(text(is_named=False)[1].encode()).decode()},
        ),
        deployment(
            container(),
            initContainers=[{"restartPolicy": "Always", "name": "init", "image": "acme/init", **container()}],
        ),
        obj(
            "Grafana",
            "web",
            "acme.io/v1",
            metadata={"annotations": entries()},
            spec={"config": entries(), "list": [entries()]},
        ),
    ]
    objects.append(obj("Secret", "web-secret", stringData=data or {"password": "Zq123456"}))
    return objects, planted


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None)
@given(applications())
def test_a_project_without_the_planted_credentials_is_one_without_mistakes(application):
    with tempfile.TemporaryDirectory() as folder:
        planned(made(application[0]), Path(folder))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(applications())
def test_no_planted_credential_is_in_any_file(application):
    objects, planted = application
    try:
        project = made(objects)
    except ScaffoldError:
        return
    files = project_files(project, {})
    printed = "\n".join(
        [
            *files.values(),
            *project.notes,
            *(text for rows in (project.credentials, project.left, project.lifted) for row in rows for text in row),
        ]
    )
    for value in planted:
        assert value not in printed
        assert base64.b64encode(value.encode()).decode() not in printed
    for path, text in files.items():
        if path.endswith(".yaml"):
            yaml.safe_load(text)
