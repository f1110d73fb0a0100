"""Loops and conditions among the keys of watches.yaml, as the checks before start see them."""

from __future__ import annotations

import pytest

from tests.language.rules.projects import load, rule, said, watch

OBJECT = """
children:
  web:
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: a}
      data:
        first: x
        "{% for each in LIST %}": {"{{ each.name }}": "{{ each.value }}"}
"""


def test_the_names_in_a_tag_and_in_what_it_holds_are_checked():
    assert said(watch(OBJECT.replace("LIST", "spec.list"))) == []
    (found,) = said(watch(OBJECT.replace("LIST", "spek.list")))
    assert found == 'watches.yaml:12:27: "spek" is not known in the child "web" (did you mean "spec"?)'
    (found,) = said(watch(OBJECT.replace("LIST", "spec.list").replace("each.value", "eech.value")))
    assert found == 'watches.yaml:12:66: "eech" is not known in the child "web"'


def test_a_loop_cannot_set_a_name_with_a_meaning():
    found, _ = said(watch(OBJECT.replace("LIST", "spec.list").replace("for each", "for spec")))
    assert found == 'watches.yaml:12:19: a template cannot set "spec", which is already defined: choose another name'


def test_the_items_of_a_child_and_those_of_a_loop_have_different_names():
    body = OBJECT.replace("LIST", "item.list").replace("object:", "forEach: spec.groups\n    object:")
    assert said(watch(body)) == []
    (found,) = said(watch(body.replace("for each", "for item").replace("each.", "item.")))
    assert 'a template cannot set "item", which is already defined' in found


def test_a_child_whose_loop_reads_another_is_rendered_after_it():
    found = rule(
        """
        children:
          a:
            object:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: a}
              data: {"{% for key in b.spec.selector %}": {"{{ key }}": x}}
          b: {template: a.yaml}
        """
    )
    assert list(found.order.children) == ["b", "a"]


def test_a_branch_that_no_condition_makes_a_value_is_found():
    body = OBJECT.replace("LIST", "spec.list") + '        "{% if spec.x %}": {first: y}\n'
    assert said(watch(body)) == ['watches.yaml:13:31: duplicate key "first": the first is on line 11']
    body = (
        OBJECT.replace("LIST", "spec.list")
        + '        "{% if spec.x %}": {a: y}\n        "{% if not spec.x %}": {a: z}\n'
    )
    assert said(watch(body)) == []
    items = (
        'apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {a: {"{% if spec.x %}": [1], "{% if spec.y %}": {b: 1}}}'
    )
    assert said(watch(f"children: {{web: {{object: {{{items}}}}}}}")) == []


def test_the_identity_of_an_object_is_outside_of_tags():
    (found,) = said(
        watch('children: {web: {object: {"{% if spec.x %}": {apiVersion: v1, kind: Pod, metadata: {name: a}}}}}')
    )
    assert "an object needs apiVersion, in plain text" in found


def test_a_field_of_the_status_cannot_be_made_by_a_tag():
    (found,) = said(watch('status: {"{% for each in spec.list %}": {"{{ each }}": 1}}'))
    assert found.startswith("watches.yaml:4:12: a field of the status has a computed name")
    assert said(watch('status: {all: {"{% for each in spec.list %}": {"{{ each }}": 1}}}')) == []


def test_the_data_of_a_secret_cannot_be_put_into_the_status_by_a_loop():
    body = """
    observe:
      keys: {version: v1, kind: Secret, selector: {a: b}}
    status:
      found: [{"{% for each in keys %}": "FIELD"}]
    """
    assert said(watch(body.replace("FIELD", "{{ each.metadata.name }}"))) == []
    for field in ("{{ each.data.password }}", "{{ each.data.items() | list }}", "{{ each }}"):
        (found,) = said(watch(body.replace("FIELD", field)))
        assert "would expose the data of a Secret in `status`" in found


def test_random_values_are_found_in_a_loop():
    found = said(watch(OBJECT.replace("LIST", "range(3)").replace("{{ each.value }}", "{{ random_password(8) }}")))
    assert any("random_password" in each for each in found)


def test_a_file_named_in_a_loop_counts_as_used():
    body = OBJECT.replace("LIST", "spec.list").replace("{{ each.value }}", "{{ file('a.yaml') }}")
    assert load(watch(body)).findings == ()


def test_an_equal_value_has_an_equal_digest_and_a_changed_tag_another():
    one, same, other = (rule(OBJECT.replace("LIST", text)).digest for text in ("spec.list", "spec.list", "spec.other"))
    assert one == same != other


def test_the_selector_of_a_watch_has_no_tags():
    found = said(watch('selector: {matchLabels: {"{% if true %}": {a: b}}}'))
    assert found


@pytest.mark.parametrize(
    ("metadata", "refused"),
    [
        ('{"{% if spec.a %}": {name: a}, "{% else %}": {name: b}}', ""),
        ('{name: a, "{% if spec.a %}": {generateName: b}}', "`metadata.generateName` is not allowed"),
        ('{name: a, "{% if spec.a %}": {finalizers: [x]}}', "`metadata.finalizers` is set by ruleop"),
        ('{name: a, labels: {"{% for a in spec.b %}": {"ruleop.dev/x": y}}}', "`metadata.labels['ruleop.dev/x']` is set"),
        ('{name: a, "{% if spec.a %}": {namespace: other}}', "may be in another namespace than its CR"),
        ('{name: a, "{% if spec.a %}": {namespace: "{{ metadata.namespace }}"}}', ""),
        ('{"{% if spec.a %}": {name: A_B}}', '"A_B" is not valid: a name has'),
        ('{name: a}, "{% if spec.a %}": {status: {a: b}}', "`status` is set by ruleop"),
        ('{name: a}, status: "{{ spec.a }}"', "`status` is set by ruleop"),
        ('{name: a, "{% if spec.a %}": {namespace: "{{ spec.a }}"}}', "may be in another namespace than its CR"),
        ('{labels: {"{% if spec.a %}": {a: b}}}', "metadata.name of the object is missing"),
    ],
)  # fmt: skip
def test_a_field_that_an_object_cannot_set_is_found_in_a_tag(metadata, refused):
    found = said(watch(f"children: {{web: {{object: {{apiVersion: v1, kind: ConfigMap, metadata: {metadata}}}}}}}"))
    assert len(found) == bool(refused)
    assert all(refused in each for each in found)
