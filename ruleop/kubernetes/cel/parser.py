"""Parses CEL expressions by precedence climbing, after the grammar of cel-go (parser/gen/CEL.g4).

Unlike there, `&&` and `||` keep all their operands in one node: a rule with a hundred of them is not a hundred levels
deep. Macros are recognized here, as on the server."""

from __future__ import annotations

import math
import re
from typing import Final, NoReturn, TypeAlias

from ruleop.errors import RuleopError
from ruleop.values import dataclass

# -- syntax -----------------------------------------------------------------------------------------------------------
#
# The syntax tree of a CEL expression, and the three ways in which one has no value.


class InvalidRuleError(RuleopError):
    """An expression that the API server would reject with its CRD: bad syntax, an unknown field, mismatched types."""


class NotEvaluatedError(RuleopError):
    """An expression, or a value in one, of which the server's result is not known for certain. The message is the
    reason."""


class EvaluationError(RuleopError):
    """An error of CEL itself, such as a missing key. The server rejects the object with it, unless `&&`, `||` or a
    macro absorbs it."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number, boolean or null."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class CelName:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, `has(operand.field)`, or `operand.?field`, which is optional."""

    operand: Node
    field: str
    tests: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class CelCall:
    """A function, a method with its `target`, or an operator by its symbol. `&&` and `||` have all their operands;
    `[?]` is an index whose value is optional."""

    name: str
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CelMacro:
    """`target.all(variable, arguments)` and the other comprehensions."""

    name: str
    target: Node
    variable: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[tuple[Node, Node], ...]


Node: TypeAlias = Literal | CelName | Select | CelCall | CelMacro | ListLiteral | MapLiteral


# -- parser ----------------------------------------------------------------------------------------------------------


RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"),
        *("namespace", "null", "package", "return", "true", "var", "void", "while"),
    }
)
_MACROS: Final = {"all": (2,), "exists": (2,), "exists_one": (2,), "existsOne": (2,), "map": (2, 3), "filter": (2,)}
_TWO_VARIABLES: Final = {"all": 3, "exists": 3, "existsOne": 3}
_LEVELS: Final = (frozenset({"<", "<=", ">=", ">", "==", "!=", "in"}), frozenset("+-"), frozenset("*/%"))
_MAX_DEPTH: Final = 40  # of brackets, each of which takes some ten frames of Python's stack
_MAX_LENGTH: Final = 20_000

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TOKEN: Final = re.compile(
    rf"""
    (?P<space> (?: [\t\ \r\n\f]+ | //[^\n]* )+ )
  | (?P<raw> [rR] (?: '''(?s:.*?)''' | \"\"\"(?s:.*?)\"\"\" | '[^'\n\r]*' | "[^"\n\r]*" ) )
  | (?P<string> '''(?: {_ESCAPE} | [^\\] )*?''' | \"\"\"(?: {_ESCAPE} | [^\\] )*?\"\"\"
              | '(?: {_ESCAPE} | [^\\'\n\r] )*' | "(?: {_ESCAPE} | [^\\"\n\r] )*" )
  | (?P<bytes> [bB][rR]?['"] )
  | (?P<double> [0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)? )
  | (?P<uint> (?: 0x[0-9a-fA-F]+ | [0-9]+ )[uU] )
  | (?P<int> 0x[0-9a-fA-F]+ | [0-9]+ )
  | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<quoted> `[^`]*` )
  | (?P<symbol> && | \|\| | [=!<>]= | [-+*/%<>!?:.,()\[\]{{}}] )
    """,
    re.VERBOSE,
)
_UNESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse(text: str) -> Node:
    """The syntax tree. Raises InvalidRuleError where the server would reject the syntax, and NotEvaluatedError for
    syntax that is not implemented."""
    if len(text) > _MAX_LENGTH:
        raise NotEvaluatedError(f"it has more than {_MAX_LENGTH} characters")
    parser = _Parser(_tokens(text))
    node = parser.expression()
    if parser.token.kind != "end":
        parser.fail()
    return node


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def _tokens(text: str) -> list[_Token]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidRuleError(f"syntax error at character {position + 1}: {text[position : position + 10]!r}")
        kind, position = str(match.lastgroup), match.end()
        if kind == "name" and match[0] in ("in", "true", "false", "null"):
            kind = "symbol" if match[0] == "in" else "constant"
        if kind in ("bytes", "uint", "quoted"):
            raise NotEvaluatedError(f"{match[0]} begins a literal or name of a type that is not implemented")
        if kind != "space":
            found.append(_Token(kind, match[0], match.start() + 1))
    return [*found, _Token("end", "", len(text) + 1)]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._position, self._depth = tokens, 0, 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._position]

    def fail(self) -> NoReturn:
        token = self.token
        if token.text == "{":
            raise NotEvaluatedError("messages in braces are not implemented")
        raise InvalidRuleError(f"syntax error at character {token.column}: unexpected {token.text or 'end'}")

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotEvaluatedError("it is nested too deeply")
        node = self._logical("||")
        if self._takes("?"):
            chosen = self._logical("||")
            self._expect(":")
            node = CelCall("?:", None, (node, chosen, self.expression()))
        self._depth -= 1
        return node

    def _logical(self, symbol: str) -> Node:
        operands = [self._operand(symbol)]
        while self._takes(symbol):
            operands.append(self._operand(symbol))
        return operands[0] if len(operands) == 1 else CelCall(symbol, None, tuple(operands))

    def _operand(self, symbol: str) -> Node:
        return self._logical("&&") if symbol == "||" else self._binary(0)

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while self.token.kind == "symbol" and self.token.text in _LEVELS[level]:
            symbol = self._next().text
            node = CelCall(symbol, None, (node, self._binary(level + 1)))
        return node

    def _unary(self) -> Node:
        symbol = self.token.text if self.token.kind == "symbol" else ""
        if symbol not in ("-", "!"):
            return self._member(self._primary())
        count = 0
        while self.token.kind == "symbol" and self.token.text == symbol:
            self._next()
            count += 1
        if symbol == "-" and count == 1 and self.token.kind in ("int", "double"):
            return self._member(_number(self._next(), sign="-"))
        node = self._member(self._primary())
        return CelCall(f"{symbol}_", None, (node,)) if count % 2 else node

    def _member(self, node: Node) -> Node:
        while True:
            if self._takes("."):
                optional = self._takes("?")
                name = self._name()
                called = not optional and self._takes("(")
                node = self._call(name, node) if called else Select(node, name, optional=optional)
            elif self._takes("["):
                symbol = "[?]" if self._takes("?") else "[]"
                node = CelCall(symbol, None, (node, self.expression()))
                self._expect("]")
            else:
                return node

    def _primary(self) -> Node:
        token = self._next()
        if token.kind in ("int", "double"):
            return _number(token)
        if token.kind in ("string", "raw"):
            return Literal(_text(token))
        if token.kind == "constant":
            return Literal({"true": True, "false": False, "null": None}[token.text])
        if token.kind == "name":
            if token.text in RESERVED:
                raise InvalidRuleError(f"{token.text} is a reserved word")
            return self._call(token.text, None) if self._takes("(") else CelName(token.text)
        if token.kind == "symbol" and token.text == "(":
            node = self.expression()
            self._expect(")")
            return node
        if token.kind == "symbol" and token.text == "[":
            return ListLiteral(self._arguments("]"))
        if token.kind == "symbol" and token.text == "{":
            return self._map()
        if token.text != ".":
            self._position -= 1
            self.fail()
        raise NotEvaluatedError("qualified names are not implemented")

    def _call(self, name: str, target: Node | None) -> Node:
        arguments = self._arguments(")")
        if name == "has" and target is None and len(arguments) == 1:
            selected = arguments[0]
            if not isinstance(selected, Select) or selected.tests:
                raise InvalidRuleError("the argument of has() must be a field, such as self.size")
            return Select(selected.operand, selected.field, tests=True)
        if target is not None and name in _MACROS and len(arguments) in _MACROS[name]:
            variable = arguments[0]
            if not isinstance(variable, CelName):
                raise InvalidRuleError(f"the first argument of {name}() must be a name")
            return CelMacro(name, target, variable.name, arguments[1:])
        if target is not None and len(arguments) == _TWO_VARIABLES.get(name):
            raise NotEvaluatedError(f"{name}() with two variables is not implemented")
        return CelCall(name, target, arguments)

    def _arguments(self, closing: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._takes(closing):
            if found:
                self._expect(",")
                if closing == "]" and self._takes("]"):  # a list may end with a comma
                    break
            if self.token.text == "?" and closing == "]":
                raise NotEvaluatedError("optional values are not implemented")
            found.append(self.expression())
        return tuple(found)

    def _map(self) -> MapLiteral:
        entries: list[tuple[Node, Node]] = []
        while not self._takes("}"):
            if entries:
                self._expect(",")
                if self._takes("}"):  # a map may end with a comma
                    break
            if self.token.text == "?":
                raise NotEvaluatedError("optional values are not implemented")
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
        return MapLiteral(tuple(entries))

    def _name(self) -> str:
        if self.token.kind != "name":
            self.fail()
        return self._next().text

    def _next(self) -> _Token:
        token = self.token
        if token.kind == "end":
            self.fail()
        self._position += 1
        return token

    def _takes(self, symbol: str) -> bool:
        if self.token.kind != "symbol" or self.token.text != symbol:
            return False
        self._position += 1
        return True

    def _expect(self, symbol: str) -> None:
        if not self._takes(symbol):
            self.fail()


def _number(token: _Token, sign: str = "") -> Literal:
    if token.kind == "double":
        number = float(sign + token.text)
        if math.isinf(number):
            raise InvalidRuleError(f"{token.text} does not fit in a double")
        return Literal(number)
    digits = token.text.removeprefix("0x")
    value = int(sign + digits, 16 if digits != token.text else 10) if len(digits) < 40 else 2**64
    if not -(2**63) <= value < 2**63:
        raise InvalidRuleError(f"{token.text} does not fit in int64")
    return Literal(value)


def _text(token: _Token) -> str:
    text = token.text
    if token.kind == "raw":
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ("'''", '"""') else 1
    inner = text[quotes:-quotes]
    return inner if token.kind == "raw" else re.sub(_ESCAPE, _unescaped, inner)


def _unescaped(match: re.Match[str]) -> str:
    letter, rest = match[0][1], match[0][2:]
    if not rest:
        return _UNESCAPED.get(letter, letter)
    code = int(rest, 16) if letter in "xXuU" else int(letter + rest, 8)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise InvalidRuleError(f"{match[0]} is not a character")
    return chr(code)
