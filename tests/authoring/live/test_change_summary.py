"""The summary of many plans keeps counts, not plans, and no value of a Secret."""

from __future__ import annotations

import pytest

from ruleop.authoring.report.change_summary import MAX_GROUPS, ChangeSummary
from ruleop.authoring.report.spans import text_of
from ruleop.authoring.report.views import ResourceView
from ruleop.kubernetes.kinds import ObjectKey
from ruleop.planning import FixedObjects, KindInfo, Observed, Plan, Problem, plan
from tests.planning.harness import app, config, rule

RULE = rule(
    "children: {a: {template: a.yaml}}",
    a='apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ metadata.name }}"}\ndata: {page: "{{ spec.page }}"}\n',
)


class Kinds:
    def info(self, kind):
        return KindInfo(kind)

    def state_of(self, observe):
        return self.info(observe.kind).state


def planned(name: str, page: str, before: str | None = None) -> ResourceView:
    resource = app({"page": page}, name=name, uid=name)
    objects = []
    if before is not None:
        (made,) = plan(RULE, app({"page": before}, name=name, uid=name), Observed(FixedObjects(), Kinds())).actions
        objects = [made.object]
    return ResourceView(resource, plan(RULE, resource, Observed(FixedObjects(objects), Kinds())), RULE, kinds=Kinds())


def summary(*plans):
    found = ChangeSummary()
    for each in plans:
        found.add(each)
    return found


def test_the_same_change_is_one_line_with_its_values():
    found = summary(*(planned(f"s{number}", "new", "old") for number in range(5)), planned("t", "same", "same"))
    assert text_of(found.lines()) == (
        "App.example.com\n"
        "~ patch ConfigMap  a\n"
        "    data.page: old -> new  in 5: App shop/s0, App shop/s1, App shop/s2 and 2 more\n"
        "\n"
        "5 of 6 would change, 1 would only get a new status.\n"
    )


def test_different_values_are_not_shown():
    found = summary(planned("a", "x", "y"), planned("b", "z", "y"))
    assert "    data.page: different values  in 2: App shop/a, App shop/b\n" in text_of(found.lines())


def test_created_objects_are_counted():
    assert "+ create ConfigMap  a  in 2: App shop/a, App shop/b\n" in text_of(
        summary(planned("a", "x"), planned("b", "x")).lines()
    )


def test_nothing_to_do():
    assert text_of(ChangeSummary().lines()) == "0 of 0 would change.\n"


def test_problems_with_the_same_cause_are_one_line():
    taken = Observed(FixedObjects([config("a"), config("b")]), Kinds())
    resources = [app({"page": "x"}, name=name, uid=name) for name in ("a", "b")]
    found = summary(*(ResourceView(each, plan(RULE, each, taken), RULE, kinds=Kinds()) for each in resources))
    lines = text_of(found.lines()).splitlines()
    assert lines[1] == (
        "! a: ConfigMap a in namespace shop already exists and is not managed by App (it has no owner): "
        "rename the child, delete the object, or use `adopt: orphans`"
    )
    assert lines[2].strip() == "in 2: App shop/a, App shop/b"
    assert lines[-1].endswith("2 with errors.")
    assert found.as_json()["problems"][0]["reason"] == "ErrResourceExists"


def test_resources_without_a_plan_or_a_rule_are_counted():
    failed = ResourceView(app({}, name="b"), chosen=RULE, error="it is nested too deeply")
    found = summary(planned("a", "x", "x"), failed, ResourceView(app({}, name="c")))
    assert text_of(found.lines()) == (
        "App.example.com\n"
        "! it is nested too deeply  in 1: App shop/b\n"
        "\n"
        "0 of 3 would change, 1 would only get a new status, 1 with errors, 1 not selected by any rule.\n"
    )


@pytest.mark.parametrize("number", [MAX_GROUPS + 7])
def test_a_summary_keeps_a_bounded_number_of_problems(number):
    resource = app({"page": "x"})
    problems = [Problem(f"child {index}", "RenderFailed", "message") for index in range(number)]
    plans = [Plan(ObjectKey.of(resource), "cr-1", RULE.title, problems=(each,)) for each in problems]
    found = summary(*(ResourceView(resource, each, RULE, kinds=Kinds()) for each in plans))
    assert len(found.problems) == MAX_GROUPS
    assert found.as_json()["more"] == 7
    assert found.failed == number
