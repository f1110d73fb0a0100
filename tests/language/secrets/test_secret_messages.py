"""Messages about children that read Secrets: none quotes a value, whatever fails.

A Secret contains a marked value: as a value, inside a mapping in YAML, and as a key of that mapping. Templates put it,
or parts of it, everywhere; then everything that a plan says is searched.
"""

from __future__ import annotations

import base64

import pytest

from ruleop.errors import Cause
from ruleop.language.secrets.secrecy import public_path
from ruleop.planning import Failed, Failure, Plan
from ruleop.planning.changes.writes import changes, field_paths
from tests.planning.harness import Harness, key
from tests.planning.test_security import public

MARK = "Pl4nted"
CONTENT = f"inner: {MARK}-inner\n{MARK}_key: '1'\n"
SOURCE = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "source", "namespace": "shop"},
    "data": {name: base64.b64encode(text.encode()).decode() for name, text in {"v": f"{MARK}.", "y": CONTENT}.items()},
}
VALUE, MAPPING = "source.data.v | b64decode", "source.data.y | b64decode | from_yaml"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n"
FAILING = {
    "a name by a macro": """
        {% macro m() %}{{ VALUE }}{% endmacro %}
        {% set name = m() %}
        apiVersion: v1
        kind: ConfigMap
        metadata: {{ {'name': name} }}
        """,
    "a name in a mapping": "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ {'name': VALUE} }}\n",
    "a namespace in a mapping": "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ {'name': 'x', 'namespace': VALUE} }}\n",
    "a kind in a mapping": "{% if spec.no is defined %}\napiVersion: v1\nkind: ConfigMap\n{% endif %}\n"
    "{{ {'apiVersion': 'v1', 'kind': VALUE} }}\nmetadata: {name: x}\n",
    "a reserved label": CONFIG + "  labels:\n    ruleop.dev/{{ VALUE }}: a\n",
    "a label that is a number": CONFIG + "  labels:\n    {{ VALUE }}: {{ 5 }}\n",
    "an annotation that is a list": CONFIG + "  annotations:\n    {{ VALUE }}: {{ [1] }}\n",
    "a spread key twice": CONFIG + "data:\n  {{ MAPPING }}\n  {{ MAPPING }}\n",
    "a spread key again": CONFIG + "data:\n  {{ MAPPING }}\n  '{{ 'Pl4' ~ 'nted_key' }}': a\n",
    "a computed key twice": CONFIG + "data:\n  '{{ VALUE }}': a\n  '{{ VALUE }}': b\n",
    "a list item twice": POD
    + "  - name: a\n    env:\n    - {name: '{{ VALUE }}', value: a}\n    - {name: '{{ VALUE }}', value: b}\n",
    "a list item's path": POD
    + "  - name: '{{ VALUE }}'\n    env:\n    - {name: a, value: a}\n    - {name: a, value: b}\n",
    "a message of required": CONFIG + "data:\n  a: '{{ spec.no | required(VALUE) }}'\n",
    "a missing field, with a hint": CONFIG + "data:\n  a: '{{ (MAPPING).Pl4mted_key }}'\n",
    "a missing field, with names": CONFIG + "data:\n  a: '{{ (MAPPING).zzzzzzz }}'\n",
    "a computed field": CONFIG + "data:\n  a: '{{ spec[VALUE] }}'\n",
    "text that is not YAML": CONFIG + "data:\n  a: \"{{ ('[' ~ VALUE ~ '}{') | from_yaml }}\"\n",
    "text that is not JSON": CONFIG + "data:\n  a: \"{{ ('[' ~ VALUE ~ '}{') | from_json }}\"\n",
    "half of a pair of surrogates": CONFIG + "  annotations:\n    a: \"{{ (VALUE) ~ '\\ud800' }}\"\n",
    "a file": CONFIG + "data:\n  a: '{{ file(VALUE) }}'\n",
    "the arguments of a macro": "{% macro m(a) %}{{ a }}{% endmacro %}\n"
    + CONFIG
    + 'data:\n  a: "{{ m(**{VALUE: 1}) }}"\n',
    "a list in text": CONFIG + "data:\n  a: 'x{{ [VALUE] }}'\n",
    "a pattern": CONFIG + "data:\n  a: '{{ 'x' | regex_search(VALUE ~ '(') }}'\n",
    "a quantity": CONFIG + "data:\n  a: '{{ VALUE | quantity }}'\n",
}
OBSERVED = "observe: {source: {version: v1, kind: Secret, name: source}}\n"


def harness(text: str, watch: str = "children: {c: {template: c.yaml}}\n", **files: str) -> Harness:
    filled = text.replace("VALUE", f"({VALUE})").replace("MAPPING", f"({MAPPING})").replace("PLANTED", MARK)
    found = Harness.of(OBSERVED + watch, c=filled, **files)
    found.objects[key("source", "Secret")] = SOURCE
    return found


def searched(planned: Plan) -> str:
    found = public(planned)
    assert MARK not in found
    assert SOURCE["data"]["v"] not in found  # type: ignore[index]
    return found


@pytest.mark.parametrize("what", FAILING)
def test_no_failure_quotes_a_value_of_a_secret(what: str) -> None:
    planned = harness(FAILING[what]).plan()
    assert planned.problems
    searched(planned)


def test_a_failure_of_a_child_without_secrets_is_described_in_full() -> None:
    found = Harness.of("children: {c: {template: c.yaml}}", {"n": "Not Valid"}, c=CONFIG.replace("x", "'{{ spec.n }}'"))
    assert "the ConfigMap 'Not Valid': a name has" in found.plan().problems[0].message
    found = Harness.of("children: {c: {template: c.yaml}}", c=FAILING["a list item twice"].replace("VALUE", "'K'"))
    assert "spec.containers[name=a].env[1]: an item with name=K is already" in found.plan().problems[0].message


def test_a_failure_of_a_secret_that_reads_no_other_is_described_in_full() -> None:
    text = CONFIG.replace("ConfigMap", "Secret").replace("x", "'{{ spec.n }}'") + "stringData: {a: '{{ spec.n }}'}\n"
    found = Harness.of("children: {c: {template: c.yaml}}", {"n": "Not Valid"}, c=text)
    assert "the Secret 'Not Valid': a name has" in found.plan().problems[0].message


def test_words_of_the_template_stay_in_paths() -> None:
    found = searched(harness(FAILING["a list item twice"]).plan())
    assert "the Pod: spec.containers[name=a].env[1]: an item with the same key is already in this list" in found
    assert "containers[name=(hidden)].env[1]" in searched(harness(FAILING["a list item's path"]).plan())


@pytest.mark.parametrize("part", ["when", "waitFor", "readyWhen", "forEach"])
def test_no_expression_of_a_child_quotes_a_value_of_a_secret(part: str) -> None:
    for expression in ("(spec.no | required(VALUE)) == 1", "(MAPPING).Pl4mted_key == 1"):
        text = expression.replace("VALUE", VALUE).replace("MAPPING", MAPPING).replace("PLANTED", MARK)
        found = harness(CONFIG, f'children: {{c: {{template: c.yaml, {part}: "{text}"}}}}\n')
        found.step()
        planned = found.plan()
        assert planned.problems
        searched(planned)


@pytest.mark.parametrize(
    "watch",
    [
        'validate: [{rule: "EXPRESSION == 1", message: nope}]',
        "status: {a: '{{ 1 if (EXPRESSION) is defined }} {{ b }}'}\nlet: {b: '{{ EXPRESSION }}'}",
        'conditions: [{type: A, status: "(EXPRESSION) is defined and b is defined and b == 1"}]\nlet: {b: "{{ EXPRESSION }}"}',
        "let: {b: '{{ EXPRESSION }}'}\nchildren: {c: {template: d.yaml}}",
    ],
)
def test_no_expression_of_a_rule_quotes_a_value_of_a_secret(watch: str) -> None:
    for expression in ("(spec.no | required(VALUE))", "(MAPPING).Pl4mted_key"):
        text = watch.replace("EXPRESSION", expression).replace("VALUE", VALUE).replace("MAPPING", MAPPING)
        try:
            found = harness(CONFIG, text.replace("PLANTED", MARK) + "\n", d=CONFIG + "data: {a: '{{ b }}'}\n")
        except Exception as refused:  # noqa: BLE001 - `check` may refuse it as well
            assert "would expose the data of a Secret" in str(refused)  # noqa: PT017 - one of two good ends
            continue
        searched(found.plan())


# -- paths of fields ---------------------------------------------------------------------------------------------------


def test_paths_of_changed_fields_show_only_words_of_the_template() -> None:
    text = CONFIG + "data:\n  plain: '{{ VALUE }}'\n  '{{ VALUE }}': a\n  {{ MAPPING }}\n"
    found = harness(text)
    found.step()
    found.change(key("x"), {"data": {"plain": "b", f"{MARK}.": "b", "inner": "b"}})
    planned = found.plan()
    (action,) = planned.actions
    paths = field_paths(changes(action, found, None), planned.uid, planned.public_words.get(action.child))
    assert set(paths) == {"data.plain", "data['(hidden)']", "data.(hidden)"}


def test_an_immutable_change_names_only_words_of_the_template() -> None:
    text = CONFIG + "immutable: true\ndata:\n  plain: '{{ VALUE }}'\n  '{{ VALUE }}': a\n"
    found = harness(text)
    found.step()
    found.change(key("x"), {"data": {"plain": "b", f"{MARK}.": "b"}})
    found.refuse[key("x")] = Failed(Failure.IMMUTABLE, f"{MARK} is immutable", redacted="rejected by the API server")
    found.step()
    found.step()
    assert MARK not in repr(found.status) + repr(found.events)
    assert "data.plain" in repr(found.status)


def test_a_rejection_names_only_words_of_the_template() -> None:
    found = harness(CONFIG + "data:\n  plain: '{{ VALUE }}'\n  '{{ VALUE }}': a\n")
    causes = (Cause(f"data[{MARK}.]", "FieldValueInvalid"), Cause("data.plain", "FieldValueInvalid"), Cause(""))
    redacted = f"rejected by the API server (422 Invalid): data[{MARK}.]: Invalid value, data.plain: Invalid value"
    found.refuse[key("x")] = Failed(Failure.INVALID, "x", redacted=redacted, causes=causes)
    found.step()
    assert "data[(hidden)]: Invalid value, data.plain: Invalid value" in repr(found.status)


def test_a_rejection_of_a_generated_password_quotes_nothing_though_no_secret_holds_it() -> None:
    text = CONFIG + "data: {p: '{{ random_password(24) }}'}\n"
    found = Harness.of("children: {c: {template: c.yaml, apply: {strategy: create-only}}}\n", c=text)
    found.refuse[key("x")] = Failed(Failure.INVALID, MARK, redacted="rejected by the API server (422 Invalid)")
    found.step()
    assert "rejected by the API server (422 Invalid)" in repr(found.status)
    assert MARK not in repr(found.status) + repr(found.events)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("data.known", "data.known"),
        ("data.other", "data.(hidden)"),
        ("data['a.known']", "data['(hidden)']"),
        ("data['known.known']", "data['known.known']"),
        ("spec.known[3].other[12345]", "spec.known[3].(hidden)[(hidden)]"),
        ("spec.known[known=other,other=known]", "spec.known[known=(hidden),(hidden)=known]"),
        ("metadata.annotations['x.y/z']", "metadata.annotations['(hidden)']"),
    ],
)
def test_a_public_path_shows_only_known_names(path: str, shown: str) -> None:
    assert public_path(path, {"known"}) == shown
