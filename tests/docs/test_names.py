"""docs/names.md has all names that ruleop gives to objects, and its project of several teams loads."""

from __future__ import annotations

import re
from pathlib import Path

from ruleop.kubernetes.names import DEFAULT_OPERATOR, MOST_OF_NAME, RESERVED_PREFIX, lease_name, status_manager
from ruleop.language.rules.checking import load_project
from ruleop.operator.controllers.inventory import inventory_key
from ruleop.operator.passes.owner_key import owner_key_key
from ruleop.operator.revisions.revision_store import revisions_key
from ruleop.operator.rollouts.rollouts import rollouts_key
from ruleop.planning.model.marks import SWITCHES
from tests.docs.examples import define, examples, write
from tests.docs.messages import ROOT

PAGE = ROOT / "docs" / "names.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_has_every_label_and_annotation_of_the_code_and_no_other() -> None:
    source = "\n".join(
        file.read_text(encoding="utf-8")
        for part in ("kubernetes", "planning", "operator")
        for file in (ROOT / "ruleop" / part).rglob("*.py")
    )
    code = set(re.findall(r'f"\{RESERVED_PREFIX\}([a-z][a-z-]*[a-z])', source))
    assert len(code) > 10
    assert set(re.findall(rf"`{re.escape(RESERVED_PREFIX)}([a-z-]*[a-z])\b", TEXT)) == code


def test_the_page_has_the_objects_of_the_operator() -> None:
    keys = [make("ns", "NAME") for make in (inventory_key, revisions_key, rollouts_key, owner_key_key)]
    assert [key.name for key in keys if f"`{key.name}`" not in TEXT] == []
    assert lease_name("NAME", ordinal=0) == "NAME.0"
    assert status_manager("NAME") == "ruleop-NAME"
    assert (DEFAULT_OPERATOR, status_manager(DEFAULT_OPERATOR)) == ("ruleop", "ruleop")
    assert f"at most {MOST_OF_NAME} lowercase letters" in TEXT


def test_the_page_has_every_annotation_that_people_set() -> None:
    assert [name for name in SWITCHES if f"`{name}:" not in TEXT] == []


def test_the_project_of_several_teams_loads_without_a_remark(tmp_path: Path) -> None:
    for step in examples(PAGE)["teams"].steps:
        write(tmp_path, step)
    define(tmp_path)
    project = load_project(tmp_path, environ={})
    assert {rule.kind.kind for rule in project.rules} == {"Shop", "Blog"}
    assert [str(finding) for finding in project.findings] == []
