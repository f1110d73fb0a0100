"""Expressions of CEL: their values, their errors, and what is left undecided. tests/contract asks a real server."""

from __future__ import annotations

from typing import Any

import pytest

from ruleop.kubernetes.cel import EvaluationError, InvalidRuleError, NotEvaluatedError
from ruleop.kubernetes.cel.cel_compiler import compile_rule
from ruleop.kubernetes.cel.values import Budget, ListValue, to_value, type_of_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "d": {"type": "number"},
        "s": {"type": "string"},
        "digits": {"type": "string"},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "port": {"x-kubernetes-int-or-string": True},
        "number": {"x-kubernetes-int-or-string": True},
        "when": {"type": "string", "format": "date-time"},
        "data": {"type": "string", "format": "byte"},
        "time": {"type": "string", "format": "duration"},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "maybe": {"type": "object", "nullable": True, "properties": {"i": {"type": "integer"}}},
        "many": {
            "type": "array",
            "items": {"type": "object", "nullable": True, "properties": {"i": {"type": "integer"}}},
        },
    },
}


def value(text: str, steps: int = 10_000, **spec: Any) -> Any:
    type_ = type_of_schema(SCHEMA)
    found = compile_rule(text, {"self": type_}).evaluate({"self": to_value(spec, type_)}, Budget(steps))
    return list(found) if isinstance(found, ListValue) else found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("- -1", 1),
        ("!!true", True),
        ("1 - 1", 0),
        ("1 -1", 0),
        ("0x1F", 31),
        ("1e3 + .5", 1000.5),
        ("1.0 / 0.0 > 1e300", True),
        ("0.0 / 0.0 == 0.0 / 0.0", False),
        ("1 < 1.5 && 2.5 >= 2", True),
        ("true ? 1 : 2 + 3", 1),
        ("1 < 2 == true", True),
        ("'a' + \"b\"", "ab"),
        (r"'\u00e9\t\x41\101\"'", 'é\tAA"'),
        (r"r'\d\n'", r"\d\n"),
        ("'''it's'''", "it's"),
        ("'a' < 'b' && 'B' < 'a'", True),
        ("size('aé𝒳')", 3),  # noqa: RUF001 - a character of four bytes
        ("[1, 2, 3,].map(x, x * 2)", [2, 4, 6]),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("[1, 2].map(x, [3].map(x, x + 1)[0] + x)", [5, 6]),
        ("['a', 'b'] + ['c']", ["a", "b", "c"]),
        ("'a,b'.split(',')", ["a", "b"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'a'.split(',', 0)", []),
        ("'aaa'.replace('a', 'b', 2)", "bba"),
        ("'abc'.replace('', '-')", "-a-b-c-"),
        ("'abcabc'.lastIndexOf('b')", 4),
        ("'abcabc'.lastIndexOf('b', 3)", 1),
        ("'abc'.indexOf('', 2)", 2),
        ("'abc'.substring(1, 3) + 'abc'.charAt(3)", "bc"),
        ("'\\u001ca '.trim()", "\x1ca"),  # Python would strip the separator too
        ("int('-12') + int(2.9) + int('+1')", -9),
        ("double('1.5') + double(1)", 2.5),
        ("string(1) + string(true) + string(1.5) + string(2.0)", "1true1.52"),
        ("bool('T')", True),
        ("type(1) == int && type('') == string && type([]) == list && type(null) == null_type", True),
        ("duration('1h30m') == duration('90m')", True),
        ("int(duration('1.5s'))", 1_500_000_000),
        ("quantity('1Gi').compareTo(quantity('1024Mi'))", 0),
        ("quantity('0.5') == quantity('500m')", True),
        ("isQuantity('1K')", False),
        ("[2, 1].min() + [2, 1].max() + [2, 1].sum() + [1, 2, 1].lastIndexOf(1)", 8),
        ("[].exists(x, true) || [].all(x, false)", True),
        ("9223372036854775807 == 9223372036854775807", True),
        ("-9223372036854775808 < 0", True),
    ],
)
def test_an_expression_has_its_value(text: str, expected: Any) -> None:
    found = value(text)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("-9223372036854775808 % -1", "integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("self.i", "no such key: i"),
        ("self.m.x", "no such key: x"),
        ("self.l[2]", "index out of bounds: 2"),
        ("self.l[-1]", "index out of bounds: -1"),
        ("int('' + '1 ')", "type conversion error from 'string' to 'int'"),
        ("int('' + '9223372036854775808')", "type conversion error from 'string' to 'int'"),
        ("double('' + 'x')", "type conversion error from 'string' to 'double'"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("'abc'.charAt(4)", "index out of range: 4"),
        ("self.port > 1", "no such overload"),
        ("(self.port == 'http' ? self.number : self.port) in self.m", "no such overload"),
        ("[].max() == 1 ? true : self.port", ""),
        ("duration('' + '1d')", "type conversion error from 'string' to 'duration'"),
        ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
        ("self.l.exists_one(x, x.charAt(9) == '')", "index out of range: 9"),
    ],
)
def test_an_expression_fails_as_on_the_server(text: str, message: str) -> None:
    if not message:
        with pytest.raises(NotEvaluatedError):
            value(text)
        return
    with pytest.raises(EvaluationError) as error:
        value(text, l=["a"], m={}, port="http", number=1)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self.i > 0 || true", True),
        ("true || self.i > 0", True),
        ("self.i > 0 && false", False),
        ("!(false && self.i > 0)", True),
        ("self.l.exists(x, x == 'b' || x.charAt(9) == '')", True),
        ("self.l.all(x, x.charAt(1) == '' && x != 'a')", False),
        ("self.i in []", False),
    ],
)
def test_a_decisive_operand_absorbs_errors(text: str, expected: bool) -> None:
    assert value(text, l=["a", "b"]) is expected


@pytest.mark.parametrize(
    "text",
    [
        *("self.nothing", "slef.i", "self.i == 'x'", "self.s < 1", "self.i + 1.5", "!self.i", "-self.s", "self.s[0]"),
        *(
            "1 +",
            "(1",
            "[1, 2",
            "'a",
            "1 2",
            "a.b.",
            "'\\q'",
            "if",
            "self.all(x, true)",
            "self.l.all(1, true)",
        ),
        *("has(self)", "has(self.l[0])", "self.l.map(x, x + 1)", "self.l.all(x, 1)", "[1, 'a']", "true ? 1 : 'a'"),
        *(
            "self.s.startsWith(1)",
            "size(1)",
            "9223372036854775808",
            "1e999",
            "self.s == null",
            "'a' in self",
            "'\\ud800'",
        ),
    ],
)
def test_an_expression_that_the_server_would_reject_is_invalid(text: str) -> None:
    with pytest.raises(InvalidRuleError):
        value(text)


@pytest.mark.parametrize(
    "text",
    [
        *("1u == 1u", "b'a' == b'a'", "{1: 'a'}[1] == 'a'", "Message{a: 1} == null", "[?self.i]", "{?'a': self.?i}"),
        *("self.`i` == 1", "self.l.all(i, x, true)", "'%d'.format([1])", "cel.bind(x, 1, x)", "has(self.?m.a)"),
        *("self.?m['a'] == 1", "timestamp(self.s).getHours('Europe/Paris') == 1"),
        *("size(self.data) > 1", ".self.i == 1", "duration(5) == duration('5s')", "google.x == 1"),
        *("[[]].map(__result__, 1)", "self.port.x == 1", "dyn(self.l).size() == dyn(1).foo()", "self.l.sort()"),
    ],
)
def test_an_expression_with_what_is_not_implemented_is_not_evaluated(text: str) -> None:
    with pytest.raises(NotEvaluatedError):
        value(text, i=1, s="", l=[], when="2026-01-01T00:00:00Z", data="", port=1)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("self.m.map(k, k) == ['a', 'b']", {"m": {"a": 1, "b": 2}}),  # the order of a map is random
        ("string(self.d) == '1e+06'", {"d": 1e6}),
        ("self.i == 1", {"i": 1.0}),  # the server sees a float where an integer is declared
        ("self.i == 1", {"i": True}),
        ("self.d == 1.0", {"d": 10**400}),
        ("self.d == 1.0", {"d": float("nan")}),
        ("[1] == self.port", {"port": 1}),
        ("self.s == ''", {"s": "\ud800"}),
        ("quantity(self.s) == quantity('1')", {"s": "1e0"}),
        ("quantity(self.s) == quantity('1')", {"s": "0.5n"}),
        ("double(self.s) > 0.0", {"s": "0x1p-2"}),
        ("duration(self.s) > duration('1s')", {"s": "1.0000000001s"}),
        ("self.time > duration('1s')", {"time": "1 day"}),
        ("self.many[0].i == 1", {"many": [None]}),
        ("self.s.matches(self.s)", {"s": "("}),
        ("isURL(self.s)", {"s": "https://example.com/%zz"}),
        ("timestamp(self.s) == timestamp('2026-01-01T00:00:00Z')", {"s": "2026-01-01t00:00:00z"}),
        ("self.when < timestamp('2026-01-01T00:00:00Z')", {"when": "2026-01-01 00:00:00"}),
        ("format.dns1123Label().validate(self.s).value() == ['wrong']", {"s": "A"}),
    ],
)  # fmt: skip
def test_a_value_of_which_the_servers_result_is_not_certain_is_not_evaluated(text: str, spec: dict[str, Any]) -> None:
    with pytest.raises(NotEvaluatedError):
        value(text, **spec)


def test_the_same_text_is_the_same_time() -> None:
    assert value("self.when == self.when && [self.when] == [self.when]", when="today") is True


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (
            "{'a': self.i, 'b': 2}.all(k, {'a': self.i, 'b': 2}[k] > 0) && {'a': 1} != {'a': self.i} && !has({'a': 1}.b)",
            {},
        ),
        ("{'b': 2, 'a': self.i} == self.m && self.m == {'a': self.i, 'b': 2}", {"m": {"a": 5, "b": 2}}),
        ("self.?m.a.orValue(7) == 7 && self.?m.?a == optional.none() && !self.?s.hasValue()", {}),
        (
            "self.?m.a == optional.of(1) && self.m[?'a'].value() == 1 && self.?m.a.or(optional.of(2)).value() == 1",
            {"m": {"a": 1}},
        ),
        ("self.l[?0].hasValue() && !self.l[?1].hasValue() && self.l[?9].orValue('x') == 'x'", {"l": ["a"]}),
        ("semver('1.2.3').compareTo(semver('1.2.3+b')) == 0 && semver('v1', true) == semver('1.0.0')", {}),
        ("self.when + duration('1h') > self.when && duration('1h') + self.when - self.when == duration('60m')", {}),
        ("timestamp(1767225600) == self.when && int(self.when) == 1767225600", {}),
        ("[timestamp('2026-01-02T00:00:00Z'), self.when].min() == self.when", {}),
        ("url('x://h?a=').getQuery() == {'a': ['']} && url('/a').getHost() == ''", {}),
        ("!format.date().validate('2026-01-01').hasValue() && format.date().validate('x').hasValue()", {}),
        ("'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'abc'.find('x') == ''", {}),
    ],
)
def test_an_expression_of_kubernetes_libraries_holds(text: str, spec: dict[str, Any]) -> None:
    assert value(text, **{"i": 5, "when": "2026-01-01T00:00:00Z", **spec}) is True


@pytest.mark.parametrize(
    "text",
    [
        *("self.?m.a.value() == 1", "ip('1.2.3') == ip('1.2.3.4')", "cidr('10.0.0.0/8').containsIP('x')"),
        *("url('a b'.replace(' ', '')) == url('/a')", "semver('1') == semver('1.0.0')", "{'a': 1}['b'] == 1"),
        *("timestamp('9999-12-31T23:59:59Z') + duration('1s') == self.when", "timestamp('x' + 'y') == self.when"),
        *(
            "timestamp(self.s + '1-01-01T00:00:00+01:00').getFullYear() == 1",
            "semver(self.digits + '.0.0').major() > 0",
        ),
        "semver('1.0.0-' + self.digits).isLessThan(semver('1.0.0'))",
    ],
)
def test_an_expression_of_kubernetes_libraries_fails(text: str) -> None:
    with pytest.raises(EvaluationError):
        value(text, m={}, when="2026-01-01T00:00:00Z", s="000", digits="1" * 5000)


def test_times_are_compared_whatever_their_zones() -> None:
    times = {"type": "object", "properties": {"a": SCHEMA["properties"]["when"], "b": SCHEMA["properties"]["when"]}}
    type_ = type_of_schema(times)
    program = compile_rule("self.a == self.b", {"self": type_})
    spec = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-01T01:00:00+01:00"}
    assert program.evaluate({"self": to_value(spec, type_)}, Budget(100)) is True
    spec["b"] = "2026-01-01 01:00:00+01:00"  # in a form that the server also reads
    with pytest.raises(NotEvaluatedError, match="type that is not implemented"):
        program.evaluate({"self": to_value(spec, type_)}, Budget(100))


@pytest.mark.parametrize(
    "text",
    [
        "self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, a + b + c + d != 'x'))))",
        "self.l" + ".map(x, x + x)" * 30 + ".size() == 1",
        "self.s" + ".replace('a', 'aaaaaaaaaa')" * 30 + " == ''",
        "[self.s" + ", self.s" * 50 + "].join(self.s).size() == 1",
        "self.s.matches('(a*)*(a*)*(a*)*b')",
    ],
)
def test_an_expensive_rule_is_given_up(text: str) -> None:
    with pytest.raises(NotEvaluatedError, match="too many steps"):
        value(text, l=["a" * 50] * 40, s="a" * 30_000)


@pytest.mark.parametrize(
    "text",
    ["(" * 500 + "1" + ")" * 500, "-" * 5 + "[" * 200, "1" + " + 1" * 2_000, "self" + ".s" * 2_000, "x" * 30_000],
)
def test_a_rule_that_is_nested_too_deeply_is_not_a_crash(text: str) -> None:
    with pytest.raises((NotEvaluatedError, InvalidRuleError)):
        value(text)


def test_a_long_chain_of_operands_is_evaluated() -> None:
    assert value(" && ".join(["self.i != 5"] * 900), i=1) is True
