"""`ruleop generate schema`: to stdout or into a folder, the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.exploration import others_slow

NAMES = ("watches", "tests", "ruleop")
RULE_TESTS = sorted((Path(__file__).parents[2] / "examples").rglob("*.test.yaml"))


@pytest.mark.slow
def test_the_schema_of_watches_yaml_goes_to_stdout(ruleop):
    ran = ruleop("generate", "schema")
    assert (ran.status, ran.err) == (0, "")
    jsonschema.Draft202012Validator.check_schema(json.loads(ran.out))
    assert ruleop("generate", "schema").out == ran.out


def test_with_out_all_are_files_with_the_same_bytes(ruleop, tmp_path):
    out = tmp_path / "schemas"
    ran = ruleop("generate", "schema", "--out", str(out))
    assert ran.out == "".join(f"{out}/{name}.schema.json: written\n" for name in NAMES)
    assert (out / "watches.schema.json").read_text() == ruleop("generate", "schema").out
    assert (out / "tests.schema.json").read_text() == ruleop("generate", "schema", "--tests").out
    assert (out / "ruleop.schema.json").read_text() == ruleop("generate", "schema", "--choices").out


def test_one_schema_is_chosen_at_a_time(ruleop):
    ran = ruleop("generate", "schema", "--tests", "--choices")
    assert (ran.status, ran.err) == (2, "ruleop: --tests and --choices exclude each other\n")


@pytest.mark.slow
@pytest.mark.parametrize("file", others_slow(RULE_TESTS, RULE_TESTS[0]), ids=lambda file: file.name)
def test_the_schema_of_rule_tests_accepts_those_of_the_examples(ruleop, file):
    schema = json.loads(ruleop("generate", "schema", "--tests").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(file.read_text()), schema, jsonschema.Draft202012Validator)


def test_a_current_file_is_not_written_again(ruleop, tmp_path):
    ruleop("generate", "schema", "--out", str(tmp_path))
    before = (tmp_path / "watches.schema.json").stat().st_mtime_ns
    assert ruleop("generate", "schema", "--out", str(tmp_path)).out.endswith(": current\n")
    assert (tmp_path / "watches.schema.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("text", [None, "{}"], ids=["missing", "edited"])
def test_check_reports_a_file_that_is_not_current_and_leaves_it(ruleop, tmp_path, text):
    file = tmp_path / "watches.schema.json"
    if text is not None:
        file.write_text(text)
    ran = ruleop("generate", "schema", "--out", str(tmp_path), "--check")
    assert (ran.status, ran.out) == (
        1,
        "".join(f"{tmp_path}/{name}.schema.json: not current\n" for name in NAMES),
    )
    assert file.exists() is (text is not None)


def test_check_of_a_current_file_succeeds(ruleop, tmp_path):
    ruleop("generate", "schema", "--out", str(tmp_path))
    ran = ruleop("generate", "schema", "--out", str(tmp_path), "--check")
    assert ran.status == 0
    assert ran.out == "".join(f"{tmp_path}/{name}.schema.json: current\n" for name in NAMES)


def test_check_needs_a_folder(ruleop):
    ran = ruleop("generate", "schema", "--check")
    assert (ran.status, ran.err) == (2, "ruleop: --check compares with files: name their folder with --out\n")


def test_a_folder_that_cannot_be_written_is_an_error(ruleop, tmp_path):
    (tmp_path / "file").write_text("")
    ran = ruleop("generate", "schema", "--out", str(tmp_path / "file"))
    assert ran.status == 2
    assert "file/watches.schema.json: cannot be read: Not a directory" in ran.err


def test_an_unknown_command_below_generate_names_the_nearest(ruleop):
    ran = ruleop("generate", "shema")
    assert ran.status == 2
    assert "unknown command 'shema' (did you mean schema?)" in ran.err


@pytest.mark.parametrize("option", [[], ["--tests"]], ids=["watches.yaml", "rule tests"])
def test_each_key_of_a_schema_has_a_description_of_one_sentence(ruleop, option):
    schema = json.loads(ruleop("generate", "schema", *option).out)
    described = {
        f"{table}.{name}": inner.get("description", "")
        for table, found in schema["$defs"].items()
        for name, inner in found["properties"].items()
    }
    assert len(described) > 20
    assert {
        key: text for key, text in described.items() if not text.endswith(".") or "\n" in text or len(text) > 160
    } == {}
