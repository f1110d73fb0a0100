"""ruleop.yaml: each mistake with its place and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import click
import jsonschema
import pytest
import yaml

from ruleop.cli.run import command
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.operator_choices import (
    _KEYS_OF_VARIABLES,
    Choices,
    choices_schema,
    misspelt_variables,
    read_choices,
    settings,
)

ALL = """\
name: shop-operator
namespace: shop-system
namespaces: [shop, blog, shop]
image: registry.example.com:5000/shop/operator:1.2.0
version: 1.2.0-rc.1
rules: image
replicas: 2
leaderElect: true
env: {DOMAIN: example.com}
metricsAuth: true
"""


def mistakes(root: Path) -> list[str]:
    with pytest.raises(ProjectErrors) as caught:
        read_choices(root)
    return [str(each) for each in caught.value.findings]


RULES = f"registry.example.com/rules:1.2.0@sha256:{'0' * 64}"


def test_an_image_of_the_rules_needs_its_digest(tmp_path: Path) -> None:
    (tmp_path / "ruleop.yaml").write_text(f"rulesImage: {RULES}\n")
    assert read_choices(tmp_path).rules_image == RULES
    (tmp_path / "ruleop.yaml").write_text("rulesImage: registry.example.com/rules:1.2.0\n")
    (found,) = mistakes(tmp_path)
    assert found.startswith('ruleop.yaml:1:13: "rulesImage" must be an image with its digest')
    assert "`docker buildx imagetools inspect IMAGE` prints it" in found


def test_an_image_of_the_rules_is_mounted_on_the_generic_image(tmp_path: Path) -> None:
    (tmp_path / "ruleop.yaml").write_text(f"rules: image\nrulesImage: {RULES}\n")
    (found,) = mistakes(tmp_path)
    assert "`rulesImage` is mounted on the generic image: remove it, or `rules: image`" in found


def test_a_project_without_the_file_has_the_defaults(tmp_path: Path) -> None:
    assert read_choices(tmp_path) == Choices()


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}\n"])
def test_an_empty_file_has_the_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "ruleop.yaml").write_text(text)
    assert read_choices(tmp_path) == Choices()


def test_each_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "ruleop.yaml").write_text(ALL)
    found = read_choices(tmp_path)
    assert (found.name, found.namespace, found.namespaces) == ("shop-operator", "shop-system", ("shop", "blog"))
    assert (found.image, found.version) == ("registry.example.com:5000/shop/operator:1.2.0", "1.2.0-rc.1")
    assert (found.rules, found.replicas, found.leader_elect) == ("image", 2, True)
    assert (found.env, found.metrics_auth) == ({"DOMAIN": "example.com"}, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: Shop",
            'ruleop.yaml:1:7: "name" must be up to 40 lowercase letters, digits and "-", not "Shop"',
        ),
        ("namspace: a", 'ruleop.yaml:1:1: unknown key "namspace" in ruleop.yaml (did you mean "namespace"?)'),
        ("replicas: 0", 'ruleop.yaml:1:11: "replicas" must be at least 1, not 0'),
        ("version: 1.2", 'ruleop.yaml:1:10: "version" must be text, not the number 1.2: put it in quotes'),
        ('version: "1.2"', 'ruleop.yaml:1:10: "version" must be a version such as "1.2.0", not "1.2"'),
        ("rules: mounted", 'ruleop.yaml:1:8: "rules" must be "configmap" or "image", not the text "mounted"'),
        (
            "image: Operator",
            'ruleop.yaml:1:8: "image" must be an image such as registry.example.com/operator:1.2.0, not "Operator"',
        ),
        ("env: {PORT: 80}", 'ruleop.yaml:1:13: the variable "PORT" must be text, not the number 80: put it in quotes'),
        ("env: {a b: c}", 'ruleop.yaml:1:7: the variable cannot be named "a b": letters, digits, "-", "_" and "."'),
        (
            "{shards: 2, selector: team=a}",
            "ruleop.yaml:1:13: `selector` is for an operator without shards, of which one pod works: remove it, or `shards`",
        ),
        (
            "selector: team in a",
            "ruleop.yaml:1:1: not a label selector: unable to parse requirement: found 'a' expected: '('",
        ),
        (
            "{replicas: 2, leaderElect: false}",
            "ruleop.yaml:1:15: several replicas need the Lease: remove leaderElect, or have one replica",
        ),
        (
            "env: {WATCH_NAMESPACE: shop}",
            'ruleop.yaml:1:7: the roles do not depend on the variable WATCH_NAMESPACE: use the key "namespaces"',
        ),
        ("[name]", "ruleop.yaml:1:1: ruleop.yaml must be a mapping, not a list"),
        ("name: a\n---\nname: b\n", "ruleop.yaml:3:1: must be one document"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ruleop.yaml").write_text(text)
    assert mistakes(tmp_path) == [message]


@pytest.mark.parametrize("variable", sorted(_KEYS_OF_VARIABLES.keys() - {"WATCH_NAMESPACE"}))
def test_a_variable_with_a_key_of_its_own_is_a_flag_of_run(variable: str) -> None:
    assert variable in {each.envvar for each in command.params if isinstance(each, click.Option)}


def test_all_mistakes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "ruleop.yaml").write_text("name: 1\nreplicas: a\nother: b\n")
    assert [each.split(":")[1] for each in mistakes(tmp_path)] == ["1", "2", "3"]


def test_a_file_that_is_not_utf_8_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "ruleop.yaml").write_bytes(b"name: \xff\n")
    assert mistakes(tmp_path) == ["ruleop.yaml: it is not valid UTF-8"]


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ruleop.yaml")
    assert mistakes(tmp_path) == ["ruleop.yaml: cannot be read: it is not a regular file"]


def test_a_link_to_the_outside_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("name: secret\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "ruleop.yaml").symlink_to("../secret")
    assert mistakes(tmp_path / "project") == [
        "ruleop.yaml: this link points outside of the project folder: only files inside are read"
    ]


def test_the_schema_accepts_what_is_read_and_refuses_a_misspelt_key() -> None:
    schema = choices_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(yaml.safe_load(ALL))
    assert not validator.is_valid({"namspace": "a"})
    assert not validator.is_valid({"name": "Shop"})


WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  vars: {a: "${WITH:-1}", b: "${TWICE:-1} ${TWICE:-2}", c: "${REQUIRED}", d: "${SOME:-1} ${SOME}"}
  children: {}
"""
ENVIRON = {"REQUIRED": "here", "SOME": "here"}


def test_settings_are_what_the_rules_read_and_do_not_depend_on_the_environment() -> None:
    loaded = build_with_sources({"watches.yaml": WATCHES}, root="", environ=ENVIRON)
    expected = {"REQUIRED": None, "SOME": None, "TWICE": "", "WITH": "1"}
    assert settings(loaded, Choices()) == expected
    given = Choices(env={"SOME": "a", "HTTPS_PROXY": "b"})
    assert settings(loaded, given) == {**expected, "SOME": "a", "HTTPS_PROXY": "b"}


def test_a_variable_that_is_like_one_of_the_rules_is_probably_misspelt(tmp_path: Path) -> None:
    (tmp_path / "ruleop.yaml").write_text("env:\n  REQIRED: a\n  HTTPS_PROXY: b\n")
    loaded = build_with_sources({"watches.yaml": WATCHES}, root="", environ=ENVIRON)
    assert [str(each) for each in misspelt_variables(loaded, read_choices(tmp_path))] == [
        'ruleop.yaml:2:3: warning: the rules do not read the variable "REQIRED" (did you mean "REQUIRED"?)'
    ]
