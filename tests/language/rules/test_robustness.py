"""For any contents of its files, loading a project returns it or errors with positions, and never raises a
traceback."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.keys.watches_yaml import watches_schema
from ruleop.language.templates import read_yaml
from tests.exploration import examples
from tests.language.rules.projects import CRD, SERVICE, load
from tests.language.rules.test_schema_json import EXAMPLES, VALIDATOR

FILES = {"templates/status.yaml": "a: {{ spec.a }}\n", "rules/a.yaml": "- {version: v1, kind: Secret}\n"}
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2.5,
        "",
        "x",
        "a.yaml",
        "{{",
        "{{ spec }}",
        "{% if %}",
        "spec",
        "live.a",
        "${A}",
        "${",
        [],
        {},
        [[]],
        [{}],
        {"a": None},
        {"a": {"a": {}}},
    ]
)
WORDS = [
    "a",
    "b",
    "template",
    "object",
    "when",
    "name",
    "selector",
    "kind",
    "status",
    "forEach",
    "as",
    "zzz",
    "{{ spec.x }}",
    "let",
    "vars",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [place for key, member in value.items() for place in places(member, (*path, key))]
    if isinstance(value, list):
        return found + [place for number, item in enumerate(value) for place in places(item, (*path, number))]
    return found


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A project's rules with a few values replaced, removed or added."""
    text = draw(st.sampled_from([text for text in EXAMPLES.values() if "kind: App" in text]))
    value = copy.deepcopy(read_yaml(text, "watches.yaml")[0][0].data())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(value) or [()]))
        if not place:
            break
        around = value
        for step in place[:-1]:
            around = around[step]
        what = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if what == "replace":
            around[place[-1]] = copy.deepcopy(draw(ODD))
        elif what == "remove":
            del around[place[-1]]
        elif isinstance(around, dict):
            around[draw(st.sampled_from(WORDS))] = copy.deepcopy(draw(ODD))
    return value


def mistakes(text: str, files: dict[str, str]) -> list[str]:
    try:
        load(text, files)
    except ProjectErrors as error:
        found = error.mistakes
    else:
        return []
    assert found
    assert all(mistake.site.path for mistake in found)
    return [str(mistake) for mistake in found]


@pytest.mark.slow
@settings(max_examples=examples(250), deadline=None)
@given(spoiled())
def test_mutated_rules_load_or_are_refused_with_errors(value: Any) -> None:
    # JSON is YAML, and this way of writing it needs no library that writes YAML.
    found = mistakes(json.dumps(value), FILES)
    if not found:
        VALIDATOR.validate(value)  # what the reader accepts, the schema accepts


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(st.text(alphabet="-: {}[]%\n\"'#|>&*!?,.abspecx0\t", max_size=60))
def test_any_text_loads_or_is_refused_with_errors(text: str) -> None:
    mistakes(text, FILES)
    mistakes(
        "- {group: example.com, version: v1, kind: App, children: {a: {template: a.yaml}}}\n",
        {"templates/a.yaml": SERVICE + text},
    )
    mistakes("- {group: example.com, version: v1, kind: App}\n", {"crds/apps.yaml": CRD + text})


def test_the_json_schema_is_plain_json() -> None:
    assert json.loads(json.dumps(watches_schema())) == watches_schema()
