"""The rules of a valid project."""

from __future__ import annotations

import dataclasses

import pytest

from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import parse_path
from ruleop.language.rules import Child, Condition, Ordinary, ProjectErrors, Rule
from ruleop.language.rules.checking import build_project
from ruleop.language.rules.keys.model import Pace
from tests.language.rules.projects import CRD, SERVICE, load, rule, said, watch

JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"


def child(body: str, files: dict[str, str] | None = None) -> Child:
    """The child `a` of a watch that says this of it."""
    return rule(f"children:\n  a: {body}", files).children["a"]


def default_of(cls: type, name: str) -> object:
    field = next(field for field in dataclasses.fields(cls) if field.name == name)
    return field.default if field.default is not dataclasses.MISSING else field.default_factory()


def test_omitted_keys_of_a_watch_have_the_defaults_of_the_model() -> None:
    empty = rule("")
    assert (empty.kind, empty.name, empty.title) == (Kind("example.com", "v1", "App"), "", "App.example.com")
    for field in dataclasses.fields(Rule):
        if field.name not in ("kind", "name", "site", "digest", "revision"):
            assert getattr(empty, field.name) == default_of(Rule, field.name), field.name


def test_omitted_keys_of_a_child_have_the_defaults_of_the_model() -> None:
    plain = child("{template: a.yaml}")
    assert (plain.id, str(plain.site), plain.kinds, plain.many) == (
        "a",
        "watches.yaml:5:5",
        {Kind("", "v1", "Service")},
        False,
    )
    for field in dataclasses.fields(Child):
        if field.name not in ("id", "site", "body", "form", "kinds", "many", "inputs"):
            assert getattr(plain, field.name) == default_of(Child, field.name), field.name
    assert plain.form == Ordinary()
    assert (plain.inputs.mentions, plain.inputs.ids) == (frozenset(), ())


def test_every_key_of_a_watch_reaches_the_rule() -> None:
    found = rule(
        """
        name: small
        vars: {a: 1, b: [x, {c: true}]}
        let: {first: 1, second: "{{ first }}"}
        selector:
          matchLabels: {size: small}
          matchExpressions: [{key: tier, operator: NotIn, values: [gold, silver]}, {key: x, operator: Exists}]
        namespaces: [one, two]
        reconcilePeriod: 1h30m
        maxConcurrentReconciles: 3
        manageStatus: false
        reach: cluster
        """
    )
    assert found.title == "App.example.com (small)"
    assert found.vars == {"a": 1, "b": ["x", {"c": True}]}
    assert list(found.let) == ["first", "second"]
    assert found.let["second"].evaluate({"first": 7}) == 7
    selector = found.selection.selector
    assert {label: value.constant for label, value in selector.match_labels.items()} == {"size": "small"}
    assert [
        (one.key, one.operator, [value.constant for value in one.values]) for one in selector.match_expressions
    ] == [
        ("tier", "NotIn", ["gold", "silver"]),
        ("x", "Exists", []),
    ]
    assert (found.selection.namespaces, found.pace) == (("one", "two"), Pace(5400.0, 3))
    assert (found.status.managed, found.reach.cluster) == (False, True)


def test_a_plain_selector_is_its_match_labels() -> None:
    plain, full = (rule(f"selector: {each}").selection.selector for each in ("{a: b}", "{matchLabels: {a: b}}"))
    assert [(label, value.constant) for label, value in plain.match_labels.items()] == [("a", "b")]
    assert [(label, value.constant) for label, value in full.match_labels.items()] == [("a", "b")]


def test_a_label_may_have_the_name_of_a_selector_key_if_its_value_is_a_string() -> None:
    assert "app" in rule("selector: {app: matchLabels}").selection.selector.match_labels


def test_every_key_of_a_child_reaches_the_child() -> None:
    found = child(
        """
        {template: a.yaml, when: spec.on, waitFor: spec.go, forEach: spec.list, as: thing, dependsOn: [b], readyWhen: this.ok,
         adopt: orphans, deletion: "{{ thing.deletion }}", namespace: "{{ metadata.namespace }}", optional: true}
  b: {template: a.yaml}"""
    )
    assert found.when.evaluate({"spec": {"on": 1}}) == 1
    assert found.wait_for.evaluate({"spec": {"go": 2}}) == 2
    (loop,) = found.for_each
    assert (loop.name, loop.over.evaluate({"spec": {"list": [3]}})) == ("thing", [3])
    assert found.ready_when.evaluate({"this": {"ok": 4}}) == 4
    assert (found.many, found.depends_on) == (True, ("b",))
    assert (found.apply.adopt, found.optional) == ("orphans", True)
    assert found.deletion.policy.evaluate({"thing": {"deletion": "orphan"}}) == "orphan"
    assert found.namespace.evaluate({"metadata": {"namespace": "n"}}) == "n"


def test_when_may_be_a_lone_boolean() -> None:
    assert child("{template: a.yaml, when: false}").when.truth({}) is False
    assert child("{template: a.yaml, when: true}").when.truth({}) is True


def test_a_child_is_a_list_with_for_each_or_several_documents() -> None:
    assert not child("{template: a.yaml}").many
    assert child("{template: a.yaml}", {"templates/a.yaml": SERVICE + "---\n" + SERVICE}).many
    assert child("{object: {apiVersion: v1, kind: Service, metadata: {name: a}}, forEach: spec.list}").many


def test_apply_is_merged_from_the_file_the_watch_and_the_child() -> None:
    project = load(
        "apply: {strategy: create-only, ignore: [spec.file], onImmutable: recreate}\nwatches:\n"
        + watch(
            """
            apply: {ignore: [{path: spec.watch, when: spec.auto}], strategy: server-side}
            children:
              inherits: {template: a.yaml}
              says: {template: a.yaml, apply: {strategy: merge, ignore: [spec.child], onImmutable: fail}}
            """
        )
    )
    inherits, says = project.rules[0].children["inherits"].apply, project.rules[0].children["says"].apply
    assert (inherits.strategy, inherits.on_immutable.constant, inherits.on_immutable_explicit) == (
        "server-side",
        "recreate",
        False,
    )
    assert (says.strategy, says.on_immutable.constant, says.on_immutable_explicit) == ("merge", "fail", True)
    assert [str(ignored.path) for ignored in says.ignore] == ["spec.file", "spec.watch", "spec.child"]
    assert inherits.ignore[0].path == parse_path("spec.file")
    assert inherits.ignore[0].when is None
    assert inherits.ignore[1].when.evaluate({"spec": {"auto": True}}) is True


def test_owned_lists_are_merged_from_the_file_the_watch_and_the_child() -> None:
    project = load(
        "apply: {own: [spec.ports]}\nwatches:\n"
        + watch(
            "apply: {own: [spec.template.spec.containers]}\nchildren: {a: {template: a.yaml}, d: {template: d.yaml}}"
        ),
        {"templates/d.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"},
    )
    for child in project.rules[0].children.values():
        assert child.apply.own == (parse_path("spec.ports"), parse_path("spec.template.spec.containers"))


def test_a_run_is_created_and_never_changed_whatever_the_shared_strategy() -> None:
    project = load(
        "apply: {strategy: server-side}\nwatches:\n"
        + watch("children: {a: {template: a.yaml, once: '{{ spec.run }}'}}")
    )
    assert project.rules[0].children["a"].apply.strategy == "create-only"


def test_values_of_the_watch_override_shared_values() -> None:
    project = load(
        "vars: {a: shared, b: shared}\nlet: {x: shared, w: '{{ x }}'}\nwatches:\n"
        + watch("vars: {b: own, c: own}\nlet: {x: own, z: '{{ w }}'}")
    )
    (only,) = project.rules
    assert only.vars == {"a": "shared", "b": "own", "c": "own"}
    assert {name: tree.evaluate({"x": "X", "w": "W"}) for name, tree in only.let.items()} == {
        "x": "own",
        "w": "X",
        "z": "W",
    }
    assert list(only.let) == ["x", "w", "z"]


def test_included_files_follow_in_order_and_share_the_settings_of_their_includer() -> None:
    files = {
        "rules/b.yaml": watch("name: b\nselector: {a: b}"),
        "rules/a.yaml": "vars: {w: inner}\nwatches:\n" + watch("name: a\nselector: {a: a}"),
        "rules/deeper/c.yaml": watch("name: c"),
        "other.yaml": watch("name: other\nselector: {a: o}"),
    }
    top = "vars: {x: outer, w: outer}\ninclude: [other.yaml, rules/*.yaml, rules/a.yaml]\nwatches:\n" + watch(
        "name: top\nselector: {a: t}"
    )
    project = load(top, files)
    assert [(rule.name, rule.vars) for rule in project.rules] == [
        ("top", {"x": "outer", "w": "outer"}),
        ("other", {"x": "outer", "w": "outer"}),
        ("a", {"x": "outer", "w": "inner"}),
        ("b", {"x": "outer", "w": "outer"}),
    ]
    assert str(project.rules[2].site) == "rules/a.yaml:3:3"


def test_a_glob_does_not_include_watches_yaml_itself() -> None:
    assert len(load("include: ['*.yaml']\nwatches:\n" + watch()).rules) == 1


def test_observed_resources_have_a_name_or_a_selector() -> None:
    found = rule(
        """
        observe:
          pods: {version: v1, kind: Pod, selector: {app: "{{ metadata.name }}"}}
          jobs: {group: batch, version: v1, kind: Job, name: x, namespace: "{{ metadata.namespace }}"}
        """
    ).observe
    assert (found["pods"].kind, found["jobs"].kind) == (Kind("", "v1", "Pod"), Kind("batch", "v1", "Job"))
    assert found["pods"].selector.match_labels["app"].evaluate({"metadata": {"name": "n"}}) == "n"
    assert (found["pods"].name, found["jobs"].selector, found["jobs"].name.constant) == (None, None, "x")
    assert found["jobs"].namespace.evaluate({"metadata": {"namespace": "here"}}) == "here"
    assert str(found["jobs"].site) == "watches.yaml:6:5"


def test_a_rule_has_its_conditions_validations_and_status() -> None:
    found = rule(
        """
        status: {size: "{{ spec.size }}"}
        conditions:
          - {type: example.com/Fine, status: spec.ok, reason: Because, message: "{{ spec.why }}"}
          - {type: Bare, status: spec.ok}
        validate: [{rule: spec.size > 1, message: too small}]
        """
    )
    assert found.status.body.evaluate({"spec": {"size": 3}}) == {"size": 3}
    fine, bare = found.status.conditions
    assert (fine.type, fine.reason.constant, fine.message.evaluate({"spec": {"why": "so"}})) == (
        "example.com/Fine",
        "Because",
        "so",
    )
    assert isinstance(bare, Condition)
    assert (bare.reason, bare.message) == (None, None)
    (validation,) = found.validate
    assert validation.rule.evaluate({"spec": {"size": 2}}) is True
    assert validation.message.constant == "too small"


def test_the_status_may_come_from_a_template() -> None:
    found = rule("status: s.yaml", {"templates/s.yaml": "size: {{ spec.size }}\n"})
    assert found.status.body.render({"spec": {"size": 3}}) == [{"size": 3}]


def test_finalize_children_are_marked_and_ordered_separately() -> None:
    found = rule(
        """
        children:
          b: {template: a.yaml, dependsOn: [a]}
          a: {template: a.yaml}
        finalize:
          d: {template: a.yaml, dependsOn: [c]}
          c: {template: a.yaml, waitFor: live.a.x}
        """
    )
    assert (found.order.children, found.order.final) == (("a", "b"), ("c", "d"))
    assert all(child.final for child in found.finalize.values())
    assert not any(child.final for child in found.children.values())
    assert list(found.children) == ["b", "a"]


def test_built_in_kinds_have_no_status() -> None:
    (found,) = load("- {version: v1, kind: ConfigMap}\n").rules
    assert found.status.managed is False


def test_a_kind_in_a_k8s_io_group_is_builtin_only_if_kubernetes_has_it() -> None:
    (found,) = load("- {group: networking.k8s.io, version: v1, kind: Gateway}\n").rules
    assert found.status.managed is True


def test_the_project_contains_its_templates_and_crds() -> None:
    project = load(watch(), {"templates/deep/b.yaml": "x"})
    assert project.root == "/project"
    assert dict(project.templates) == {"a.yaml": SERVICE, "deep/b.yaml": "x"}
    assert [crd.name for crd in project.crds] == ["apps.example.com"]


def test_the_digest_covers_every_file_and_every_variable_that_was_read() -> None:
    def digest(
        watches: str = watch("vars: {a: '${A:-}'}"),
        files: dict[str, str] | None = None,
        environ: dict[str, str] | None = None,
    ) -> str:
        return load(watches, files, environ).digest

    assert digest() == digest(environ={"OTHER": "x"})
    others = [
        digest(environ={"A": "x"}),
        digest(environ={"A": ""}),
        digest(watch()),
        digest(files={"templates/b": ""}),
        digest(files={"crds/apps.yaml": CRD + "\n"}),
    ]
    assert len({digest(), *others}) == 6


def test_unused_templates_are_warned_of() -> None:
    files = {
        "templates/a.yaml": SERVICE
        + "{% include 'part.yaml' %}\n{% import 'macros/m.j2' as m %}\nspec: {a: \"{{ file('verbatim.conf') }}\"}\n",
        "templates/part.yaml": "x: 1\n",
        "templates/macros/m.j2": "{% macro m() %}{% endmacro %}",
        "templates/verbatim.conf": "y",
        "templates/asked.j2": "z",
        "templates/lost.j2": "{% include 'lost-too.j2' %}",
        "templates/lost-too.j2": "",
    }
    project = load(watch("let: {x: \"{{ render('asked.j2') }}\"}\nchildren: {a: {template: a.yaml}}"), files)
    assert [str(found) for found in project.findings] == [
        "templates/lost-too.j2: warning: nothing uses this template",
        "templates/lost.j2: warning: nothing uses this template",
    ]


def test_errors_are_printed_one_per_line_without_warnings() -> None:
    with pytest.raises(ProjectErrors) as caught:
        load(watch("reach: x\nlet: {a: spec.size}\nadopt: y"), {"templates/a.yaml": SERVICE})
    assert str(caught.value).splitlines() == [str(mistake) for mistake in caught.value.mistakes]
    assert [mistake.site.line for mistake in caught.value.mistakes] == [4, 6]
    assert [(finding.severity, finding.code) for finding in caught.value.findings] == [
        ("error", "wrong-value"),
        ("warning", "looks-like-expression"),
        ("error", "unknown-key"),
    ]


def test_a_project_without_watches_yaml_is_an_error() -> None:
    with pytest.raises(ProjectErrors, match=r"watches\.yaml: no such file"):
        build_project({}, root="/project", environ={})


def test_an_error_in_a_shared_template_is_reported_once() -> None:
    two = watch("name: a\nselector: {a: b}\nchildren: {a: {template: a.yaml}}") + watch(
        "name: b\nchildren: {a: {template: a.yaml}}"
    )
    assert said(two, {"templates/a.yaml": SERVICE + "x: {{ nobody }}\n"}) == [
        'templates/a.yaml:4:7: "nobody" is not known in the child "a"'
    ]
