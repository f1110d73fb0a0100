"""A key without a value, `"{{ labels }}":`, as the checks before start see it."""

from __future__ import annotations

from tests.language.rules.projects import load, rule, said, watch

OBJECT = """
children:
  web:
    object:
      apiVersion: v1
      kind: Service
      metadata: {name: a}
"""


def test_the_expression_of_a_spread_key_is_checked():
    (found,) = said(watch(OBJECT.replace("{name: a}", '{name: a, labels: {"{{ lables }}": }}')))
    assert found == 'watches.yaml:9:42: "lables" is not known in the child "web"'


def test_a_child_with_a_spread_key_is_rendered_after_the_child_that_it_reads():
    found = rule(
        """
        children:
          a: {object: {apiVersion: v1, kind: Service, metadata: {name: a, labels: {"{{ b.metadata.labels }}": }}}}
          b: {template: a.yaml}
        """
    )
    assert list(found.order.children) == ["b", "a"]


def test_metadata_or_its_name_may_come_from_a_spread_key():
    assert said(watch(OBJECT.replace("{name: a}", '{"{{ spec.metadata }}": }'))) == []
    assert said(watch(OBJECT.replace("metadata: {name: a}", '"{{ spec.whole }}":'))) == []


def test_the_data_of_a_secret_cannot_be_spread_into_the_status():
    body = """
    observe:
      keys: {version: v1, kind: Secret, selector: {a: b}}
    status:
      found: {count: "{{ keys | length }}", "{{ keys[0] }}": , other: x}
    """
    (found,) = said(watch(body))
    assert "would expose the data of a Secret in `status`" in found


def test_a_whole_secret_cannot_be_spread_beside_an_allowed_use():
    body = """
    observe:
      keys: {version: v1, kind: Secret, selector: {a: b}}
    status:
      found: {count: "{{ keys | length }}", "{{ keys | first }}": }
    """
    (found,) = said(watch(body))
    assert "would expose the data of a Secret in `status`" in found


def test_a_file_named_in_a_spread_key_counts_as_used():
    body = OBJECT.replace("{name: a}", "{name: a, labels: {\"{{ file('labels.yaml') | from_yaml }}\": }}")
    assert [
        str(each) for each in load(watch(body), {"templates/labels.yaml": "a: b\n"}).findings if "labels" in str(each)
    ] == []
