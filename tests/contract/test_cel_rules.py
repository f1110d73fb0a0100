"""CEL rules of CRDs: usual ones, their answers, what an update does not check again, and random ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import yaml

from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from tests.contract.cel_walk import CelWalk
from tests.contract.client import MERGE, Reply, Server
from tests.contract.definitions import GROUP, PATH, Definitions
from tests.contract.kinds import crd
from tests.exploration import others_slow
from tests.waiting import eventually

USUAL = yaml.load((Path(__file__).parent / "cel_rules.yaml").read_text(), yaml.CSafeLoader)
NOTHING = object()


class Kind:
    """A kind with one schema, and its objects in a namespace."""

    def __init__(self, server: Server, definitions: Definitions, namespace: str, spec: Any) -> None:
        self.schema = {"type": "object", "properties": {"spec": spec}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": self.schema}}
        _, self.plural = definitions.make([version])
        self.server, self.path = server, f"/apis/{GROUP}/v1/namespaces/{namespace}/{self.plural}"

    def obj(self, spec: Any, name: str = "one") -> dict[str, Any]:
        api = {"apiVersion": f"{GROUP}/v1", "kind": self.plural.title()}
        return {**api, "metadata": {"name": name}, "spec": spec}

    def create(self, spec: Any, name: str = "one") -> Reply:
        return self.server.send("POST", self.path, self.obj(spec, name))

    def replace(self, old: Any, spec: Any) -> Reply:
        return self.server.send("PUT", f"{self.path}/{old['metadata']['name']}", {**old, "spec": spec})

    def change(self, spec: Any, name: str = "one") -> Reply:
        return self.server.send("PATCH", f"{self.path}/{name}", {"spec": spec}, media=MERGE)


def rejected(reply: Reply) -> dict[str, list[str]]:
    """The messages of the causes of an invalid object, by the field. Their order is random on the real server."""
    found: dict[str, list[str]] = {}
    for each in reply.refused(422, "Invalid")["details"]["causes"]:
        found.setdefault(each["field"], []).append(each["message"])
    return found


def parts(value: Any) -> tuple[Any, Any]:
    """The value before, and the new one."""
    return (
        (value["old"], value["new"]) if isinstance(value, dict) and value.keys() == {"old", "new"} else (NOTHING, value)
    )


def in_rounds(entries: Sequence[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Values of all rules, one of each at a time."""
    columns = [[(f"p{number}", value) for value in entry[key]] for number, entry in enumerate(entries)]
    return [dict(each for each in row if each is not None) for row in zip_longest(*columns)]


@pytest.mark.parametrize("start", range(0, len(USUAL), 15))
def test_usual_rules_have_the_verdicts_of_the_interpreter(
    server: Server, definitions: Definitions, namespace: str, start: int
) -> None:
    entries = USUAL[start : start + 15]
    properties = {
        f"p{number}": {**each["schema"], "x-kubernetes-validations": [{"rule": each["rule"]}]}
        for number, each in enumerate(entries)
    }
    kind = Kind(server, definitions, namespace, {"type": "object", "properties": properties})
    rules = cel_rules(kind.schema)
    assert rules.not_evaluated == ()
    for key in ("holds", "breaks"):
        for number, row in enumerate(in_rounds(entries, key)):
            before = {at: old for at, value in row.items() if (old := parts(value)[0]) is not NOTHING}
            after = {at: parts(value)[1] for at, value in row.items()}
            expected = set(row) if key == "breaks" else set()
            name = f"{key}-{number}"
            old = kind.create(before, name).ok() if before else None
            reply = kind.replace(old, after) if before else kind.create(after, name)
            named = {each.split(".")[1] for each in rejected(reply)} if reply.status == 422 else set()
            assert named == expected, reply.text
            found = rules.broken(kind.obj(after), old)
            assert {str(each.path[1]) for each in found if each.verdict is not RuleVerdict.NOT_EVALUATED} == expected


ANSWERS = yaml.safe_load("""
type: object
x-kubernetes-validations:
- {rule: self.min <= self.max}
- {rule: self.max < 9, message: " too much  "}
- {rule: self.nothing > 0, message: no rule without it}
- {rule: self.nothing > 0}
- {rule: "!has(self.tags) || self.tags.all(t, t.matches('^[a-z]+$'))", reason: FieldValueForbidden}
- {rule: "self.port == 1", fieldPath: .port, messageExpression: "'the port is ' + (self.min > 2 ? 'high' : 'low')"}
- {rule: "self.port == 1", message: "a message", messageExpression: "self.tags[9]"}
- {rule: self.port > 5}
properties:
  nothing: {type: integer}
  min:
    type: integer
    x-kubernetes-validations:
    - {rule: self < 2, reason: FieldValueDuplicate}
    - {rule: self < 2, reason: FieldValueRequired}
  max: {type: integer}
  part: {type: number, x-kubernetes-validations: [{rule: self < 2}]}
  port: {x-kubernetes-int-or-string: true, maxLength: 9, x-kubernetes-validations: [{rule: self == 1}, {rule: self > 1}]}
  tags:
    type: array
    maxItems: 5
    items: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: self != 'B'}]}
    x-kubernetes-validations: [{rule: size(self) < 2}]
  map: {type: object, maxProperties: 4, additionalProperties: {type: string, x-kubernetes-validations: [{rule: self != 'B'}]}}
""")
OVERLOAD = "'no such overload': call arguments did not match a supported operator, function or macro signature for rule"


def test_a_broken_rule_is_answered_in_the_servers_words(
    server: Server, definitions: Definitions, namespace: str
) -> None:
    kind = Kind(server, definitions, namespace, ANSWERS)
    spec = {"min": 30, "max": 20, "part": 2.5, "port": "5", "tags": ["a", "B"], "map": {"k": "B"}}
    assert {field: sorted(messages) for field, messages in rejected(kind.create(spec)).items()} == {
        "spec": [
            "Forbidden: failed rule: !has(self.tags) || self.tags.all(t, t.matches('^[a-z]+$'))",
            f'Invalid value: "object": {OVERLOAD}: self.port > 5',
            'Invalid value: "object": no such key: nothing evaluating rule: no rule without it',
            'Invalid value: "object": no such key: nothing evaluating rule: self.nothing > 0',
            "Invalid value: a message",
            "Invalid value: failed rule: self.min <= self.max",
            "Invalid value: too much",
        ],
        "spec.port": [
            f'Invalid value: "": {OVERLOAD}: self > 1',
            'Invalid value: "5": failed rule: self == 1',
            "Invalid value: the port is high",
        ],
        "spec.min": ["Duplicate value: 30", "Required value: failed rule: self < 2"],
        "spec.part": ["Invalid value: 2.5: failed rule: self < 2"],
        "spec.tags": ["Invalid value: failed rule: size(self) < 2"],
        "spec.tags[1]": ["Invalid value: \"B\": failed rule: self != 'B'"],
        "spec.map[k]": ["Invalid value: \"B\": failed rule: self != 'B'"],
    }


def test_rules_are_not_evaluated_for_an_object_of_the_wrong_form(
    server: Server, definitions: Definitions, namespace: str
) -> None:
    found = rejected(Kind(server, definitions, namespace, ANSWERS).create({"min": 3, "max": 1, "tags": [4]}))
    assert found.keys() == {"spec.tags[0]", "<nil>"}
    (message,) = found["<nil>"]
    assert message.startswith("Invalid value: null: some validation rules were not checked because")


RATCHETED = yaml.safe_load("""
type: object
properties:
  other: {type: integer}
  size: &small {type: integer, x-kubernetes-validations: [{rule: self < 5}]}
  once: {type: integer, x-kubernetes-validations: [{rule: self <= oldSelf + 1}]}
  pair:
    type: object
    properties: {a: {type: integer}, b: {type: integer}}
    x-kubernetes-validations: [{rule: self.a < self.b}]
  list: {type: array, maxItems: 5, items: *small}
  keyed:
    type: array
    maxItems: 5
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [k]
    items: {type: object, required: [k], properties: {k: {type: string, maxLength: 5}, v: *small, f: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}}}
  map: {type: object, maxProperties: 5, additionalProperties: *small}
  free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a < 5}]}
""")


def without_rules(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: without_rules(each) for name, each in schema.items() if name != "x-kubernetes-validations"}
    return [without_rules(each) for each in schema] if isinstance(schema, list) else schema


BEFORE = {
    "size": 9,
    "once": 1,
    "pair": {"a": 5, "b": 1},
    "list": [9],
    "keyed": [{"k": "x", "v": 9, "f": 1}, {"k": "y"}],
    "map": {"x": 9},
    "free": {"a": 9, "more": 1},
}
AFTER: list[tuple[dict[str, Any], set[str]]] = [
    ({"other": 1, "free": None}, set()),
    ({"free": {"a": 9}}, {"spec.free"}),  # its undeclared fields are not compared: it counts as changed
    ({"size": 8, "free": None}, {"spec.size"}),
    ({"once": 3, "free": None}, {"spec.once"}),
    ({"once": 2, "free": None}, set()),
    ({"pair": {"b": 2}, "free": None}, {"spec.pair"}),
    ({"list": [9, 1], "free": None}, {"spec.list[0]"}),
    ({"keyed": [{"k": "y"}, {"k": "x", "v": 9, "f": 1}], "free": None}, set()),
    ({"keyed": [{"k": "y", "v": 7}, {"k": "x", "v": 9, "f": 2}], "free": None}, {"spec.keyed[0].v", "spec.keyed[1].f"}),
    ({"keyed": [{"k": "z", "v": 9, "f": 2}], "free": None}, {"spec.keyed[0].v"}),
    ({"map": {"y": 1}, "free": None}, set()),
    ({"map": {"y": 7}, "free": None}, {"spec.map[y]"}),
]


def test_an_update_does_not_check_again_what_it_leaves_as_it_was(
    server: Server, definitions: Definitions, namespace: str
) -> None:
    kind = Kind(server, definitions, namespace, without_rules(RATCHETED))
    for number in range(len(AFTER)):
        kind.create(BEFORE, f"a{number}").ok()
    name = f"{kind.plural}.{GROUP}"
    version = {"name": "v1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": RATCHETED}}}
    server.send("PATCH", f"{PATH}/{name}", {"spec": {"versions": [{**version, "schema": schema}]}}, media=MERGE).ok()
    eventually(
        "the rules are in force",
        lambda: server.send("POST", f"{kind.path}?dryRun=All", kind.obj({"size": 9}, "new")).status == 422,
    )
    for number, (change, expected) in enumerate(AFTER):
        reply = kind.change(change, f"a{number}")
        assert (set(rejected(reply)) if reply.status == 422 else set()) == expected, (change, reply.text)


@pytest.mark.parametrize(
    "rule",
    [
        "self.nothing == 1",
        "self.a ==",
        "self.a == 'x'",
        "self.a",
        "self.a < 'x'",
        "self.a && true",
        "slef.a == 1",
        "size(self.a) > 1",
        "self.s.startsWith(1)",
        "self.s == null",
        "self.l.all(1, true)",
        "has(self)",
        "[1, 'a'] == []",
        "self.a == 9223372036854775808",
        "true ? 1 : 'a'",
        "'a' in self",
        "self.s.matches(5)",
        "self.if == 1",
        "duration('1nns') == duration('1s')",
        "self.s.matches(')')",
        "self.l.exists(x, x.matches('('))",
        "self.a == int('x')",
        "self.a > 0 || bool('x')",
        "double('x') > 1.0",
    ],
)
def test_a_crd_with_a_rule_that_cannot_be_compiled_is_rejected(server: Server, rule: str) -> None:
    properties = {
        "a": {"type": "integer"},
        "s": {"type": "string", "maxLength": 9},
        "l": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 9}},
    }
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]}
        },
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    reply = server.send("POST", f"{PATH}?dryRun=All", crd("things", "Thing", [version]))
    (cause,) = reply.refused(422, "Invalid")["details"]["causes"]
    assert cause["field"].endswith("x-kubernetes-validations[0].rule")


@pytest.mark.slow
@pytest.mark.parametrize("seed", others_slow(range(20), 0))
def test_random_rules_have_the_verdicts_of_the_interpreter(server: Server, seed: int) -> None:
    walk = CelWalk(server, random.Random(seed))  # noqa: S311 - nothing secret
    assert not [str(each) for each in walk.differences(rules=40, objects=20)]
    assert walk.decided > 10 * walk.undecided
