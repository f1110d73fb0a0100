"""No output contains a control character of terminals, and documents still hold the same data."""

from __future__ import annotations

import json
import sys

import pytest
import yaml

from ruleop.printable import is_safe

NASTY = (
    *map(chr, (0x07, 0x08, 0x1B, 0x7F, 0x80, 0x85, 0x9B, 0x9F, 0xAD, 0x61C, 0x200E, 0x200F, 0x2028)),
    *map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF, 0xE0001)),
)
TEXT = "".join(f"x{sign}y" for sign in NASTY)
QUOTED = '"' + "".join(f"\\U{ord(sign):08X}" for sign in TEXT) + '"'  # in YAML
COMMANDS = [
    ("plan",),
    ("plan", "-o", "json"),
    ("render",),
]


@pytest.fixture
def nasty(project):
    """A CR whose text has all of them, and whose name is the key of a mapping."""
    project.write(
        "site.yaml",
        "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: blog, namespace: default, uid: '1234'}\n"
        f"spec: {{page: {QUOTED}}}\n",
    )
    project.write(
        "templates/config.yaml.j2",
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {a: "{{ spec.page }}"}}\n'
        'data: {page: "{{ spec.page }}", lines: "one\\n{{ spec.page }}"}\n---\n'
        "apiVersion: example.com/v1\nkind: Other\nmetadata: {name: b}\n"
        'spec: {"{{ spec.page }}": b}\n',
    )
    return project


def assert_safe(text):
    assert [ascii(sign) for sign in text if not is_safe(sign) and sign != "\n"] == []


@pytest.mark.slow
def test_the_table_contains_the_control_characters_of_terminals():
    assert [ascii(sign) for sign in NASTY if is_safe(sign)] == []
    controls = [chr(code) for code in (*range(9), *range(10, 32), *range(0x7F, 0xA0))]
    assert [ascii(sign) for sign in controls if is_safe(sign)] == []
    assert all(map(is_safe, "\tAz ~é日本😀 "))
    assert sum(map(is_safe, map(chr, range(sys.maxunicode)))) > 140_000


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_output_about_a_custom_resource_contains_control_characters(nasty, ruleop, command):
    ran = ruleop(*command, "-f", "site.yaml")
    assert ran.status == 0, ran.err
    assert_safe(ran.out + ran.err)


def test_the_yaml_of_render_keeps_data_with_control_characters(nasty, ruleop):
    config, other, *_ = yaml.safe_load_all(ruleop("render", "-f", "site.yaml").out)
    assert config["data"] == {"page": TEXT, "lines": f"one\n{TEXT}"}
    assert other["spec"] == {TEXT: "b"}
    assert config["metadata"]["annotations"]["a"] == TEXT


def test_the_json_of_plan_keeps_data_with_control_characters(nasty, ruleop):
    (plan,) = json.loads(ruleop("plan", "-f", "site.yaml", "-o", "json").out)["plans"]
    found = {each["object"]["kind"]: each["object"] for each in plan["actions"] if "object" in each}
    assert found["ConfigMap"]["data"] == {"page": TEXT, "lines": f"one\n{TEXT}"}
    assert found["Other"]["spec"] == {TEXT: "b"}


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_no_finding_of_check_contains_control_characters(project, ruleop, output):
    project.edit("watches.yaml", "kind: Site", f"kind: Site\n  {QUOTED}: 1")
    ran = ruleop("check", "-o", output)
    assert ran.status == 1, ran.err
    assert_safe(ran.out + ran.err)


@pytest.mark.parametrize(
    "arguments",
    [("render", "-f", TEXT), ("plan", TEXT), (TEXT,), ("check", f"--{TEXT}"), ("plan", "-f", "site.yaml", "-o", TEXT)],
    ids=range(5),
)
def test_no_usage_error_contains_control_characters(project, ruleop, arguments):
    ran = ruleop(*arguments)
    assert ran.status == 2
    assert_safe(ran.out + ran.err)


def test_no_traceback_contains_control_characters(project, ruleop, monkeypatch):
    def fail(*_args, **_options):
        raise ValueError(TEXT)

    monkeypatch.setattr("ruleop.cli.plan.make_passes", fail)
    monkeypatch.setenv("RULEOP_DEBUG", "1")
    ran = ruleop("plan", "-f", "site.yaml")
    assert "ValueError" in ran.err
    assert_safe(ran.out + ran.err)


@pytest.mark.slow
def test_no_error_of_the_project_at_the_start_of_run_contains_control_characters(project, ruleop):
    project.edit("watches.yaml", "kind: Site", f"kind: Site\n  {QUOTED}: 1")
    ran = ruleop("run")
    assert ran.status == 1
    assert_safe(ran.out + ran.err)
