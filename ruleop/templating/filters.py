"""The filters and tests that templates may use: Jinja's own, where they make sense for objects and cannot be made to eat the machine, and ours.

Every one goes through `guarded`: something absent is never taken for a value without a word, captured text is handed on as the string that it
amounts to, and what goes in and comes out is counted. Left out are Jinja's filters for HTML (`escape`, `safe`, `urlize`, ...), `attr` and `pprint`, which
show Python's objects, and `random`, which would render differently every time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jinja2.filters
import jinja2.tests
import orjson
import yaml

from ruleop.templating.budget import Budget, Exhausted, width
from ruleop.templating.quantity import Exact, in_unit, parse_quantity
from ruleop.templating.text import Dump, Text
from ruleop.templating.values import OMIT, Absent, Fault, View, plain, scalar_text

if TYPE_CHECKING:
    from ruleop.templating.environment import Environment

Filter = Callable[..., Any]

OTHER_NAMES = {  # what people type who come from Helm or Ansible, and what it is called here
    "toYaml": "to_yaml", "toJson": "to_json", "fromYaml": "from_yaml", "fromJson": "from_json", "toPrettyJson": "to_json",
    "to_nice_yaml": "to_yaml", "to_nice_json": "to_json", "toRawJson": "to_json",
    "b64enc": "b64encode", "b64dec": "b64decode", "sha256sum": "sha256", "hash": "sha256", "squote": "quote",
    "regexMatch": "regex_match", "regexReplaceAll": "regex_replace", "regexFindAll": "regex_findall", "regex_search": "regex_match",
    "mergeOverwrite": "combine", "merge": "combine", "mustMerge": "combine", "kebabcase": "dns_label", "trunc": "truncate", "mandatory": "required",
    "nindent": "indent", "trimSuffix": "regex_replace", "splitList": "split", "dict2items": "items", "ternary": "an inline if: {{ a if b else c }}",
    "quantity_to_int": "quantity",
}  # fmt: skip
REFUSED = {
    "escape": "it makes HTML", "e": "it makes HTML", "forceescape": "it makes HTML", "safe": "it is for HTML", "urlize": "it makes HTML",
    "xmlattr": "it makes HTML", "striptags": "it is for HTML", "pprint": "it shows Python; use to_yaml or to_json",
    "attr": "use a['b'], which takes any key", "random": "it would differ at every render; use random_password in a create-only child",
    "shuffle": "it would differ at every render",
}  # fmt: skip
TAKES_ABSENT = frozenset({"default", "d", "required"})
TAKES_TEXT = frozenset({"indent", "trim", "default", "d", "from_yaml", "from_json", "required"})


def guarded(name: str, function: Filter, budget: Budget, *, takes_environment: bool, environment: Environment) -> Filter:
    takes_absent, takes_text = name in TAKES_ABSENT, name in TAKES_TEXT

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(value)
        if kind is str:
            budget.text(len(value))
        elif isinstance(value, Absent):
            if not takes_absent:
                raise value.fault()
        elif kind is Text or kind is Dump:
            if not takes_text:
                value = value.as_text()
                budget.text(len(value))
        elif hasattr(value, "__len__"):
            budget.items(len(value))
        elif isinstance(value, Iterator):
            value = environment.passes(value)
        else:
            budget.spend(1)
        if args:
            args = tuple(map(_argument, args))
        if kwargs:
            kwargs = {key: _argument(item) for key, item in kwargs.items()}
        try:
            result = function(environment, value, *args, **kwargs) if takes_environment else function(value, *args, **kwargs)
        except Fault:
            raise
        except RecursionError:
            raise Exhausted(f"{name}: a value is nested too deeply") from None
        except TypeError as error:
            raise Fault(f"{name}: {_without_values(error)}") from None
        except (ArithmeticError, LookupError, ValueError, jinja2.TemplateError) as error:
            raise Fault(f"{name} cannot use this value ({type(error).__name__})") from None
        if type(result) is str:
            budget.text(len(result))
        return result

    return call


def _argument(value: Any) -> Any:
    if isinstance(value, Absent) and value is not OMIT:
        raise value.fault()
    return value.as_text() if isinstance(value, (Text, Dump)) else value


def _without_values(error: TypeError) -> str:
    """Python's own words about a wrong argument, which name types and parameters but no values."""
    return re.sub(r"^_?(?:do_|filter_)?\w+\(\) ", "it ", str(error))


# -- absent and present ------------------------------------------------------------------------------------------------------------------


def default(value: Any, default_value: Any = "", boolean: bool = False) -> Any:
    if isinstance(value, Absent) or (boolean and not value):
        return default_value
    return value


def required(value: Any, message: str = "a value is required here") -> Any:
    if isinstance(value, Absent):
        fault = value.fault()
        if fault.kind == "later":
            raise fault
        raise Fault(str(message))
    if value is None or (isinstance(value, (str, Text)) and not value):
        raise Fault(str(message))
    return value


# -- text --------------------------------------------------------------------------------------------------------------------------------


def string(value: Any) -> str:
    return scalar_text(value)


def indent(value: Any, width_: Any = 4, first: bool = False, blank: bool = False) -> Any:
    by = width_ if isinstance(width_, str) else " " * width(width_, "an indentation")
    width(len(by), "an indentation")
    wish = (by, bool(first), bool(blank))
    if isinstance(value, Text):
        return Text(value.parts, wish)
    if isinstance(value, Dump):
        return value.indented(wish)
    from ruleop.templating.text import indent_text

    return indent_text(scalar_text(value), *wish)


def trim(value: Any, chars: str | None = None) -> Any:
    if isinstance(value, Text):

        def strip(part: str, is_first: bool, is_last: bool) -> str:
            part = part.lstrip(chars) if is_first else part
            return part.rstrip(chars) if is_last else part

        return value.map_edges(strip)
    return scalar_text(value).strip(chars)


def join(environment: Environment, value: Iterable[Any], d: str = "", attribute: Any = None) -> str:
    items = list(value) if attribute is None else [item for item in _attributes(environment, value, attribute)]
    texts = [scalar_text(item) for item in items]
    environment.budget.text(sum(map(len, texts)) + len(texts) * len(d))
    return scalar_text(d).join(texts)


def replace(environment: Environment, value: Any, old: str, new: str, count: int | None = None) -> str:
    text, old, new = scalar_text(value), scalar_text(old), scalar_text(new)
    times = text.count(old) if count is None else min(text.count(old), count)
    environment.budget.text(len(text) + times * max(0, len(new) - len(old)))
    return text.replace(old, new, -1 if count is None else count)


def center(value: Any, width_: int = 80) -> str:
    return scalar_text(value).center(width(width_, "a width"))


def format_text(value: Any, *args: Any, **kwargs: Any) -> str:
    """printf-style, with widths and precisions bounded."""
    pattern = scalar_text(value)
    for number in re.findall(r"[0-9]+", pattern):
        width(number[:6], "a width or precision")
    if re.search(r"%[^a-zA-Z%]*\*", pattern):
        raise Fault("format: a width given by * is not allowed")
    shown = [item if isinstance(item, (int, float)) and not isinstance(item, bool) else scalar_text(item) for item in args]
    named = {key: item if isinstance(item, (int, float)) and not isinstance(item, bool) else scalar_text(item) for key, item in kwargs.items()}
    return pattern % (named or tuple(shown))


def wordwrap(environment: Environment, value: Any, width_: int = 79, *args: Any) -> str:
    text = scalar_text(value)
    if len(text) > 65536:
        raise Exhausted("wordwrap: text of more than 65,536 characters")
    return str(jinja2.filters.do_wordwrap(environment, text, width_, *args))


def split(value: Any, separator: str | None = None, maxsplit: int = -1) -> list[str]:
    return scalar_text(value).split(separator, maxsplit)


def quote(value: Any) -> str:
    return scalar_text(value)


def shell_quote(value: Any) -> str:
    text = scalar_text(value)
    if "\0" in text:
        raise Fault("shell_quote: no shell can take a NUL character")
    return shlex.quote(text)


# -- lists -------------------------------------------------------------------------------------------------------------------------------


def _attributes(environment: Environment, values: Iterable[Any], attribute: Any) -> Iterator[Any]:
    """The attribute of each item that has it."""
    for item in values:
        found = environment.reach(item, attribute)
        if not isinstance(found, Absent):
            yield found


def map_(environment: Environment, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    if "attribute" in kwargs:
        attribute = kwargs.pop("attribute")
        if "default" in kwargs:
            given = kwargs.pop("default")
            found = (environment.reach(item, attribute) for item in value)
            return [given if isinstance(item, Absent) else item for item in found]
        if kwargs:
            raise Fault(f"map: no such argument: {next(iter(kwargs))}")
        return list(_attributes(environment, value, attribute))
    if not args:
        raise Fault("map needs attribute='...' or the name of a filter")
    name, *rest = args
    filter_ = environment.filters.get(str(name))
    if filter_ is None:
        raise Fault(f"map: there is no filter {name!r}")
    return [filter_(item, *rest, **kwargs) for item in value]


def _tested(environment: Environment, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], bool]:
    if not args:
        return bool
    name, *rest = args
    test = environment.tests.get(str(name))
    if test is None:
        raise Fault(f"there is no test {name!r}")
    return lambda item: bool(test(item, *rest, **kwargs))


def _looks_at_absence(args: tuple[Any, ...]) -> bool:
    return bool(args) and args[0] in {"defined", "undefined"}


def select(environment: Environment, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    test = _tested(environment, args, kwargs)
    return [item for item in value if test(item)]


def reject(environment: Environment, value: Iterable[Any], *args: Any, **kwargs: Any) -> list[Any]:
    test = _tested(environment, args, kwargs)
    return [item for item in value if not test(item)]


def selectattr(environment: Environment, value: Iterable[Any], attribute: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The items whose attribute passes; one without the attribute does not."""
    test, looks = _tested(environment, args, kwargs), _looks_at_absence(args)
    pairs = ((item, environment.reach(item, attribute)) for item in value)
    return [item for item, found in pairs if (looks or not isinstance(found, Absent)) and test(found)]


def rejectattr(environment: Environment, value: Iterable[Any], attribute: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """The items but those whose attribute passes; one without the attribute stays."""
    test, looks = _tested(environment, args, kwargs), _looks_at_absence(args)
    pairs = ((item, environment.reach(item, attribute)) for item in value)
    return [item for item, found in pairs if (isinstance(found, Absent) and not looks) or not test(found)]


def _order(environment: Environment, attribute: Any, case_sensitive: bool) -> Callable[[Any], Any]:
    names = str(attribute).split(",") if isinstance(attribute, str) else [attribute]

    def key(item: Any) -> Any:
        found = [item] if attribute is None else [environment.reach(item, name) for name in names]
        shown = [value.lower() if isinstance(value, str) and not case_sensitive else value for value in map(_argument, found)]
        return shown[0] if len(shown) == 1 else tuple(shown)

    return key


def _having(environment: Environment, value: Iterable[Any], attribute: Any) -> list[Any]:
    if attribute is None:
        return list(value)
    names = str(attribute).split(",") if isinstance(attribute, str) else [attribute]
    return [item for item in value if not any(isinstance(environment.reach(item, name), Absent) for name in names)]


def sort(environment: Environment, value: Iterable[Any], reverse: bool = False, case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    return sorted(_having(environment, value, attribute), key=_order(environment, attribute, case_sensitive), reverse=bool(reverse))


def unique(environment: Environment, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> list[Any]:
    order, seen, result = _order(environment, attribute, case_sensitive), set(), []
    for item in _having(environment, value, attribute):
        key = orjson.dumps(plain(order(item)), option=orjson.OPT_SORT_KEYS)
        if key not in seen:
            seen.add(key)
            result.append(item)
    return result


def min_(environment: Environment, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
    items = _having(environment, value, attribute)
    return min(items, key=_order(environment, attribute, case_sensitive)) if items else _nothing("min")


def max_(environment: Environment, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
    items = _having(environment, value, attribute)
    return max(items, key=_order(environment, attribute, case_sensitive)) if items else _nothing("max")


def sum_(environment: Environment, value: Iterable[Any], attribute: Any = None, start: Any = 0) -> Any:
    items = list(value) if attribute is None else list(_attributes(environment, value, attribute))
    return sum(map(_argument, items), start)


def list_(value: Iterable[Any]) -> list[Any]:
    return list(value)


def first(value: Any) -> Any:
    return next(iter(value), _nothing("first"))


def last(value: Any) -> Any:
    items = list(value)
    return items[-1] if items else _nothing("last")


def _nothing(name: str) -> Absent:
    from ruleop.templating.values import Unknown

    return Unknown(f"{name}: the list is empty; use `default(...)` if it may be", name=name)


def groupby(environment: Environment, value: Iterable[Any], attribute: Any, default: Any = None, case_sensitive: bool = False) -> list[Any]:  # noqa: ARG001
    order = _order(environment, attribute, case_sensitive)
    groups: dict[Any, list[Any]] = {}
    for item in sorted(_having(environment, value, attribute), key=order):
        groups.setdefault(order(item), []).append(item)
    return [{"grouper": environment.reach(items[0], attribute), "list": items} for items in groups.values()]


def items(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    raise Fault("items takes a mapping")


def dictsort(value: Mapping[str, Any], case_sensitive: bool = False, by: str = "key", reverse: bool = False) -> list[tuple[str, Any]]:
    position = {"key": 0, "value": 1}.get(by)
    if position is None:
        raise Fault("dictsort: by is 'key' or 'value'")

    def order(entry: tuple[str, Any]) -> Any:
        found = entry[position]
        return found.lower() if isinstance(found, str) and not case_sensitive else found

    return sorted(items(value), key=order, reverse=bool(reverse))


def batch(environment: Environment, value: Iterable[Any], linecount: int, fill_with: Any = None) -> list[list[Any]]:
    environment.budget.items(int(linecount))
    return list(jinja2.filters.do_batch(value, int(linecount), fill_with))  # type: ignore[arg-type]


def slice_(environment: Environment, value: Iterable[Any], slices: int, fill_with: Any = None) -> list[list[Any]]:
    environment.budget.items(int(slices))
    return list(jinja2.filters.sync_do_slice(value, int(slices), fill_with))  # type: ignore[arg-type]


def combine(value: Any, *others: Any) -> dict[str, Any]:
    """A deep merge of mappings; of two values the later counts."""
    result = plain(value)
    for other in others:
        result = _combined(result, plain(other))
    if not isinstance(result, dict):
        raise Fault("combine takes mappings")
    return result


def _combined(one: Any, two: Any) -> dict[str, Any]:
    if not isinstance(one, dict) or not isinstance(two, dict):
        raise Fault("combine takes mappings")
    result = dict(one)
    for key, value in two.items():
        mine = result.get(key)
        result[key] = _combined(mine, value) if isinstance(mine, dict) and isinstance(value, dict) else value
    return result


# -- other forms -------------------------------------------------------------------------------------------------------------------------


class _YamlDumper(yaml.CSafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _yaml_string(dumper: Any, text: str) -> Any:
    """Blocks for text of several lines, quotes for what kubectl would read as something else than text."""
    from ruleop.templating.yaml_reader import NotJson, resolve_scalar

    try:
        quoted = not isinstance(resolve_scalar(text), str)
    except NotJson:
        quoted = True
    style = "|" if "\n" in text else '"' if quoted else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_YamlDumper.add_representer(str, _yaml_string)


def yaml_text(data: Any) -> str:
    return str(yaml.dump(data, Dumper=_YamlDumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=10**6)).removesuffix("...\n").rstrip("\n")


def json_text(data: Any, pretty: bool = False) -> str:
    return json_bytes(data, pretty=pretty).decode()


def json_bytes(data: Any, *, pretty: bool = False, sort: bool = False) -> bytes:
    option = (orjson.OPT_INDENT_2 if pretty else 0) | (orjson.OPT_SORT_KEYS if sort else 0)
    try:
        return orjson.dumps(data, option=option)
    except TypeError as error:  # orjson's only error: nesting, an integer beyond 64 bits, a lone surrogate
        raise Fault(f"this value has no JSON form ({error})") from None


def to_yaml(environment: Environment, value: Any) -> Dump:
    def render(data: Any) -> str:
        text = yaml_text(data)
        environment.budget.text(len(text))
        return text

    return Dump(plain(value), render)


def to_json(environment: Environment, value: Any, indent: int | None = None) -> Dump:
    def render(data: Any) -> str:
        text = json_text(data, pretty=bool(indent))
        environment.budget.text(len(text))
        return text

    return Dump(plain(value), render)


def from_yaml(environment: Environment, value: Any) -> Any:
    return environment.read_captured(value, "from_yaml")


def from_json(environment: Environment, value: Any) -> Any:
    if isinstance(value, Text):
        return environment.read_captured(value, "from_json")
    try:
        return orjson.loads(scalar_text(value).encode())
    except (ValueError, UnicodeError):
        raise Fault("from_json: not JSON") from None


def _bytes(value: Any) -> bytes:
    return scalar_text(value).encode("utf-8", "surrogatepass")


def b64encode(value: Any) -> str:
    return base64.b64encode(_bytes(value)).decode()


def b64decode(value: Any) -> str:
    try:
        return base64.b64decode(_bytes(value), validate=True).decode()
    except (binascii.Error, ValueError):
        raise Fault("b64decode: not base64 of UTF-8 text") from None


_SERVER_SET = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink", "ownerReferences"})
_OURS = "ruleop.dev/"


def sha256(value: Any, length: int = 64) -> str:
    data = plain(value)
    if isinstance(data, str):
        return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[: int(length)]
    return hashlib.sha256(json_bytes(_stable(data), sort=True)).hexdigest()[: int(length)]


def _stable(data: Any) -> Any:
    """An object without what others write into it: its status, and metadata that the server or ruleop set."""
    if not (isinstance(data, dict) and "apiVersion" in data and "kind" in data and isinstance(data.get("metadata"), dict)):
        return data
    metadata: dict[str, Any] = {key: value for key, value in data["metadata"].items() if key not in _SERVER_SET}
    for marks in ("labels", "annotations"):
        if isinstance(metadata.get(marks), dict):
            metadata[marks] = {key: value for key, value in metadata[marks].items() if not key.startswith(_OURS)}
            if not metadata[marks]:
                del metadata[marks]
    return {**{key: value for key, value in data.items() if key != "status"}, "metadata": metadata}


_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?\Z")
_PART = re.compile(r"[a-z0-9]+\Z")
_HASHED = re.compile(r".*-h[a-z2-7]{13}\Z", re.DOTALL)


def dns_label(value: Any, *others: Any) -> str:
    """The parts joined by `-`, as a valid name of at most 63 characters. Where that would lose something (a capital, a dot, too many
    characters, or which dash parts what) a hash of the parts is added, so that two inputs of as many parts never get one name."""
    parts = [scalar_text(part) for part in (value, *others)]
    joined = "-".join(parts)
    exact = len(joined) <= 63 and _LABEL.match(parts[0]) and all(map(_PART.match, parts[1:])) and not _HASHED.match(joined)
    if exact:
        return joined
    digest = hashlib.sha256(json_bytes([part.encode("utf-8", "surrogatepass").hex() for part in parts])).digest()
    tail = "h" + base64.b32encode(digest).decode().lower()[:13]
    head = re.sub(r"[^a-z0-9]+", "-", joined[:256].lower()).strip("-")[: 63 - len(tail) - 1].strip("-")
    return f"{head}-{tail}" if head else tail


def quantity(value: Any, unit: str | None = None) -> Exact | int:
    number = parse_quantity(value)
    return number if unit is None else in_unit(number, unit)


def condition(value: Any, type_: str) -> str:
    """The status of an object's condition; Unknown where it has no such condition."""
    data = plain(value)
    if not isinstance(data, Mapping):
        raise Fault("condition takes an object")
    status = data.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for entry in conditions if isinstance(conditions, list) else ():
        if isinstance(entry, Mapping) and entry.get("type") == type_:
            return str(entry.get("status", "Unknown"))
    return "Unknown"


# -- regular expressions: RE2, whose time is linear in the text whatever the pattern -----------------------------------------------------


def _pattern(pattern: Any) -> Any:
    import re2

    text = scalar_text(pattern)
    if len(text) > 4096:
        raise Exhausted("a regular expression of more than 4,096 characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(text, options)
    except re2.error:
        raise Fault("not a regular expression of RE2 (which has no lookaround and no backreferences)") from None


def regex_match(value: Any, pattern: str) -> bool:
    """Whether the pattern is found anywhere; anchor it with ^ and $."""
    return _pattern(pattern).search(scalar_text(value)) is not None


def regex_replace(environment: Environment, value: Any, pattern: str, replacement: str) -> str:
    compiled, text = _pattern(pattern), scalar_text(value)
    new = scalar_text(replacement)
    if len(new) > 64:
        environment.budget.text(len(text) + sum(len(new) for _ in compiled.finditer(text)))
    try:
        return str(compiled.sub(new, text))
    except Exception:  # noqa: BLE001 - RE2's wrapper raises its own and Python's errors for a bad \1 in the replacement
        raise Fault("regex_replace: the replacement names a group that the pattern does not have") from None


def regex_findall(value: Any, pattern: str) -> list[Any]:
    return [list(found) if isinstance(found, tuple) else found for found in _pattern(pattern).findall(scalar_text(value))]


OURS: dict[str, Filter] = {
    "default": default, "d": default, "required": required, "string": string, "indent": indent, "trim": trim, "center": center,
    "format": format_text, "split": split, "list": list_, "quote": quote, "shell_quote": shell_quote, "first": first, "last": last, "items": items,
    "dictsort": dictsort, "combine": combine, "b64encode": b64encode, "b64decode": b64decode, "sha256": sha256, "dns_label": dns_label,
    "quantity": quantity, "condition": condition, "regex_match": regex_match, "regex_findall": regex_findall,
}  # fmt: skip
WITH_ENVIRONMENT: dict[str, Filter] = {
    "join": join, "replace": replace, "wordwrap": wordwrap, "map": map_, "select": select, "reject": reject, "selectattr": selectattr,
    "rejectattr": rejectattr, "sort": sort, "unique": unique, "min": min_, "max": max_, "sum": sum_, "groupby": groupby, "batch": batch,
    "slice": slice_, "to_yaml": to_yaml, "to_json": to_json, "tojson": to_json, "from_yaml": from_yaml, "from_json": from_json,
    "regex_replace": regex_replace,
}  # fmt: skip
JINJAS = (
    "abs", "capitalize", "count", "filesizeformat", "float", "int", "length", "lower", "reverse", "round", "title", "truncate", "upper",
    "urlencode", "wordcount",
)  # fmt: skip


def build_filters(environment: Environment) -> dict[str, Filter]:
    table: dict[str, Filter] = {}
    for name in JINJAS:
        function = jinja2.filters.FILTERS[name]
        takes = getattr(function, "jinja_pass_arg", None) is not None
        table[name] = guarded(name, function, environment.budget, takes_environment=takes, environment=environment)
    for functions, takes in ((OURS, False), (WITH_ENVIRONMENT, True)):
        for name, function in functions.items():
            table[name] = guarded(name, function, environment.budget, takes_environment=takes, environment=environment)
    return table


TESTS = (
    "odd", "even", "divisibleby", "defined", "undefined", "filter", "test", "none", "boolean", "false", "true", "integer", "float", "lower", "upper",
    "string", "mapping", "number", "sequence", "iterable", "sameas", "in",
    "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", "<", "lt", "lessthan", ">=", "ge", "<=", "le",
)  # fmt: skip


def build_tests(environment: Environment) -> dict[str, Callable[..., bool]]:
    def tested(name: str) -> Callable[..., bool]:
        function = jinja2.tests.TESTS[name]
        takes_environment = getattr(function, "jinja_pass_arg", None) is not None

        def call(value: Any, *args: Any) -> bool:
            environment.budget.spend(1)
            if isinstance(value, Absent):
                raise value.fault()
            if isinstance(value, (Text, Dump)):
                value = value.as_text()
            args = tuple(map(_argument, args))
            return bool(function(environment, value, *args) if takes_environment else function(value, *args))

        return call

    table = {name: tested(name) for name in TESTS}
    table["defined"] = lambda value: not isinstance(value, Absent)
    table["undefined"] = lambda value: isinstance(value, Absent)
    table["sequence"] = lambda value: isinstance(_present(value), (list, tuple, str)) or (isinstance(value, View) and isinstance(value.data, list))
    return table


def _present(value: Any) -> Any:
    return _argument(value)
