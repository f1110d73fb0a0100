"""Findings can be allowed with a reason; a comment that allows nothing is a finding."""

import pytest

from tests.authoring.checking.projects import said, said_of
from tests.language.rules.projects import watch

UNUSED = "RO105 templates/a.yaml: warning: nothing uses this template"
FORM = "write `ruleop: allow ID REASON`, like `ruleop: allow RO703 the platform team sets the image`"


def test_a_project_without_comments_has_findings():
    assert said_of("let:\n  size: spec.size\nstatus: {size: '{{ size }}'}")[-1].startswith("RO208 watches.yaml:5:11: ")


@pytest.mark.parametrize(
    "let",
    [
        "let:\n  size: spec.size  # ruleop: allow RO208 it is the name of a field",
        "let:\n  # ruleop: allow RO208 it is the name of a field\n  size: spec.size",
        "let:\n  # ruleop: allow RO208 it is the name of a field\n  # and another comment\n\n  size: spec.size",
        "let:\n  # ruleop: allow RO105, RO208 it is the name of a field\n  size: spec.size",
    ],
)
def test_a_comment_silences_its_line_or_the_next(let):
    assert not any(each.startswith("RO208") for each in said_of(f"{let}\nstatus: {{size: '{{{{ size }}}}'}}"))


def test_a_comment_after_a_value_does_not_hold_for_the_next_line():
    found = said_of("let:  # ruleop: allow RO208 why\n  size: spec.size\nstatus: {size: '{{ size }}'}")
    assert [each[:5] for each in found if "status" not in each] == ["RO802", "RO208"]


def test_a_finding_about_a_file_is_silenced_on_its_first_line():
    assert said_of("children: {}", a="kind: A\n") == [UNUSED]
    assert said_of("children: {}", a="{# ruleop: allow RO105 for later #}\nkind: A\n") == []
    assert said_of("children: {}", a="kind: A {# ruleop: allow RO105 for later #}\n") == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("allow RO105", f"RO105 is allowed without a reason: {FORM}"),
        ("allow RO105 -", f"RO105 is allowed without a reason: {FORM}"),
        ("allow", f"not an id of a check: {FORM}"),
        ("allow everything", f"not an id of a check: {FORM}"),
        ("allow RO999 why", 'unknown check "RO999"'),
        ("allow unused-template why", 'unknown check "unused-template": write its id, RO105'),
        (
            "allow RO102 why",
            "RO102 (yaml) cannot be allowed: the project cannot be used until it is corrected",
        ),
    ],
)
def test_an_invalid_comment_is_a_finding(comment, message):
    found = said_of("children: {}", a=f"kind: A {{# ruleop: {comment} #}}\n")
    assert found == [UNUSED, f"RO801 templates/a.yaml:1:10: warning: {message}"]


def test_a_project_allows_a_check_with_a_reason():
    watches = f"allow:\n  RO105: we keep old templates\nwatches:\n{watch('children: {}')}"
    assert said(watches, {"templates/a.yaml": "kind: A\n"}) == []
