"""What users of a CR must not be able to do, and which values must not be visible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ruleop.kubernetes.kinds import SERVER_METADATA, Kind
from ruleop.planning import Failed, Failure, KindInfo, Plan
from tests.planning.harness import Harness, app, config, key, repr_of, rule

HEAD_GLOBAL = "- group: example.com\n  version: v1\n  kind: Global\n"


def only(text: str, more: str = "", **spec: object) -> Harness:
    return Harness.of(f"{more}\nchildren: {{a: {{template: a.yaml}}}}", spec, a=text)


def problem(text: str, more: str = "", **spec: object) -> str:
    harness = only(text, more, **spec)
    planned = harness.plan()
    assert planned.actions == ()
    (found,) = planned.problems
    assert found.child == "a"
    assert found.reason == "RenderFailed"
    assert str(found.site).startswith("templates/a.yaml")
    harness.settle()
    assert harness.objects == {}
    return found.message


MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ spec.metadata }}\n"


# -- namespaces and cluster scope --------------------------------------------------------------------------------------


def test_a_child_in_another_namespace_needs_reach_cluster():
    message = problem(MAP, metadata={"name": "a", "namespace": "kube-system"})
    assert (
        message
        == "the ConfigMap 'a' is in the namespace 'kube-system', not the CR's: set `reach: cluster` in the watch if its CRs may use other namespaces"
    )
    harness = only(MAP, "reach: cluster", metadata={"name": "a", "namespace": "far"})
    harness.settle()
    assert [str(each) for each in harness.objects] == ["ConfigMap/far/a"]
    same = only(MAP, metadata={"name": "a", "namespace": "shop"})
    same.settle()
    assert [str(each) for each in same.objects] == ["ConfigMap/shop/a"]


@pytest.mark.parametrize("namespace", ["..", ".", "a..b", "a.b", "A", "-a", "../x", "x" * 64])
def test_the_name_of_a_namespace_is_validated_before_anything_is_written(namespace: str):
    message = problem(MAP, "reach: cluster", metadata={"name": "a", "namespace": namespace})
    assert (
        message
        == f"the ConfigMap 'a': {namespace!r} is not a valid namespace: up to 63 lowercase letters, digits and `-`"
    )


def test_a_cluster_scoped_child_needs_reach_cluster():
    # The loader rejects kinds that it knows. Only the cluster knows that this kind is cluster-scoped.
    text = "apiVersion: x.io/v1\nkind: Zone\nmetadata: {name: a, namespace: '{{ metadata.namespace }}'}\n"
    for more, message in (("", "is cluster-scoped: set `reach: cluster`"), ("reach: cluster", "")):
        harness = only(text, more)
        harness.infos["Zone"] = KindInfo(Kind("x.io", "v1", "Zone"), namespaced=False)
        planned = harness.plan()
        if message:
            assert message in planned.problems[0].message
            assert planned.actions == ()
        else:
            harness.settle()
            assert [str(each) for each in harness.objects] == ["Zone/a"]
            assert "namespace" not in next(iter(harness.objects.values()))["metadata"]


def test_a_child_of_a_cluster_scoped_cr_needs_a_namespace():
    harness = Harness.of("children: {a: {template: a.yaml}}\nreach: cluster", head=HEAD_GLOBAL, a=MAP)
    harness.resource = {**app({"metadata": {"name": "a"}}), "kind": "Global"}
    del harness.resource["metadata"]["namespace"]
    assert "needs a namespace, and a cluster-scoped CR has none" in harness.plan().problems[0].message


WHERE = 'the observed resource "o" needs a namespace because its CR is cluster-scoped: set `namespace`'


@pytest.mark.parametrize("namespace", ["", ", namespace: '{{ spec.far | default(\"\") }}'"])
@pytest.mark.parametrize("which", ["name: o", "selector: {a: b}"])
def test_an_observe_of_a_cluster_scoped_cr_needs_a_namespace(which: str, namespace: str):
    # The loader rejects kinds that it knows. Only the cluster knows that this kind is namespaced.
    observe = f"reach: cluster\nobserve: {{o: {{group: x.io, version: v1, kind: Thing, {which}{namespace}}}}}"
    harness = Harness.of(
        f"{observe}\nchildren: {{a: {{template: a.yaml}}}}", head=HEAD_GLOBAL, a=reading("a", "{{ o | to_json }}")
    )
    del harness.resource["metadata"]["namespace"]
    harness.resource["kind"] = "Global"
    harness.infos["Thing"] = KindInfo(Kind("x.io", "v1", "Thing"))
    (found,) = harness.plan().problems
    assert (found.reason, str(found.site), found.message) == ("RenderFailed", "watches.yaml:5:13", WHERE)
    harness.infos["Thing"] = KindInfo(Kind("x.io", "v1", "Thing"), namespaced=False)
    assert WHERE not in public(harness.plan())


# -- reserved fields ---------------------------------------------------------------------------------------------------

REFUSED = {
    "generateName": ("x-", "metadata.generateName, which is not allowed: set metadata.name"),
    "ownerReferences": ([], "metadata.ownerReferences, which is not allowed: ruleop writes the owner itself"),
    "finalizers": (
        ["x/y"],
        "metadata.finalizers, which is not allowed: only the controller that removes a finalizer may set it",
    ),
    **{
        field: ("x", f"metadata.{field}, which is not allowed: the API server sets it; remove it")
        for field in sorted(SERVER_METADATA)
    },
    "labels": ({"ruleop.dev/part-of": "x"}, "the label ruleop.dev/part-of: ruleop.dev/ is reserved for ruleop"),
    "annotations": ({"ruleop.dev/owner": "x"}, "the annotation ruleop.dev/owner: ruleop.dev/ is reserved for ruleop"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_metadata_of_the_api_server_the_garbage_collector_and_ruleop_is_rejected(field: str):
    value, message = REFUSED[field]
    assert message in problem(MAP, metadata={"name": "a", field: value})


def test_a_rendered_status_is_rejected():
    assert "has a status, which belongs to its controller" in problem(
        "{{ spec.whole }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", whole={"status": {}}
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"name": "a", "labels": {"x": 1}}, "the label x is not a string; put it in quotes"),
        (
            {"name": "a", "labels": {"x": "a\nb: c"}},
            r"the ConfigMap 'a': 'a\nb: c' of the label x is not valid: use at most 63",
        ),
        ({"name": "a", "labels": {"x": "v" * 64}}, "of the label x is not valid: use at most 63"),
        ({"name": "a", "labels": {"x": "-v"}}, "'-v' of the label x is not valid"),
        ({"name": "a", "labels": {"a b": "v"}}, "the key 'a b' in metadata.labels is not valid"),
        ({"name": "a", "labels": {"A.b/c": "v"}}, "the key 'A.b/c' in metadata.labels is not valid"),
        ({"name": "a", "labels": {"a/b/c": "v"}}, "the key 'a/b/c' in metadata.labels is not valid"),
        ({"name": "a", "labels": {"": "v"}}, "the key '' in metadata.labels is not valid"),
        ({"name": "a", "annotations": {"x" * 64: "v"}}, "in metadata.annotations is not valid"),
        ({"name": "a", "annotations": []}, "metadata.annotations is not a mapping"),
        ({"name": "a", "namespace": 7}, "metadata.namespace is not a string"),
        ({"name": 7}, "metadata.name of the ConfigMap is missing or not a string"),
        ({"name": ""}, "metadata.name of the ConfigMap is missing or not a string"),
        ({"name": "A_b"}, "a name has lowercase letters"),
        ({"name": "a/b"}, "a name has lowercase letters"),
        ({"name": "../x"}, "a name has lowercase letters"),
        ({"name": "a..b"}, "a name has lowercase letters"),
        ({"name": "a.-b"}, "a name has lowercase letters"),
        ({"name": "a\n"}, "a name has lowercase letters"),
        ({"name": "x" * 254}, "a name has lowercase letters"),
        ("text", "metadata of the ConfigMap is missing or not a mapping"),
    ],
)
def test_invalid_metadata_is_rejected(metadata: object, message: str):
    assert message in problem(MAP, metadata=metadata)


def test_valid_labels_and_annotations_are_written():
    metadata = {"name": "a", "labels": {"x": "", "a.b/C_d": "V.1"}, "annotations": {"Example.COM/a": "any\ntext"}}
    harness = only(MAP, metadata=metadata)
    harness.settle()
    assert harness.names() == ["ConfigMap/a"]


@pytest.mark.parametrize(
    ("kind", "longest"),
    [("v1, kind: Service", 63), ("apps/v1, kind: StatefulSet", 63), ("batch/v1, kind: CronJob", 52)],
)
def test_some_kinds_have_shorter_names(kind: str, longest: int):
    body = f"{{apiVersion: {kind}, metadata: {{name: '{{{{ spec.name }}}}'}}}}\n"
    harness = only(body, name="a" * longest)
    harness.settle()
    assert len(harness.names()) == 1
    assert "a name has " in problem(body, name="a" * (longest + 1))


def test_rbac_kinds_allow_more_names_but_no_slashes():
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: '{{ spec.name }}'}\n"
    harness = only(role, name="system:Reader")
    harness.settle()
    assert harness.names() == ["Role/system:Reader"]
    for name in ("a/b", "..", ".", "a%2f"):
        assert "a name has" in problem(role, name=name)


def test_a_kind_that_the_template_does_not_declare_is_rejected():
    child = rule(
        "children: {a: {template: a.yaml}}", a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    ).children["a"]
    child = replace(child, kinds=frozenset({Kind("", "v1", "Secret")}))
    harness = only(MAP, metadata={"name": "a"})
    harness.project = replace(harness.project, rules=(replace(harness.rule, children={"a": child}),))
    assert "declares only: v1 Secret" in harness.plan().problems[0].message


def test_the_rendered_kind_is_that_of_the_rendered_branch():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    harness = only(
        "{% if spec.x %}\n" + text + "{% else %}\n" + text.replace("ConfigMap", "Secret") + "{% endif %}\n", x=False
    )
    harness.settle()
    assert harness.names() == ["Secret/a"]


def test_a_rendered_value_that_is_not_an_object_is_rejected():
    assert "has no apiVersion or no kind" in problem(
        "{% if spec.x is defined %}\napiVersion: v1\nkind: ConfigMap\n{% endif %}\nmetadata: {name: a}\n"
    )
    assert "a template must render objects" in problem(
        "{% if spec.x is defined %}\napiVersion: v1\nkind: ConfigMap\n{% endif %}\n{{ spec.list }}\n", list=["a"]
    )


# -- secrets -----------------------------------------------------------------------------------------------------------

CANARY = "c4n4ry"
SECRETS = """
observe: {source: {version: v1, kind: Secret, name: source}}
children:
  copy: {template: copy.yaml}
  reader: {template: reader.yaml}
  indirect: {template: indirect.yaml}
  lively: {template: lively.yaml}
  plain: {template: plain.yaml}
  direct: {template: direct.yaml}
status: {name: "{{ copy.metadata.name }}"}
conditions: [{type: Here, status: source is defined, message: "{{ source.metadata.name }}"}]
"""
COPY = "apiVersion: v1\nkind: Secret\nmetadata: {name: copy}\nstringData: {p: '{{ source.data.p | b64decode }}'}\n"


def reading(name: str, value: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{v: '{value}'}}\n"


def secretive(**texts: str) -> Harness:
    files = {
        "copy": COPY,
        "reader": reading("reader", "{{ copy.data.p }}"),
        "indirect": reading("indirect", "{{ reader.data.v }}"),
        "lively": reading("lively", '{{ live.copy.data.p | default("") }}'),
        "plain": reading("plain", "{{ spec.v }}"),
        "direct": reading("direct", "{{ source.data.p }}"),
    }
    harness = Harness.of(SECRETS, {"v": "1"}, **{**files, **texts})
    harness.add(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "source", "namespace": "shop"},
            "data": {"p": "YzRuNHJ5"},
        }
    )
    return harness


def public(planned: Plan) -> str:
    """The public parts of a plan."""
    parts = [planned.conditions, planned.events, planned.problems, planned.waits, planned.children, planned.status]
    return repr(repr_of(parts))


def test_data_of_a_secret_reaches_only_children():
    harness = secretive()
    for _ in range(4):
        planned = harness.plan()
        assert CANARY not in public(planned)
        assert "YzRuNHJ5" not in public(planned)
        harness.step()
    assert harness.objects[key("copy", "Secret")]["data"] == {"p": "YzRuNHJ5"}
    assert "YzRuNHJ5" not in repr([obj["metadata"] for obj in harness.objects.values()])


@pytest.mark.parametrize("name", ["copy", "reader", "indirect", "lively", "direct"])
@pytest.mark.parametrize("failure", list(Failure))
def test_server_messages_about_a_child_that_reads_a_secret_are_reduced_to_the_field(name: str, failure: Failure):
    harness = secretive()
    where = key(name, "Secret" if name == "copy" else "ConfigMap")
    message = f'{where.kind} "{name}" is invalid: data[p]: Invalid value: "{CANARY}": data.x: Invalid value: {CANARY}'
    harness.settle()
    harness.change(where, {"data": {"p": "x", "v": "x"}})
    harness.refuse[where] = Failed(failure, message)
    harness.step()
    assert CANARY not in repr(harness.status) + repr(harness.events)
    actions = harness.plan().actions
    failed = {where: Failed(failure, message, actions[0].desired_digest if actions else "")}
    assert CANARY not in public(harness.plan_status(failed))
    harness.refused_before(failed)
    assert CANARY not in public(harness.plan())


READING = f"""
observe: {{o: {{version: v1, kind: Secret, name: s}}}}
let: {{once: "{{{{ o.data.p }}}}", twice: "{{{{ once }}}}"}}
children:
  s: {{object: {{apiVersion: v1, kind: Secret, metadata: {{name: s}}, data: {{p: {CANARY}}}}}}}
  mid: {{template: mid.yaml}}
"""
READERS = {
    "a let": ("  bye: {template: bye.yaml}", "{{ twice }}"),
    "forEach over a child": ("  bye: {template: bye.yaml, forEach: s.data}", "{{ item.value }}"),
    "forEach over what exists": (
        "  bye: {template: bye.yaml, forEach: 'live.s.data | default({})'}",
        "{{ item.value }}",
    ),
    "a finalize child over a child": ("finalize: {bye: {template: bye.yaml}}", "{{ s.data.p }}"),
    "a finalize child over what exists": ("finalize: {bye: {template: bye.yaml}}", "{{ live.s.data.p }}"),
    "a finalize child over a child that reads it": ("finalize: {bye: {template: bye.yaml}}", "{{ mid.data.v }}"),
    "forEach of a finalize child": ("finalize: {bye: {template: bye.yaml, forEach: live.s.data}}", "{{ item.value }}"),
}


@pytest.mark.parametrize("way", READERS)
def test_every_way_of_reading_a_secret_is_recognised(way: str):
    child, slot = READERS[way]
    harness = Harness.of(READING + child, mid=reading("mid", "{{ s.data.p }}"), bye=reading("bye", slot))
    message = f'create configmaps shop/bye: ConfigMap "bye" is invalid: data.v: Invalid value: "{CANARY}"'
    redacted = "create configmaps shop/bye: rejected by the API server (422 Invalid): data.v: Invalid value"
    harness.refuse[key("bye")] = Failed(Failure.INVALID, message, redacted=redacted)
    harness.step()
    harness.step()
    if "finalize" in way:
        harness.end()
        harness.step()
    assert "Create ConfigMap/bye" in harness.writes
    assert CANARY not in repr(harness.status) + repr(harness.events)
    assert redacted in harness.ready()[2]


def test_a_rejection_in_an_unknown_form_is_still_reported():
    harness = secretive()
    harness.settle()
    where = key("copy", "Secret")
    harness.change(where, {"data": {"p": "x"}})
    harness.refuse[where] = Failed(Failure.INVALID, f"admission webhook said {CANARY}")
    harness.step()
    assert harness.ready()[2].startswith("copy: templates/copy.yaml:1: rejected by the API server")


@pytest.mark.parametrize("failure", [Failure.INVALID, Failure.FORBIDDEN, Failure.OTHER])
def test_server_messages_about_an_object_of_a_removed_rule_are_redacted(failure: Failure):
    harness = secretive()
    harness.settle()
    harness.project = Harness.of("children: {plain: {template: plain.yaml}}", plain=reading("plain", "x")).project
    redacted = "delete configmaps shop/reader: rejected by the API server (403 Forbidden)"
    harness.refuse[key("reader")] = Failed(failure, f"admission webhook said {CANARY}", redacted=redacted)
    harness.step()
    harness.step()
    assert redacted in harness.ready()[2]
    assert CANARY not in repr(harness.status) + repr(harness.events)


def test_server_messages_about_other_children_are_shown_in_full():
    harness = secretive()
    harness.refuse[key("plain")] = Failed(Failure.INVALID, "data: is too nice")
    harness.step()
    assert "data: is too nice" in harness.ready()[2]


@pytest.mark.parametrize(
    "text",
    [
        "{{ source.data.p | b64decode | int + 1 }}",
        "{{ source.data.p | b64decode | from_json }}",
        "{{ source.data.p | b64decode | quantity }}",
        "{{ source.data.p | from_yaml | length + 'x' }}",
        "{{ source.data[source.data.p] }}",
        "{{ (source.data.p | b64decode).nope }}",
        "{{ range(source.data.p) }}",
        "{{ source.data.p | b64decode | regex_match('(') }}",
        "{{ source.data }}-x",
    ],
)
def test_a_failed_expression_does_not_show_the_value_of_a_secret(text: str):
    harness = secretive(reader=f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: reader}}\ndata:\n  v: {text}\n")
    harness.settle()
    message = public(harness.plan()) + repr(harness.status) + repr(harness.events)
    assert CANARY not in message
    assert "YzRuNHJ5" not in message


def test_an_invalid_label_is_reported_without_its_value():
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: reader, labels: {x: {{ [source.data.p] }}}}\n"
    assert "YzRuNHJ5" not in public(secretive(reader=text).plan())
    assert config("x")["data"] == {}
