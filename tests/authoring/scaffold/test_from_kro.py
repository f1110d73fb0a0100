"""A project from ResourceGraphDefinitions of kro: it passes check and its tests, its children are those of kro, and
an expression without a counterpart is named at its place and in the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.checking import check_project
from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.authoring.offline import EPOCH, OfflineKinds, as_live, documents_in, identified, prepare
from ruleop.authoring.scaffold.kro.kro_project import kro_projects
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.new_project import NewProject, project_files, write_files
from ruleop.language.rules.checking import load_with_sources
from ruleop.planning import FixedObjects, Observed, Plan, choose_rule, plan
from tests.authoring.scaffold.projects import cases_pass

HEAD = """\
apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: app}
spec:
"""
CONFIG = "apiVersion: v1, kind: ConfigMap, metadata: {name: "


def graph(resources: str, spec: str = "{name: string | required=true}", more: str = "") -> str:
    indented = "\n".join(f"    {line}" for line in resources.strip("\n").split("\n"))
    fields = "\n".join(f"    {line}" for line in more.strip("\n").split("\n"))
    schema = f"  schema:\n    apiVersion: v1alpha1\n    kind: App\n    spec: {spec}\n{fields}\n"
    return f"{HEAD}{schema}  resources:\n{indented}\n"


def projects_of(*texts: str, samples: tuple[dict[str, Any], ...] = ()) -> list[NewProject]:
    found = []
    for index, text in enumerate(texts):
        documents, mistakes = documents_in(text, f"rgd{index or ''}.yaml")
        assert not mistakes, mistakes[0]
        found += documents
    return kro_projects(found, samples)


class Made:
    """The files of a project on disk, which passes check and its own tests."""

    def __init__(self, project: NewProject, root: Path) -> None:
        self.files = project_files(project, {})
        write_files(root, self.files)
        loaded = load_with_sources(root, environ={})
        assert [str(each) for each in check_project(loaded) if each.severity == "error"] == []
        assert cases_pass(root)
        self.project = with_definitions(loaded).project
        self.notes = project.notes
        self.watch = yaml.load(self.files["watches.yaml"], yaml.CSafeLoader)[0]
        self._sample = next(text for name, text in self.files.items() if name.startswith("examples/"))

    def plan(self, *live: dict[str, Any], **spec: Any) -> Plan:
        kinds = OfflineKinds(self.project)
        sample = yaml.load(self._sample, yaml.CSafeLoader)
        sample["spec"] = {**sample["spec"], **spec}
        resource, findings = prepare(self.project, identified(sample, [], kinds))
        assert findings == []
        rule = choose_rule(self.project.rules, resource)
        assert rule is not None
        objects = FixedObjects([*as_live(list(live), kinds), resource])
        return plan(rule, resource, Observed(objects, kinds, now=EPOCH, seed=b""))

    def rendered(self, *live: dict[str, Any], **spec: Any) -> dict[str, Any]:
        found = self.plan(*live, **spec)
        assert found.problems == ()
        return {f"{child}/{obj['metadata']['name']}": obj for child, _, obj in found.rendered}

    def template(self, child: str) -> str:
        return self.files[f"templates/app/{child}.yaml.j2"]


@pytest.fixture
def made(tmp_path):
    def make(*resources: str, spec: str = "{name: string | required=true}", more: str = "") -> Made:
        [project] = projects_of(graph("\n".join(resources), spec, more))
        return Made(project, tmp_path)

    return make


def config(name: str, data: str, *more: str) -> str:
    """A resource that is a ConfigMap."""
    lines = [f"- id: {name}", *(f"  {each}" for each in more)]
    lines += [f"  template: {{{CONFIG}'${{schema.spec.name}}-{name}'}}, data: {data}}}"]
    return "\n".join(lines)


def test_children_that_read_another_are_deleted_before_it(made):
    one = config("one", "{a: '${schema.spec.name}'}")
    two = config("two", "{a: '${one.metadata.name}'}")
    assert made(one, two).watch["deletionOrder"] == "reverse"


def test_without_a_child_that_reads_another_there_is_no_order(made):
    observed = "- id: other\n  externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"
    found = made(observed, config("one", "{a: '${schema.spec.name}'}"), config("two", "{a: '${other.metadata.name}'}"))
    assert "deletionOrder" not in found.watch


def test_the_example_has_what_the_graph_reads_of_an_object(made):
    data = "{a: '${schema.spec.nested.field}', b: '${schema.spec.nested.deep.inner.lowerAscii()}', c: '${schema.spec.name}'}"
    found = made(config("one", data), spec="{name: string | required=true, nested: object}")
    rendered = found.rendered()["one/example-one"]
    assert rendered["data"] == {"a": "example", "b": "example", "c": "example"}


def test_an_example_that_the_schema_does_not_accept_has_no_test():
    spec = """{name: 'string | required=true pattern="^a$" minLength=2'}"""
    [project] = projects_of(graph(config("one", "{a: '${schema.spec.name}'}"), spec))
    assert project.notes[-1].startswith("examples/app-sample.incomplete has to be completed, then renamed to .yaml")
    files = project_files(project, {})
    assert "examples/app-sample.incomplete" in files
    assert not any(name.startswith("tests/") for name in files)


def test_a_graph_becomes_a_rule_with_its_schema_and_children(made):
    types = """
types: {Port: {number: integer | minimum=1}}
shortNames: [ap]
categories: [all]
additionalPrinterColumns:
  - {name: Name, type: string, jsonPath: .spec.name}
  - {name: State, type: string, jsonPath: .status.state}
status: {first: "${one.metadata.name}", text: "is ${one.metadata.name}"}
"""
    one = config("one", "{a: '${schema.spec.name}', b: plain}")
    found = made(one, spec="{name: string | required=true, ports: '[]Port'}", more=types)
    watch = found.watch
    assert (watch["group"], watch["version"], watch["kind"]) == ("kro.run", "v1alpha1", "App")
    assert watch["schema"] == {
        "spec": {"name": "string | required=true", "ports": "[]Port"},
        "types": {"Port": {"number": "integer | minimum=1"}},
        "shortNames": ["ap"],
        "columns": [{"name": "Name", "type": "string", "jsonPath": ".spec.name"}],
    }
    assert watch["status"] == {"first": "{{ one.metadata.name }}", "text": "is {{ one.metadata.name }}"}
    assert found.rendered(name="x")["one/x-one"]["data"] == {"a": "x", "b": "plain"}
    assert any("the column of .status.state was left out" in each for each in found.notes)
    assert any("categories of the schema was left out: a CRD in crds/ can have them" in each for each in found.notes)


def test_a_value_keeps_its_type(made):
    resources = "- id: web\n  template: {apiVersion: example.com/v1, kind: Web, metadata: {name: a}, spec: {size: '${schema.spec.size}', active: '${schema.spec.active}', l: '${schema.spec.l}', s: 'n-${schema.spec.size}'}}"
    spec = "{size: integer | default=3, active: boolean | default=false, l: '[]string | default=[\"a\"]'}"
    found = made(resources, spec=spec)
    assert found.rendered()["web/a"]["spec"] == {"size": 3, "active": False, "l": ["a"], "s": "n-3"}


def test_a_condition_holds_for_what_reads_the_resource_too(made):
    found = made(
        config("one", "{a: b}", "includeWhen: ['${schema.spec.active}', '${schema.spec.name != \"no\"}']"),
        config("two", "{a: '${one.metadata.name}'}"),
        spec="{name: string | required=true, active: boolean | default=true}",
        more="status: {s: '${two.metadata.name}'}",
    )
    when = "spec.active and spec.name != 'no'"
    assert [each.get("when") for each in found.watch["children"].values()] == [when, when]
    assert found.watch["status"] == {"s": f"{{{{ two.metadata.name if {when} }}}}"}
    assert [*found.rendered(name="x")] == ["one/x-one", "two/x-two"]
    assert found.rendered(name="x", active=False) == {}


def test_a_condition_on_another_resource_is_in_the_template(made):
    found = made(
        config("one", "{a: b}"),
        config("two", "{a: b}", "includeWhen: ['${one.data.a == \"b\"}']"),
        config("three", "{a: '${two.data.a}'}"),
    )
    assert found.template("two").startswith("{% if one.data.a == 'b' %}\n")
    assert found.template("three").startswith("{% if one.data.a == 'b' %}\n")
    assert [*found.rendered(name="x")] == ["one/x-one", "two/x-two", "three/x-three"]


def test_a_reader_of_a_resource_waits_until_it_is_ready(made):
    db = """
- id: db
  readyWhen: ['${db.status.phase == "Up"}', '${has(db.status.host)}']
  template: {apiVersion: example.com/v1, kind: Db, metadata: {name: '${schema.spec.name}'}}
"""
    found = made(db, config("two", "{a: '${db.metadata.name}'}"))
    assert found.watch["children"]["db"]["readyWhen"] == "this.status.phase == 'Up' and 'host' in this.status"
    assert found.watch["children"]["two"]["waitFor"] == "ready.db"
    assert [each.for_what for each in found.plan(name="x").waits] == ["waitFor: ready.db"]


def test_a_loop_is_for_each_and_several_are_loops_in_the_template(made):
    resources = """
- id: one
  forEach: [{zone: '${schema.spec.zones}'}]
  readyWhen: ['${each.data.a == "z"}']
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: 'one-${zone}'}, data: {a: '${zone}'}}
- id: many
  forEach: [{zone: '${schema.spec.zones}'}, {item: '${lists.range(2)}'}]
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "many-${zone + '-' + string(item)}"}}
"""
    found = made(resources, spec='{zones: \'[]string | default=["a", "b"]\'}')
    child = found.watch["children"]["one"]
    assert (child["forEach"], child["as"], child["readyWhen"]) == ("spec.zones", "zone", "this.data.a == 'z'")
    assert found.watch["children"]["many"]["forEach"] == {"zone": "spec.zones", "item2": "range(2)"}
    many = [f"many/many-{zone}-{item}" for zone in "ab" for item in (0, 1)]
    assert [*found.rendered()] == ["one/one-a", "one/one-b", *many]
    assert found.rendered(zones=[]) == {}


def test_an_external_reference_is_observed(made):
    resources = """
- id: shared
  externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: '${schema.spec.name}-shared', namespace: '${schema.metadata.namespace}'}}
- id: pods
  externalRef: {apiVersion: v1, kind: Pod, metadata: {selector: {matchLabels: {app: '${schema.spec.name}'}}}}
"""
    found = made(resources, config("two", "{a: '${shared.data.key}', b: '${string(size(pods))}'}"))
    assert found.watch["observe"] == {
        "shared": {"version": "v1", "kind": "ConfigMap", "name": "{{ spec.name }}-shared"},
        "pods": {"version": "v1", "kind": "Pod", "selector": {"app": "{{ spec.name }}"}},
    }
    metadata = {"name": "x-shared", "namespace": "default"}
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "k"}}
    assert found.rendered(live, name="x")["two/x-two"]["data"] == {"a": "k", "b": "0"}
    assert any("pods is looked up in one namespace; in kro, in all" in each for each in found.notes)


def test_readiness_of_an_external_reference_gates_what_reads_it(made):
    shared = """
- id: shared
  readyWhen: ['${shared.data.ok == "yes"}']
  externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: shared}}
"""
    found = made(shared, config("two", "{a: '${shared.metadata.name}'}"))
    assert found.watch["children"]["two"]["waitFor"] == "shared.data.ok == 'yes'"


def test_objects_of_another_namespace_or_of_the_cluster_need_reach(made):
    found = made("""
- id: home
  template: {apiVersion: v1, kind: Namespace, metadata: {name: '${schema.spec.name}'}}
- id: one
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: '${home.metadata.name}'}}
- id: own
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: '${schema.metadata.namespace}'}}
""")
    assert found.watch["reach"] == "cluster"
    assert "reach: cluster, because of home, one." in found.notes


def test_a_field_without_a_translation_is_left_out_with_a_comment_and_a_note(made):
    resources = """
- id: one
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: one, finalizers: [a/b]}
    data:
      fine: ${schema.spec.name}
      random: ${random.seededString(8, schema.metadata.uid)}
      part: a-${schema.spec.name.unknown()}
"""
    found = made(resources)
    assert found.template("one") == (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  fine: {{ spec.name }}\n"
        "  # kro: ${random.seededString(8, schema.metadata.uid)}\n"
        "  # not translated: there is no counterpart of random.seededString() (rgd.yaml:18)\n  random: {{ omit }}\n"
        "  # kro: a-${schema.spec.name.unknown()}\n"
        "  # not translated: there is no counterpart of unknown() (rgd.yaml:19)\n  part: {{ omit }}\n"
    )
    assert found.rendered(name="x")["one/one"]["data"] == {"fine": "x"}
    assert [each for each in found.notes if each.startswith("rgd.yaml:")] == [
        "rgd.yaml:15: finalizers was left out: ruleop sets it, or the API server.",
        (
            "rgd.yaml:18: not translated: there is no counterpart of random.seededString(): "
            "${random.seededString(8, schema.metadata.uid)}"
        ),
        "rgd.yaml:19: not translated: there is no counterpart of unknown(): a-${schema.spec.name.unknown()}",
    ]


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        (f"template: {{{CONFIG}'${{random.seededString(8, \"\")}}'}}}}", "its name cannot be expressed"),
        (
            "template: {apiVersion: v1, kind: '${schema.spec.name}', metadata: {name: a}}",
            "apiVersion or kind is computed",
        ),
        ("template: {apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: b}}}", "it has no metadata.name"),
        ("template: {apiVersion: v1, kind: ConfigMap, metadata: }", "it has no metadata"),
        (f"forEach: [{{a: '${{cel.bind(x, [], x)}}'}}]\n  template: {{{CONFIG}a}}}}", "cel.bind"),
        (f"forEach: [{{a: plain}}]\n  template: {{{CONFIG}a}}}}", "not one expression"),
        (
            "externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: '${base.metadata.name}'}}",
            "by another resource",
        ),
        ("externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {}}", "either a name or a selector"),
        (
            "externalRef: {apiVersion: v1, kind: ConfigMap, metadata: {name: '${hash.md5(\"\")}'}}",
            "its name cannot be expressed",
        ),
    ],
)
def test_a_resource_that_cannot_be_made_is_left_out_with_what_reads_it(made, resource, reason):
    user = config("user", "{a: '${bad.metadata.name}'}")
    found = made(config("base", "{a: b}"), f"- id: bad\n  {resource}", user)
    assert [*found.watch["children"]] == ["base", "user"]
    assert any("the resource bad was left out" in each and reason in each for each in found.notes), found.notes
    assert "there is no counterpart of bad" in found.template("user")


def test_conditions_without_a_translation_keep_the_object_away_and_readiness_falls_back(made):
    resources = config(
        "one", "{a: b}", 'includeWhen: [\'${random.seededString(1, "") == "a"}\']', "readyWhen: ['${one.data.x()}']"
    )
    found = made(resources)
    assert found.watch["children"]["one"] == {"template": "app/one.yaml.j2", "when": "false"}
    assert any("one is never desired, because" in each for each in found.notes)
    assert any("readyWhen of one was left out" in each for each in found.notes)


def test_a_remark_is_a_comment_and_a_note(made):
    found = made(config("one", "{a: '${schema.spec.name.substring(2)}'}"))
    assert "# kro: an error where the value is shorter (rgd.yaml:12)\n  a: {{ spec.name[2:] }}" in found.template("one")
    assert found.rendered(name="abcd")["one/abcd-one"]["data"] == {"a": "cd"}


def test_text_with_tags_of_jinja_stays_text(made):
    hostile = "{{ cr }}{% set x = 1 %}{# c #}"
    resources = f"""
- id: one
  includeWhen: ["${{schema.spec.name != '{hostile}'}}"]
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: one, annotations: {{"a/b": "{hostile}"}}}}
    data:
      "k.{{y": "{hostile}"
      joined: "{hostile}${{schema.spec.name}}{{{{"
      literal: "${{schema.spec.name + '{hostile}'}}"
      lost: "${{hash.md5('{hostile}')}}"
      block: |
        {hostile}
        ${{schema.spec.name}}
"""
    found = made(resources.replace('"k.{y"', "k.y"))
    one = found.rendered(name="x")["one/one"]
    assert one["metadata"]["annotations"] == {"a/b": hostile}
    assert one["data"] == {
        "k.y": hostile,
        "joined": f"{hostile}x{{{{",
        "literal": f"x{hostile}",
        "block": f"{hostile}\nx\n",
    }
    assert found.rendered(name=hostile) == {}


def test_text_with_tags_of_jinja_stays_text_in_the_rules_too(made):
    fields = "status: {plain: '{{ cr }}', joined: '{{ 1 }}${one.metadata.name}{', '{{ cr }}': a, more: {'{% x': '${one.data.a}'}}"
    shared = (
        "- id: shared\n  externalRef: {apiVersion: v1, kind: Pod, metadata: {selector: {matchLabels: {a: '{{ cr }}'}}}}"
    )
    found = made(config("one", "{a: b}"), shared, more=fields)
    assert found.watch["status"] == {
        "plain": r"{{ '\x7b{ cr \x7d}' }}",
        "joined": r"{{ '\x7b{ 1 \x7d}' ~ (one.metadata.name) ~ '{' }}",
    }
    assert found.watch["observe"]["shared"]["selector"] == {"a": r"{{ '\x7b{ cr \x7d}' }}"}
    assert sum("of the status was left out: a key has tags of Jinja" in each for each in found.notes) == 2


def test_an_expression_of_several_lines_cannot_end_its_comment(made):
    found = made(config("one", "{a: \"${hash.md5('a')\\n\\n}\\nspec: {evil: true}\"}"))
    assert "# kro: ${hash.md5('a') } spec: {evil: true}\n" in found.template("one")


def test_reserved_ids_and_iterators_get_other_names(made):
    found = made(config("range", "{a: b}"), config("two", "{a: '${range.metadata.name}'}"))
    assert [*found.watch["children"]] == ["range2", "two"]
    assert "rgd.yaml:11: the resource range is named range2 here." in found.notes


def test_a_status_of_an_unknown_kind_has_any_type(made):
    resources = "- id: db\n  template: {apiVersion: example.com/v1, kind: Db, metadata: {name: a}}"
    found = made(
        resources,
        more="status: {host: '${db.status.host}', conditions: '${db.status.conditions}', more: {m: '${hash.md5(\"\")}'}}",
    )
    assert found.watch["schema"]["status"] == {
        key: {"x-kubernetes-preserve-unknown-fields": True} for key in ("host", "more")
    }
    assert found.watch["status"] == {"host": "{{ db.status.host }}", "more": {"m": "{{ omit }}"}}
    assert any("conditions of the status was left out" in each for each in found.notes)


def test_a_default_of_several_words_is_put_in_quotes(made):
    spec = "{name: string | required=true, text: string | default=some words}"
    found = made(config("one", "{a: '${schema.spec.text}'}"), spec=spec)
    assert found.watch["schema"]["spec"]["text"] == 'string | default="some words"'
    assert found.rendered(name="x")["one/x-one"]["data"] == {"a": "some words"}
    assert any("the default was put in quotes" in each for each in found.notes)


def test_several_graphs_are_several_rules_and_other_objects_are_named(tmp_path):
    first, second = graph(config("one", "{a: b}")), graph(config("two", "{a: b}")).replace("kind: App", "kind: Other")
    other = "\n---\n{apiVersion: v1, kind: Service, metadata: {name: s}}\n"
    projects = projects_of(first, second + other)
    files = project_files(projects[0], {}, projects[1:])
    write_files(tmp_path, files)
    assert [each["kind"] for each in yaml.safe_load(files["watches.yaml"])] == ["App", "Other"]
    assert "Service/s was left out: it is not a ResourceGraphDefinition." in projects[0].notes


def test_samples_are_the_examples(tmp_path):
    sample = {"apiVersion": "kro.run/v1alpha1", "kind": "App", "metadata": {"name": "mine"}, "spec": {"name": "x"}}
    [project] = projects_of(graph(config("one", "{a: '${schema.spec.name}'}")), samples=(sample,))
    assert [*project_files(project, {})]
    assert project.samples == (sample,)
    with pytest.raises(ScaffoldError, match=r"no graph makes Other\.kro\.run/v1alpha1|no graph makes .*Other"):
        projects_of(graph(config("one", "{a: b}")), samples=({**sample, "kind": "Other"},))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("    kind: App\n", ""), "rgd.yaml:5: kind is missing or not a string"),
        (("kind: App", "kind: app"), 'rgd.yaml:5: "app" is not a kind'),
        (("name: string", "name: strin"), 'rgd.yaml:8: unknown type "strin"'),
        (("- id: one", "- id: 1"), "rgd.yaml:11: id is missing or not an identifier"),
        (
            ("- id: one", "- id: one\n      externalRef: {}"),
            "rgd.yaml:11: one needs either a template or an externalRef",
        ),
        (("apiVersion: v1, ", ""), "rgd.yaml:12: apiVersion is missing or not a string"),
        (("  resources:\n", "  resources: {}\n  more:\n"), "rgd.yaml:10: resources is not a list"),
        (("a: b", "a: '${two.data.a}'"), "rgd.yaml:11: one and two read each other"),
        (("- id: two", "- id: one"), "rgd.yaml:13: the id 'one' is used twice"),
        (("- id: one", "- id: one\n      includeWhen: [1]"), "rgd.yaml:12: not an expression in ${}"),
        (("- id: one", "- id: one\n      forEach: [{a: '', b: ''}]"), "rgd.yaml:12: an entry of forEach is one name"),
        (
            ("kind: ResourceGraphDefinition", "kind: Graph"),
            "there is no ResourceGraphDefinition among the objects (Graph): --from-kro reads no other kind of kro",
        ),
    ],
)
def test_a_graph_of_another_form_is_refused_with_its_place(change, message):
    text = graph("\n".join([config("one", "{a: b}"), config("two", "{a: '${one.data.a}'}")]))
    assert change[0] in text
    with pytest.raises(ScaffoldError) as error:
        projects_of(text.replace(*change, 1))
    assert message in str(error.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "a", "${schema.spec.name}", "${", "${a.b}", "string"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "metadata", "name"]), inner, max_size=2)
    ),
    max_leaves=4,
)
PLACES = st.sampled_from(
    [("spec",), ("spec", "schema"), ("spec", "resources"), ("spec", "resources", 0)]
    + [("spec", "schema", each) for each in ("spec", "types", "status", "additionalPrinterColumns", "group", "scope")]
    + [
        ("spec", "resources", 0, each)
        for each in ("template", "externalRef", "readyWhen", "includeWhen", "forEach", "id")
    ]
    + [("spec", "resources", 0, "template", each) for each in ("metadata", "kind", "apiVersion", "status", "data")]
)


@given(st.lists(st.tuples(PLACES, JSON), min_size=1, max_size=2))
def test_any_other_form_is_a_project_or_a_refusal(changes):
    document = yaml.safe_load(graph(config("one", "{a: b}"), more="status: {a: '${one.data.a}'}"))
    for path, value in changes:
        owner: Any = document
        for part in path[:-1]:
            fits = isinstance(owner, dict if isinstance(part, str) else list)
            owner = (owner.get(part) if isinstance(part, str) else [*owner, None][part]) if fits else None
        if isinstance(owner, dict if isinstance(path[-1], str) else list) and owner:
            owner[path[-1]] = value
    try:
        projects = projects_of(yaml.safe_dump(document))
    except ScaffoldError:
        return
    project_files(projects[0], {})


def test_the_same_kind_twice_is_refused():
    with pytest.raises(ScaffoldError, match="the graph of App appears twice"):
        projects_of(graph(config("one", "{a: b}")), graph(config("two", "{a: b}")))
