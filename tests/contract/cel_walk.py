"""Random CEL rules and values: what an API server says of them, and what ruleop's interpreter says.

All rules of a batch are in one CRD, each on a property of its own with the same schema, so that one request answers
for all of them.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ruleop.kubernetes.cel import RuleVerdict, cel_rules
from tests.contract.client import Server
from tests.contract.definitions import GROUP, PATH
from tests.contract.kinds import crd
from tests.waiting import eventually

_TEXT: Final = {"type": "string", "maxLength": 20}
_WHOLE: Final = {"type": "integer"}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "i": _WHOLE,
        "j": _WHOLE,
        "d": {"type": "number"},
        "e": {"type": "number"},
        "s": _TEXT,
        "t": _TEXT,
        "b": {"type": "boolean"},
        "c": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True, "maxLength": 10},
        "texts": {"type": "array", "maxItems": 4, "items": _TEXT},
        "numbers": {"type": "array", "maxItems": 4, "items": _WHOLE},
        "ports": {"type": "array", "maxItems": 3, "items": {"x-kubernetes-int-or-string": True, "maxLength": 9}},
        "set": {"type": "array", "maxItems": 4, "items": _TEXT, "x-kubernetes-list-type": "set"},
        "map": {"type": "object", "maxProperties": 4, "additionalProperties": _TEXT},
        "counts": {"type": "object", "maxProperties": 4, "additionalProperties": _WHOLE},
        "inner": {
            "type": "object",
            "properties": {"i": _WHOLE, "s": _TEXT, "a-b": _WHOLE, "in": _TEXT, "x__y": _WHOLE},
        },
        "maybe": {"type": "object", "nullable": True, "properties": {"i": _WHOLE}},
        "keyed": {
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": _TEXT, "v": _WHOLE}},
        },
        "time": {"type": "string", "format": "duration"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"i": _WHOLE}},
        "when": {"type": "string", "format": "date-time"},
        "amount": {"type": "string", "maxLength": 12},
    },
}

_TEXTS: Final = [
    "",
    "a",
    "b",
    "ab",
    "aé",
    "A-1",
    "web",
    " a ",
    "a,b",
    "10",
    "-3",
    "1.5",
    "true",
    "1h",
    "500Mi",
    "ü",
    "\U0001d4b3y",
]
_NUMBERS: Final = [0, 1, -1, 2, 3, 7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
_DOUBLES: Final = [0.5, 1.5, -2.25, 0, 1, 3, 1e20, 9007199254740993, 0.1]
_AMOUNTS: Final = ["1", "500m", "1Gi", "1024Mi", "1.5G", "x", "1K", "-2", "0.5", "", "1e3", "1.0"]
_TIMES: Final = ["1h", "60m", "90s", "1.5h", "0", "-1s", "300ms"]
_PATTERNS: Final = ["^a", "[0-9]+", "^[a-z]*$", "a|b", "", "é", "^.{2}$"]


def values(rand: random.Random) -> dict[str, Any]:
    """A random value of the schema."""

    def some(make: Any, most: int = 4) -> list[Any]:
        return [make() for _ in range(rand.randrange(most))]

    def text() -> str:
        return rand.choice(_TEXTS)

    def number() -> int:
        return rand.choice(_NUMBERS)

    def port() -> int | str:
        return rand.choice([80, 0, -1, "80", "http", "50%", ""])

    def few(*names: str) -> list[str]:
        return rand.sample(names, rand.randrange(len(names) + 1))

    def inner() -> dict[str, Any]:
        return {each: text() if each in ("s", "in") else number() for each in few("i", "s", "a-b", "in", "x__y")}

    makers: dict[str, Any] = {
        **dict.fromkeys(("i", "j"), number),
        **dict.fromkeys(("d", "e"), lambda: rand.choice(_DOUBLES)),
        **dict.fromkeys(("s", "t"), text),
        **dict.fromkeys(("b", "c"), lambda: rand.random() < 0.5),
        "port": port,
        "texts": lambda: some(text),
        "numbers": lambda: some(number),
        "ports": lambda: some(port, 3),
        "set": lambda: rand.sample(_TEXTS, rand.randrange(4)),
        "map": lambda: {each: text() for each in few("a", "b", "web")},
        "counts": lambda: {each: number() for each in few("a", "b", "web")},
        "inner": inner,
        "maybe": lambda: rand.choice([None, {}, {"i": number()}]),
        "keyed": lambda: [
            {"k": each, **({"v": number()} if rand.random() < 0.7 else {})} for each in few("a", "b", "c")
        ],
        "time": lambda: rand.choice(_TIMES),
        "free": lambda: rand.choice([{}, {"i": 1}, {"x": 1}, {"x": 2, "i": 1}, {"x": {"y": []}}]),
        "when": lambda: rand.choice(["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2025-05-05T05:05:05.5Z"]),
        "amount": lambda: rand.choice(_AMOUNTS),
    }
    return {name: make() for name, make in makers.items() if rand.random() < 0.8}


@dataclass
class Rules:
    """Random rules. Most are of matching types; `wrong` is the share of parts that may not be."""

    rand: random.Random
    wrong: float = 0.01
    old: bool = False
    names: tuple[tuple[str, str], ...] = ()  # the variables of macros, with their types

    def rule(self) -> str:
        return self.of("bool", self.rand.randrange(1, 5))

    def of(self, kind: str, depth: int) -> str:
        if self.rand.random() < self.wrong:
            kind = self.rand.choice(["bool", "int", "double", "string", "texts", "numbers", "dyn", "inner", "null"])
        options = [*_LEAVES[kind], *(name for name, type_ in self.names if type_ == kind)]
        if depth <= 0 or (kind not in _BRANCHES and not self.names):
            found = self.rand.choice(options)
        else:
            found = self.rand.choice([*_BRANCHES.get(kind, ()), *_BRANCHES.get(kind, ()), *options])
        found = self._filled(found, depth)
        return found.replace("self", "oldSelf") if self.old and self.rand.random() < 0.2 else found

    def _filled(self, template: str, depth: int) -> str:
        """A template, with an expression for each <kind>, and a macro's body for {variable:kind:kind of its body}."""
        text = ""
        while template:
            head, opening, rest = template.partition("⟨")
            text += head
            if not opening:
                break
            part, _, template = rest.partition("⟩")
            if ":" in part:
                item, body = part.split(":")
                variable = self.rand.choice(["x", "y", "item", "size"])
                outer, self.names = self.names, (*self.names, (variable, item))
                bodies = [self.of(each, depth - 1) for each in body.split("+")]
                text += ", ".join([variable, *bodies])
                self.names = outer
            else:
                text += self.of(part, depth - 1)
        return text


_LEAVES: Final[dict[str, list[str]]] = {
    "bool": ["self.b", "self.c", "true", "false", "has(self.i)", "has(self.inner)", "has(self.inner.s)", "has(self.map.a)"],
    "int": ["self.i", "self.j", "1", "0", "-1", "3", "9223372036854775807", "self.inner.i", "self.inner.a__dash__b",
            "self.counts.a", "self.maybe.i", "0x1F", "self.inner.x__underscores__y", "self.counts['web']"],
    "double": ["self.d", "self.e", "1.5", "0.0", "-2.5", "1e3", ".5"],
    "string": ["self.s", "self.t", "''", "'a'", '"web"', "'1.5'", r"r'\d'", r"'\u00e9'", "self.inner.s", "self.map['a']",
               "self.inner.__in__", "self.map.b", "'''a,b'''", "self.amount"],
    "texts": ["self.texts", "['a', 'b']", "[]", "self.set", "['web',]"],
    "numbers": ["self.numbers", "[1, 2, 3]", "[]", "[self.i]"],
    "set": ["self.set"],
    "inner": ["self.inner"],
    "map": ["self.map"],
    "keyed": ["self.keyed"],
    "item": ["self.keyed[0]"],
    "dyn": ["self.port", "self.ports[0]"],
    "ports": ["self.ports"],
    "null": ["null"],
    "maybe": ["self.maybe"],
    "duration": ["self.time", "duration('1h')", "duration('90s')", "duration(self.s)"],
    "quantity": ["quantity(self.amount)", "quantity('1Gi')", "quantity('500m')", "quantity(self.s)"],
    "pattern": [json.dumps(each) for each in _PATTERNS],
    "free": ["self.free"],
    "when": ["self.when"],
}  # fmt: skip
_BRANCHES: Final[dict[str, list[str]]] = {
    "bool": [
        "⟨bool⟩ && ⟨bool⟩", "⟨bool⟩ || ⟨bool⟩", "(⟨bool⟩ || ⟨bool⟩) && ⟨bool⟩", "!⟨bool⟩", "!(⟨bool⟩)", "(⟨bool⟩ ? ⟨bool⟩ : ⟨bool⟩)",
        "⟨int⟩ == ⟨int⟩", "⟨int⟩ < ⟨int⟩", "⟨int⟩ >= ⟨int⟩", "⟨int⟩ < ⟨double⟩", "⟨double⟩ >= ⟨int⟩", "⟨double⟩ <= ⟨double⟩",
        "⟨double⟩ != ⟨double⟩", "⟨string⟩ == ⟨string⟩", "⟨string⟩ < ⟨string⟩", "⟨string⟩ != ⟨string⟩", "⟨bool⟩ == ⟨bool⟩",
        "⟨texts⟩ == ⟨texts⟩", "⟨numbers⟩ == ⟨numbers⟩", "⟨string⟩ in ⟨texts⟩", "⟨int⟩ in ⟨numbers⟩", "⟨string⟩ in ⟨map⟩",
        "⟨dyn⟩ == ⟨int⟩", "⟨dyn⟩ == ⟨string⟩", "⟨dyn⟩ < ⟨int⟩", "⟨dyn⟩ > ⟨double⟩", "type(⟨dyn⟩) == int", "type(⟨dyn⟩) == type(⟨string⟩)",
        "(type(⟨dyn⟩) == string ? ⟨dyn⟩.endsWith('%') : ⟨dyn⟩ > 0)", "⟨dyn⟩ == ⟨dyn⟩", "⟨dyn⟩ in ⟨ports⟩", "⟨string⟩ in ⟨ports⟩",
        "⟨inner⟩ == ⟨inner⟩", "⟨keyed⟩ == ⟨keyed⟩", "⟨set⟩ == ⟨set⟩", "⟨map⟩ == ⟨map⟩", "⟨item⟩ in ⟨keyed⟩", "⟨maybe⟩ == ⟨null⟩",
        "⟨free⟩ == ⟨free⟩", "⟨when⟩ == ⟨when⟩", "⟨duration⟩ < ⟨duration⟩", "⟨duration⟩ == ⟨duration⟩",
        "⟨quantity⟩.isLessThan(⟨quantity⟩)", "⟨quantity⟩.compareTo(⟨quantity⟩) >= 0", "⟨quantity⟩ == ⟨quantity⟩", "isQuantity(⟨string⟩)",
        "⟨string⟩.startsWith(⟨string⟩)", "⟨string⟩.endsWith(⟨string⟩)", "⟨string⟩.contains(⟨string⟩)", "⟨string⟩.matches(⟨pattern⟩)",
        "matches(⟨string⟩, ⟨pattern⟩)", "bool(⟨string⟩)",
        "⟨texts⟩.all(⟨string:bool⟩)", "⟨texts⟩.exists(⟨string:bool⟩)", "⟨numbers⟩.all(⟨int:bool⟩)", "⟨numbers⟩.exists_one(⟨int:bool⟩)",
        "⟨texts⟩.exists_one(⟨string:bool⟩)", "⟨map⟩.all(⟨string:bool⟩)", "⟨map⟩.exists(⟨string:bool⟩)", "⟨keyed⟩.all(⟨item:bool⟩)",
        "⟨keyed⟩.exists(⟨item:bool⟩)", "⟨ports⟩.all(⟨dyn:bool⟩)", "⟨item⟩.k == ⟨string⟩", "has(⟨item⟩.v)", "⟨item⟩.v > ⟨int⟩",
        "⟨numbers⟩.isSorted()", "⟨texts⟩.isSorted()", "⟨keyed⟩.map(⟨item:string⟩) == ⟨texts⟩",
    ],
    "int": [
        "⟨int⟩ + ⟨int⟩", "⟨int⟩ - ⟨int⟩", "⟨int⟩ * ⟨int⟩", "⟨int⟩ / ⟨int⟩", "⟨int⟩ % ⟨int⟩", "-⟨int⟩", "-(⟨int⟩)", "(⟨bool⟩ ? ⟨int⟩ : ⟨int⟩)",
        "size(⟨string⟩)", "⟨string⟩.size()", "size(⟨texts⟩)", "⟨numbers⟩.size()", "size(⟨map⟩)", "⟨keyed⟩.size()", "int(⟨string⟩)",
        "int(⟨double⟩)", "⟨numbers⟩[⟨int⟩]", "⟨numbers⟩.sum()", "⟨numbers⟩.max()", "⟨numbers⟩.min()", "⟨string⟩.indexOf(⟨string⟩)",
        "⟨string⟩.lastIndexOf(⟨string⟩)", "⟨texts⟩.indexOf(⟨string⟩)", "⟨string⟩.indexOf(⟨string⟩, ⟨int⟩)",
        "⟨string⟩.lastIndexOf(⟨string⟩, ⟨int⟩)", "⟨item⟩.v", "int(⟨duration⟩)", "⟨numbers⟩.lastIndexOf(⟨int⟩)",
    ],
    "double": [
        "⟨double⟩ + ⟨double⟩", "⟨double⟩ - ⟨double⟩", "⟨double⟩ * ⟨double⟩", "⟨double⟩ / ⟨double⟩", "double(⟨int⟩)", "double(⟨string⟩)",
        "-⟨double⟩", "(⟨bool⟩ ? ⟨double⟩ : ⟨double⟩)",
    ],
    "string": [
        "⟨string⟩ + ⟨string⟩", "string(⟨int⟩)", "string(⟨bool⟩)", "string(⟨double⟩)", "⟨texts⟩[⟨int⟩]", "⟨string⟩.lowerAscii()",
        "⟨string⟩.upperAscii()", "⟨string⟩.trim()", "⟨string⟩.substring(⟨int⟩)", "⟨string⟩.substring(⟨int⟩, ⟨int⟩)",
        "⟨string⟩.replace(⟨string⟩, ⟨string⟩)", "⟨string⟩.replace(⟨string⟩, ⟨string⟩, ⟨int⟩)", "⟨string⟩.charAt(⟨int⟩)",
        "⟨texts⟩.join(⟨string⟩)", "⟨texts⟩.join()", "(⟨bool⟩ ? ⟨string⟩ : ⟨string⟩)", "⟨item⟩.k", "⟨texts⟩.min()", "⟨map⟩[⟨string⟩]",
    ],
    "texts": [
        "⟨string⟩.split(⟨string⟩)", "⟨string⟩.split(',', ⟨int⟩)", "⟨texts⟩.filter(⟨string:bool⟩)", "⟨texts⟩.map(⟨string:string⟩)",
        "⟨texts⟩.map(⟨string:bool+string⟩)", "⟨texts⟩ + ⟨texts⟩", "[⟨string⟩, ⟨string⟩]", "⟨numbers⟩.map(⟨int:string⟩)",
    ],
    "numbers": ["⟨numbers⟩.filter(⟨int:bool⟩)", "⟨numbers⟩.map(⟨int:int⟩)", "⟨numbers⟩ + ⟨numbers⟩", "[⟨int⟩, ⟨int⟩]"],
    "duration": ["⟨duration⟩ + ⟨duration⟩", "⟨duration⟩ - ⟨duration⟩"],
}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """A rule that the server and the interpreter see differently."""

    rule: str
    value: Any
    old: Any
    server: str
    interpreter: str

    def __str__(self) -> str:
        given = {name: each for name, each in self.value.items() if name in self.rule}
        before = "" if self.old is None else f"\n  before {json.dumps(self.old)}"
        return f"{self.rule}\n  of {json.dumps(given)}{before}\n  server: {self.server}\n  ruleop: {self.interpreter}"


@dataclass
class CelWalk:
    """Asks a server and the interpreter about random rules."""

    server: Server
    rand: random.Random
    decided: int = 0
    undecided: int = 0

    def differences(self, rules: int, objects: int) -> Iterator[Difference]:
        making = Rules(self.rand, old=self.rand.random() < 0.5)
        given = [making.rule() for _ in range(rules)]
        plural = f"c{uuid.uuid4().hex[:8]}s"
        refused = self._refused(plural, given)
        for index, rule in enumerate(given):
            (compiled,) = cel_rules(_schema([rule])).rules
            if compiled.is_invalid and index not in refused:
                yield Difference(rule, {}, None, "accepts the rule", compiled.problem)
        kept = [each for index, each in enumerate(given) if index not in refused]
        if not kept:
            return
        self.server.create(PATH, _definition(plural, kept))
        try:
            yield from self._verdicts(plural, kept, objects)
        finally:
            self.server.send("DELETE", f"{PATH}/{plural}.{GROUP}")

    def _refused(self, plural: str, rules: list[str]) -> set[int]:
        reply = self.server.send("POST", f"{PATH}?dryRun=All", _definition(plural, rules))
        if reply.status < 300:
            return set()
        found = set()
        for cause in reply.body["details"]["causes"]:
            if rule := re.search(r"\.properties[.\[]spec]?\.properties[.\[]p(\d+)", cause["field"]):
                found.add(int(rule[1]))
        assert found, reply.text
        return found

    def _verdicts(self, plural: str, rules: list[str], objects: int) -> Iterator[Difference]:
        collection = f"/apis/{GROUP}/v1/namespaces/default/{plural}"
        eventually("it is served", lambda: self.server.exists(collection))
        compiled = cel_rules(_schema(rules))
        old, stored = None, dict[str, Any]()
        for number in range(objects):
            value = values(self.rand)
            if old is not None and self.rand.random() < 0.5:
                changed = self.rand.sample(sorted(value), min(2, len(value)))
                value = {**stored, **{name: value[name] for name in changed}}
            name = "one" if old is None else old["metadata"]["name"]
            obj = {
                "apiVersion": f"{GROUP}/v1",
                "kind": plural.title(),
                "metadata": {"name": name, "namespace": "default"},
                "spec": {f"p{index}": value for index in range(len(rules))},
            }
            if old is None:
                reply = self.server.send("POST", f"{collection}?dryRun=All", obj)
            else:
                obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
                reply = self.server.send("PUT", f"{collection}/{name}?dryRun=All", obj)
            yield from self._compared(reply, compiled.broken(obj, old), rules, obj, old)
            if old is None and number >= objects // 2:
                old, stored = self._stored(collection, obj), value

    def _stored(self, collection: str, obj: Any) -> Any:
        """The object with only the values that the server accepts."""
        reply = self.server.send("POST", collection, obj)
        if reply.status >= 300:
            bad = {each["field"].split(".")[1].partition("[")[0] for each in reply.body["details"]["causes"]}
            spec = {name: each for name, each in obj["spec"].items() if name not in bad}
            reply = self.server.send("POST", collection, {**obj, "spec": spec})
        return reply.ok()

    def _compared(self, reply: Any, found: Any, rules: list[str], obj: Any, old: Any) -> Iterator[Difference]:
        assert reply.status in (200, 201, 422), reply.text
        causes = reply.body["details"]["causes"] if reply.status == 422 else []
        server = {each["field"].split(".")[1].partition("[")[0]: each["message"] for each in causes}
        own = {str(each.path[1]): each for each in found}
        for index, rule in enumerate(rules):
            at = f"p{index}"
            if at in own and own[at].verdict is RuleVerdict.NOT_EVALUATED:
                self.undecided += 1
                continue
            self.decided += 1
            said = ""
            if at in own:
                said = f"{own[at].verdict.name} {own[at].detail}"
            failed = "evaluating rule" in server.get(at, "") or "call arguments did not match" in server.get(at, "")
            if (at in own) != (at in server) or (at in own and (own[at].verdict is RuleVerdict.FAILED) != failed):
                before = (old or {}).get("spec", {}).get(at)
                yield Difference(rule, obj["spec"][at], before, server.get(at, "holds"), said or "holds")


def _schema(rules: list[str]) -> dict[str, Any]:
    properties = {
        f"p{index}": {**SCHEMA, "x-kubernetes-validations": [{"rule": each}]} for index, each in enumerate(rules)
    }
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def _definition(plural: str, rules: list[str]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _schema(rules)}}
    return crd(plural, plural.title(), [version])
