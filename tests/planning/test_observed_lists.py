"""Lists of observed objects: by the items of a list, by names, by labels in all namespaces, and with `where`."""

from __future__ import annotations

from typing import Any

from ruleop.kubernetes.kinds import GroupKind
from ruleop.planning import Served
from ruleop.planning.model.targets import MAX_OBSERVED, Target
from tests.planning.harness import Harness, config, key

REFS = """
reach: cluster
observe:
  shared:
    version: v1
    kind: ConfigMap
    forEach: spec.refs
    as: ref
    name: "{{ ref.name }}"
    namespace: "{{ ref.namespace | default('') }}"
children:
  a:
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: a}
      data: {all: "{{ shared | map(attribute='data.v') | join(',') }}", one: "{{ shared['x'].data.v }}"}
"""


def elsewhere(name: str, v: str, **labels: str) -> dict[str, Any]:
    obj = config(name, {"v": v}, labels=labels)
    return {**obj, "metadata": {**obj["metadata"], "namespace": "other"}}


def test_the_id_is_the_list_in_item_order_and_finds_an_object_by_its_name() -> None:
    harness = Harness.of(REFS, {"refs": [{"name": "y"}, {"name": "gone"}, {"name": "x", "namespace": "other"}]})
    harness.add(config("x", {"v": "not this"}))
    harness.add(config("y", {"v": "2"}))
    harness.settle()
    assert [wait.for_what for wait in harness.plan().waits] == ["shared.x.data.v"]
    harness.add(elsewhere("x", "1"))
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"all": "2,1", "one": "1"}


def test_each_item_is_watched_whether_or_not_its_object_exists() -> None:
    harness = Harness.of(REFS, {"refs": [{"name": "y"}, {"name": "x", "namespace": "other"}]})
    assert [target.key for target in harness.plan().watches] == [key("y"), key("x", namespace="other")]


def test_a_mapping_has_entries_and_null_has_none() -> None:
    body = """
    observe: {shared: {version: v1, kind: ConfigMap, forEach: spec.refs, name: "{{ item.value }}-{{ index }}"}}
    status: {names: "{{ shared | map(attribute='metadata.name') }}"}
    """
    for refs, expected in (({"b": "x", "a": "y"}, ["y-0", "x-1"]), (None, []), ([], [])):
        harness = Harness.of(body, {"refs": refs})
        harness.add(config("x-1"))
        harness.add(config("y-0"))
        harness.settle()
        assert harness.status["names"] == expected


def test_a_value_without_items_and_too_many_items_are_errors() -> None:
    for refs, message in (
        ("text", 'the observed resource "shared" needs a list or a mapping in forEach'),
        ([{"name": "x"}] * (MAX_OBSERVED + 1), 'the observed resource "shared" has more than 500 items in forEach'),
    ):
        (problem,) = Harness.of(REFS, {"refs": refs}).plan().problems
        assert message in problem.message


def test_a_list_of_names_is_a_list_of_items() -> None:
    body = """
    observe: {some: {version: v1, kind: ConfigMap, forEach: "['b', spec.x, 'gone']", name: "{{ item }}"}}
    status: {names: "{{ some | map(attribute='metadata.name') }}", v: "{{ some['b'].data.v }}"}
    """
    harness = Harness.of(body, {"x": "a"})
    for name in ("a", "b", "c"):
        harness.add(config(name, {"v": name}))
    harness.settle()
    assert harness.status["names"] == ["b", "a"]
    assert harness.status["v"] == "b"


def test_a_selector_can_search_all_namespaces() -> None:
    body = """
    reach: cluster
    observe: {all: {version: v1, kind: ConfigMap, selector: {a: b}, namespaces: all}}
    status: {names: "{{ all | map(attribute='metadata.namespace') }}"}
    """
    harness = Harness.of(body)
    harness.add(config("x", labels={"a": "b"}))
    harness.add(elsewhere("x", "1", a="b"))
    harness.add(elsewhere("y", "1", a="c"))
    harness.settle()
    assert harness.status["names"] == ["other", "shop"]


def test_all_objects_of_a_kind_are_those_of_the_namespace_of_the_custom_resource() -> None:
    body = """
    observe: {all: {version: v1, kind: ConfigMap, where: this.data.v != '2'}}
    status: {names: "{{ all | map(attribute='metadata.name') }}"}
    """
    harness = Harness.of(body)
    for each in (config("y", {"v": "1"}, labels={"a": "b"}), config("x", {"v": "1"}), config("z", {"v": "2"})):
        harness.add(each)
    harness.add(elsewhere("w", "1"))
    harness.settle()
    assert harness.status["names"] == ["x", "y"]
    assert harness.plan().watches == (Target(GroupKind("", "ConfigMap"), "shop"),)


def test_all_objects_of_a_kind_of_all_namespaces() -> None:
    body = """
    reach: cluster
    observe: {all: {version: v1, kind: ConfigMap, namespaces: all}}
    status: {names: "{{ all | map(attribute='metadata.namespace') }}"}
    """
    harness = Harness.of(body)
    harness.add(config("x"))
    harness.add(elsewhere("x", "1"))
    harness.settle()
    assert harness.status["names"] == ["other", "shop"]


def test_without_objects_of_the_kind_the_list_is_empty_and_a_kind_that_is_not_served_is_not_available_yet() -> None:
    body = """
    observe: {all: {version: v1, kind: Secret}}
    children: {a: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: "{{ all | length | string }}"}}}}
    """
    harness = Harness.of(body)
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"size": "0"}
    harness.served["Secret"] = Served.FORBIDDEN
    assert harness.plan().conditions.ready.reason == "Forbidden"
    harness.served["Secret"] = Served.UNSERVED
    assert [wait.for_what for wait in harness.plan().waits] == ["all (Secret is not served by the cluster)"]


def test_where_selects_objects_and_one_that_lacks_the_field_does_not_count() -> None:
    body = """
    let: {least: "{{ spec.least }}"}
    observe: {some: {version: v1, kind: ConfigMap, selector: {a: b}, where: this.data.v | int >= least}}
    status: {names: "{{ some | map(attribute='metadata.name') }}"}
    """
    harness = Harness.of(body, {"least": 2})
    for name, data in (("x", {"v": "1"}), ("y", {"v": "2"}), ("z", {}), ("w", {"v": "3"})):
        harness.add(config(name, data, labels={"a": "b"}))
    harness.settle()
    assert harness.status["names"] == ["w", "y"]


def test_where_may_depend_on_the_time() -> None:
    body = """
    observe: {old: {version: v1, kind: ConfigMap, forEach: "['x', 'old']", name: "{{ item }}", where: "after(this.data.time, '1h')"}}
    status: {names: "{{ old | map(attribute='metadata.name') }}"}
    """
    harness = Harness.of(body)
    harness.add(config("x", {"time": "2025-12-31T23:30:00Z"}))
    harness.add(config("old", {"time": "2025-12-31T22:30:00Z"}))
    harness.settle()
    assert harness.status["names"] == ["old"]
    requeue = harness.plan().requeue_after
    assert requeue is not None
    assert requeue.seconds == 1801.0


def test_an_error_in_where_has_its_place() -> None:
    body = """
    observe: {some: {version: v1, kind: ConfigMap, selector: {a: b}, where: this.data.v > spec.nope}}
    status: {names: "{{ some | length }}"}
    """
    harness = Harness.of(body)
    harness.add(config("x", {"v": "1"}, labels={"a": "b"}))
    (problem,) = harness.plan().problems
    assert "spec.nope is not set" in problem.message
    assert str(problem.site).startswith("watches.yaml:4")


def test_only_metadata_is_watched_where_only_metadata_is_read() -> None:
    body = """
    observe:
      some: {version: v1, kind: Secret, selector: {a: b}}
      tested: {version: v1, kind: Secret, selector: {a: b}, where: this.data.v is defined}
      read: {version: v1, kind: ConfigMap, selector: {a: b}}
    status:
      names: "{{ some | map(attribute='metadata.name') }}{{ tested | map(attribute='metadata.name') }}{{ read[0].data }}"
    """
    observed = Harness.of(body).project.rules[0].observe
    assert {id_: each.metadata_only for id_, each in observed.items()} == {"some": True, "tested": False, "read": False}


def test_data_of_an_observed_list_of_secrets_stays_secret() -> None:
    from tests.language.rules.projects import said, watch  # noqa: PLC0415 - of one test

    body = """
observe: {some: {version: v1, kind: Secret, forEach: spec.refs, name: "{{ item }}"}}
status: {a: "{{ some['x'].data.v }}", b: "{{ some['x'].metadata.name }}", c: "{{ some | length }}"}
"""
    (line,) = said(watch(body))
    assert "`some.x.data.v` would expose the data of a Secret in `status`" in line


def test_an_object_that_may_be_missing_has_a_default_and_nothing_waits() -> None:
    body = """
    observe: {settings: {version: v1, kind: ConfigMap, name: settings}}
    children:
      a:
        object:
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: a}
          data: {size: "{{ settings.data.size | default('10') }}", given: "{{ 'yes' if settings is defined else 'no' }}"}
    """
    harness = Harness.of(body)
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"size": "10", "given": "no"}
    assert harness.ready()[1] == "Ready"
    harness.add(config("settings", {"size": "20"}))
    harness.settle()
    assert harness.objects[key("a")]["data"] == {"size": "20", "given": "yes"}
