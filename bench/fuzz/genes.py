"""Genes of candidates: what is mutated and crossed. A gene is plain JSON; `case_of` writes it as a case."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from bench.fuzz.case import CHANGES, Case
from bench.fuzz.grammar import Grammar, Node, Scope, Writer, lines_of, nodes, within

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Gene: TypeAlias = dict[str, Any]
Shape: TypeAlias = list[Any]  # [expression of n and m, n, m]

_TEXTS: Final = lines_of(r"""
    'a' * n
    'a' * n
    'a' * n + 'b'
    'a' * n + 'b' + 'a' * 9
    ('a' * n)[:2499]
    ('a' * n)[:1190] + 'b' + 'a' * 9
    '1' * n
    '%' + ('9' * n)[:9] + 'd'
    'ab ' * n
    '\n' * n
    'a\n' * n
    ' ' * n
    'a,' * n
    '- \n' * n
    '- a\n' * n
    '[' + '[],' * n + ']'
    '[' + '"",' * n + '""]'
    '[' * m + ']' * m
    '\u00e9' * n
    '\U0001f600' * n
    '{' * n
    '%s' * n
    '\\1' * n
    '\\g<0>' * n
    'a.' * n
    'A1-_' * n
    '\'' * n
    '"' * n
    '\\' * n
    '/' * n
    '\t' * n
    '{}' * n
    'k: v\n' * n
    'name' + 'a' * n
    '\r' * n
    '\x7f' * n
""")
_WORDS: Final = lines_of(r"""
    'a'
    'name'
    ','
    '\n'
    ''
    ' '
    'name5'
    'a' * m
    '\\1' * m
    '\\0' * m
    'b' * m
    '%99s'
    'a' * m + 'b'
    '1e9'
    '999'
    'name' + 'a' * m
    'x1'
    '1Gi'
""")
_PATTERNS: Final = lines_of(r"""
    'a'
    ''
    '.'
    '.*'
    'a*'
    '(a|b)*'
    '(a)' * m
    '(' * m + 'a' + ')' * m
    'a?' * m
    '(a?){' + str(m) + '}'
    '((a{1,30}){1,30}){1,9}'
    '[^b]*b'
    'a|' * m
    '(?i)' + 'k' * m
    '.{' + str(m) + '}'
    '\\pL{1,' + str(m) + '}'
    '(.*)(.*)(.*)(.*)b'
    '^(a+)+$'
    '(x|' * m + 'a' + ')' * m
    '\\w{' + str(m) + '}\\d'
""")
_LISTS: Final = lines_of(r"""
    ['a'] * n
    [''] * n
    ['a' + str(i) for i in range(n)]
    ['name' + str(i) for i in range(n)]
    ['a' * m] * n
    ['a' * m + str(i) for i in range(n)]
    ['(a{' + str(i % 900 + 1) + '}){2}' for i in range(n)]
    ['- a\n' * m for i in range(n)]
    [str(i) + 'Gi' for i in range(n)]
    ['.{' + str(i % 999 + 1) + '}' for i in range(n)]
""")
_MIXED: Final = lines_of(r"""
    [i for i in range(n)]
    [[] for i in range(n)]
    [['a' * m] for i in range(n)]
    [{'name': 'a'} for i in range(n)]
    [{} for i in range(n)]
    [[1] * (i % m + 1) for i in range(n)]
    [1.5 * i for i in range(n)]
    [None] * n
""")
_YAML: Final = lines_of(r"""
    ''.join(['k' + str(i) + ': v\n' for i in range(n)])
    ''.join(['k' + str(i) + ': \n' for i in range(n)])
    '{' + ','.join(['"k' + str(i) + '":1' for i in range(n)]) + '}'
    'a: ' + '[' * m + ']' * m
    'a: |\n' + '  a\n' * n
    'a: "' + 'a' * n + '"'
    'a: ' + '[' + 'a,' * n + ']'
    'a:\n' + '- a\n' * n
    '{' * m + '}' * m
    '# a\n' * n + 'a: b'
""")
_JSON: Final = lines_of(r"""
    '[' + ','.join(['[]'] * n) + ']'
    '[' + ','.join(['""'] * n) + ']'
    '[' + ','.join(['1'] * n) + ']'
    '[' * m + ']' * m
    '[' + ','.join(['{"name":"a"}'] * n) + ']'
    '["' + 'a' * n + '"]'
    '[' + ','.join(['"a"'] * n) + ']'
""")
_ENTRIES: Final = lines_of(r"""
    [{'name': 'name' + str(i), 'value': 'v'} for i in range(n)]
    [{'name': 'a' * m + str(i), 'value': 'v'} for i in range(n)]
    [{'name': 'same', 'value': str(i)} for i in range(n)]
    [{'name': 'n' + str(i), 'value': 'v' * m} for i in range(n)]
    [{'name': 'n' + str(i), 'value': {'a': [i]}} for i in range(n)]
    [{'name': 'n' + str(i), 'value': ['v'] * m} for i in range(n)]
    [{'name': 'n' + str(i), 'containerPort': i, 'port': i, 'value': 'v'} for i in range(n)]
    [{'value': 'v'} for i in range(n)]
    [{'name': i, 'value': i} for i in range(n)]
    [{'name': 'N_' + str(i) * m, 'value': 'v'} for i in range(n)]
""")
_TABLES: Final = lines_of(r"""
    {'name' + str(i): 'v' for i in range(n)}
    {'a' * n: 'v'}
    {'a' * m + str(i): '' for i in range(n)}
    {'name' + str(i): {'a': 'v'} for i in range(n)}
    {str(i): 'v' for i in range(n)}
    {'missin' + str(i): i for i in range(n)}
    {'a' * n + 'b': 'v', 'b': 'v'}
    {'k' + str(i): ['v'] * m for i in range(n)}
    {'k' + str(i): 'v' * m for i in range(n)}
""")
_DEEP: Final = lines_of(r"""
    tree(n)
    {'a': nested(n, m)}
    {'a' + str(i): tree(m) for i in range(n)}
    tree(m, 'a' * n)
    {'a': [tree(m)] * n}
    {'a' + str(i): tree(99, 'b' * m) for i in range(n)}
    {'a' * m + str(i): tree(n) for i in range(m)}
    {'a': {'b' + str(i): tree(m) for i in range(n)}, 'c': [tree(m) for i in range(n)]}
    {'a' + str(i): {'b': [{'name': 'c', 'value': tree(m)}]} for i in range(n)}
""")
_NESTED: Final = lines_of(r"""
    [['a'] * m for i in range(n)]
    nested(n, m)
    [nested(m) for i in range(n)]
    [[str(i)] for i in range(n)]
    [[[], []] for i in range(n)]
    [[i, 'a' * m] for i in range(n)]
""")
SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "text": _TEXTS,
    "word": _WORDS,
    "pattern": _PATTERNS,
    "many": _LISTS,
    "mixed": _MIXED,
    "yaml": _YAML,
    "json": _JSON,
    "entries": _ENTRIES,
    "table": _TABLES,
    "deep": _DEEP,
    "nested": _NESTED,
    "number": ("n",),
    "flag": ("True", "False"),
}
STATUSES: Final = lines_of(r"""
    {}
    {}
    {}
    {'conditions': [{'type': 'T' + str(i), 'status': 'True'} for i in range(n)]}
    {'conditions': [{'type': 'Ready', 'status': 'False', 'message': 'a' * m}] * n}
    {'conditions': [{'type': 'C' + str(i), 'status': str(i), 'reason': 'a' * m} for i in range(n)]}
    {'conditions': [{'type': ['a'], 'status': {}}] * n}
    {'conditions': [[]] * n}
    {'conditions': 'a' * n}
    {'s' + str(i): ['a'] * m for i in range(n)}
    {'s0': tree(n), 's1': nested(n)}
    {'s0': {'a' + str(i): tree(m) for i in range(n)}}
    {'s0': [{'name': 'n' + str(i)} for i in range(n)]}
""")
SEEN: Final = lines_of(r"""
    [{'a': 'b'} for i in range(n)]
    [{'a': 'b' * m} for i in range(n)]
    [{'a': ['b'] * m} for i in range(n)]
    [{'a' + str(i): tree(m)} for i in range(n)]
    [{'k' + str(i): 'v' for i in range(n)}]
    [{'items': [{'name': 'n' + str(i), 'value': 'v'} for i in range(n)]}]
    [{'items': nested(m)} for i in range(n)]
    [{}] * n
""")
ANNOTATIONS: Final = lines_of(r"""
    {}
    {}
    {}
    {'note': 'a' * n}
    {'a' + str(i): 'v' for i in range(n)}
    {'ruleop.dev/reconcile-period': '1' * n}
    {'ruleop.dev/paused': 'true'}
    {'note': '\n' * n}
""")
WHOLE: Final = ("deep", "nested", "table", "many", "entries", "mixed")
LARGEST: Final = 1_500_000
_EXPRESSION: Final = re.compile(r"(?<![\\'])\b[nm]\b")


class Genetics:
    """Makes and changes genes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.grammar = chance, Grammar(chance)

    # -- random ones ---------------------------------------------------------------------------------------------------

    def random(self) -> Gene:
        chance = self.chance
        seen = [
            {"one": chance.random() < 0.3, "objects": self.shape(SEEN)}
            for _ in range(_few(chance, 1) if chance.random() < 0.25 else 0)
        ]
        lets = [self._node(chance.choice("TLOM"), _seen_ids(seen), 2) for _ in range(_few(chance, 0.5))]
        scope: Scope = [*_seen_ids(seen), *([f"l{index}", node[0]] for index, node in enumerate(lets))]
        children: list[Gene] = []
        for _ in range(1 + _few(chance, 0.5)):
            children.append(self.child([*scope, *_ids(children)]))
        whole = [*scope, *_ids(children)]
        finalize: list[Gene] = []
        for _ in range(1 + _few(chance, 0.3) if chance.random() < 0.12 else 0):
            finalize.append(self.child([*scope, *_ids(finalize, "f")]))
        return {
            "spec": {name: self.shape(shapes) for name, shapes in SHAPES.items()},
            "annotations": self.shape(ANNOTATIONS),
            "was": self.shape(STATUSES),
            "seen": seen,
            "change": chance.choice(["none", *CHANGES]),
            "others": chance.choice(["none", "none", *CHANGES]),
            "shown": chance.random() < 0.15,
            "age": 0,
            "let": lets,
            "children": children,
            "finalize": finalize,
            "part": self._node("S", [], 1),
            "status": [self._node("D", whole, 2) for _ in range(_few(chance, 0.2))],
            "conditions": [self._nodes("BTT", whole, 3) for _ in range(_few(chance, 0.2))],
            "validate": [self._nodes("BT", scope, 2) for _ in range(_few(chance, 0.1))],
        }

    def child(self, scope: Scope) -> Gene:
        chance = self.chance
        each = self._node(chance.choice("LLOM"), scope, 2) if chance.random() < 0.35 else None
        inner = scope
        if each is not None:
            inner = [*scope, ["item", {"L": "T", "O": "I", "M": "I"}[each[0]]], ["index", "N"]]
        early = [pair for pair in inner if pair[0][0] not in "cf"]  # `when` sees no children
        found: Gene = {
            "each": each,
            "when": self._node("B", early, 2) if chance.random() < 0.15 else None,
            "waitFor": self._node("B", inner, 2) if chance.random() < 0.1 else None,
            "readyWhen": self._node("B", early, 2) if chance.random() < 0.1 else None,
            "strategy": chance.choice(["", "", "", "", "", "server-side", "create-only"]),
            "name": chance.choice(["index", "index", "index", "same", "item"]),
            "body": None,
            "entries": [],
        }
        how = chance.random()
        if how < 0.08:  # as they are, values are the largest that fit
            found["entries"] = [[None, ["D", f"spec.{chance.choice(WHOLE)}", inner, []]]]
        elif how < 0.65:
            found["body"] = self._node("K", inner, chance.randint(1, 3))
        else:
            found["entries"] = [self._entry(inner) for _ in range(1 + _few(chance, 2))]
        return found

    def _entry(self, scope: Scope) -> list[Node | None]:
        key = self._node("T", scope, 2) if self.chance.random() < 0.15 else None
        return [key, self._node(self.chance.choice("DDTLM"), scope, self.chance.randint(1, 3))]

    def _node(self, type_: str, scope: Scope, depth: int) -> Node:
        return self.grammar.node(type_, scope, depth)

    def _nodes(self, types: str, scope: Scope, depth: int) -> list[Node]:
        return [self._node(each, scope, depth) for each in types]

    def shape(self, shapes: tuple[str, ...]) -> Shape:
        return [self.chance.choice(shapes), self._size(60), self._size(10)]

    def _size(self, typical: int) -> int:
        return max(1, int(typical * 10 ** self.chance.uniform(-1.5, 1.5)))

    # -- changed ones --------------------------------------------------------------------------------------------------

    def mutated(self, gene: Gene, other: Gene | None) -> Gene:
        """The gene with one to three changes; with nodes of the other one."""
        found: Gene = {**copy.deepcopy(gene), "age": gene["age"] + 1}
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            change: Callable[[Gene, Gene | None], None] = self.chance.choice(
                [self._node_changed, self._node_changed, self._crossed, self._shape_changed, self._sizes_changed,
                 self._world_changed, self._part_changed],
            )  # fmt: skip
            change(found, other)
        return found

    def _node_changed(self, gene: Gene, _: Gene | None) -> None:
        found = list(nodes(gene))
        if not found:
            return
        holder, place, node = self.chance.choice(found)
        how = self.chance.random()
        if how < 0.35:
            new = self._node(node[0], node[2], self.chance.randint(0, 3))
        elif how < 0.6:
            new = self.grammar.sibling(node)
        elif how < 0.8:
            new = self.grammar.around(node)
        else:
            inside = [each for _, _, each in nodes(node[3]) if each[0] == node[0] and within(each, node[2])]
            new = self.chance.choice(inside) if inside else self._node(node[0], node[2], 0)
        holder[place] = new

    def _crossed(self, gene: Gene, other: Gene | None) -> None:
        if other is None:
            return
        found = list(nodes(gene))
        if not found:
            return
        holder, place, node = self.chance.choice(found)
        donors = [each for _, _, each in nodes(other) if each[0] == node[0] and within(each, node[2])]
        if donors:
            holder[place] = copy.deepcopy(self.chance.choice(donors))
            if self.chance.random() < 0.5:
                name = self.chance.choice(sorted(SHAPES))
                gene["spec"][name] = list(other["spec"][name])

    def _shape_changed(self, gene: Gene, _: Gene | None) -> None:
        name = self.chance.choice(_used(gene))
        _shape(gene, name)[0] = self.chance.choice(_shapes(name))

    def _sizes_changed(self, gene: Gene, _: Gene | None) -> None:
        for name in self.chance.sample(_used(gene), k=1 + _few(self.chance, 1, len(_used(gene)) - 1)):
            shape = _shape(gene, name)
            factor = self.chance.choice([0.1, 0.5, 2, 4, 10])
            index = self.chance.choice([1, 1, 2])
            shape[index] = max(1, min(LARGEST, int(shape[index] * factor)))

    def _world_changed(self, gene: Gene, _: Gene | None) -> None:
        name = self.chance.choice(["change", "change", "others", "others", "shown"])
        gene[name] = self.chance.random() < 0.15 if name == "shown" else self.chance.choice(list(CHANGES))

    def _part_changed(self, gene: Gene, _: Gene | None) -> None:
        scope: Scope = [*_seen_ids(gene["seen"]), *([f"l{index}", node[0]] for index, node in enumerate(gene["let"]))]
        name = self.chance.choice(["children", "children", "finalize", "status", "conditions", "validate", "child"])
        parts = gene["children" if name == "child" else name]
        if name == "child":
            self.chance.choice(parts).update(
                {key: value for key, value in self.child(scope).items() if self.chance.random() < 0.3 and key != "each"}
            )
        elif parts and self.chance.random() < 0.5 and (name != "children" or len(parts) > 1):
            parts.pop(self.chance.randrange(len(parts)))
        elif name in ("children", "finalize"):
            parts.append(self.child([*scope, *_ids(parts, name[0])]))
        elif len(parts) < 3:
            types = {"conditions": "BTT", "validate": "BT"}.get(name)
            parts.append(self._nodes(types, scope, 2) if types else self._node("D", scope, 2))

    def grown(self, gene: Gene) -> list[Gene]:
        """The gene with larger sizes: all of them, and each alone."""
        used = [name for name in _used(gene) if _EXPRESSION.search(_shape(gene, name)[0])]
        names = [used, *([each] for each in used)] if len(used) > 1 else [used]
        return [_grown(gene, group) for group in names if group]


def _grown(gene: Gene, names: list[str]) -> Gene:
    found: Gene = {**copy.deepcopy(gene), "age": gene["age"] + 1}
    for name in names:
        shape = _shape(found, name)
        shape[1] = min(LARGEST, shape[1] * 4)
        if name in ("word", "pattern"):
            shape[2] = min(LARGEST, shape[2] * 4)
    return found


def _shape(gene: Gene, name: str) -> Shape:
    if name.startswith("seen"):
        found: Shape = gene["seen"][int(name[4:])]["objects"]
    else:
        found = gene[name] if name in ("annotations", "was") else gene["spec"][name]
    return found


def _shapes(name: str) -> tuple[str, ...]:
    return SEEN if name.startswith("seen") else {**SHAPES, "annotations": ANNOTATIONS, "was": STATUSES}[name]


def _ids(children: list[Gene], letter: str = "c") -> Scope:
    """The names of children, for those after them."""
    return [[f"{letter}{index}", "M" if child["each"] is None else "G"] for index, child in enumerate(children)]


def _seen_ids(seen: list[Gene]) -> Scope:
    return [[f"o{index}", "M" if each["one"] else "O"] for index, each in enumerate(seen)]


def _few(chance: random.Random, mean: float, most: int = 3) -> int:
    found = 0
    while found < most and chance.random() < mean / (mean + 1):
        found += 1
    return found


# -- as a case ---------------------------------------------------------------------------------------------------------


def _used(gene: Gene) -> list[str]:
    """The names of the shapes that the gene's rule reads."""
    text = "\n".join(_files(gene).values())
    found = [name for name in gene["spec"] if f"spec.{name}" in text]
    found += [f"seen{index}" for index in range(len(gene["seen"])) if f"o{index}" in text]
    found += [name for name in ("annotations", "was") if gene[name][0] != "{}"]
    return found or ["annotations"]


def _expression(shape: Shape) -> str:
    """The shape's expression with its sizes as numbers."""
    return _EXPRESSION.sub(lambda match: str(shape[1] if match[0] == "n" else shape[2]), shape[0])


def case_of(gene: Gene) -> Case:
    files = _files(gene)
    return Case(
        files=files,
        spec={name: _expression(gene["spec"][name]) for name in _used(gene) if name in gene["spec"]},
        annotations=_expression(gene["annotations"]),
        status=_expression(gene["was"]),
        seen={f"o{index}": _expression(each["objects"]) for index, each in enumerate(gene["seen"])},
        deleted=bool(gene["finalize"]),
        change=gene["change"],
        others=gene["others"],
        shown=gene["shown"],
    )


def _files(gene: Gene) -> dict[str, str]:
    writer = Writer()
    files: dict[str, str] = {}
    watch: dict[str, Any] = {"group": "example.com", "version": "v1", "kind": "App"}
    if gene["let"]:
        watch["let"] = {f"l{index}": _templated(writer.text(node)) for index, node in enumerate(gene["let"])}
    watch["children"] = {}
    for index, child in enumerate(gene["children"]):
        watch["children"][f"c{index}"] = _child(writer, files, f"c{index}", child)
    if gene["finalize"]:
        watch["finalize"] = {
            f"f{index}": _child(writer, files, f"f{index}", child) for index, child in enumerate(gene["finalize"])
        }
    if gene["status"]:
        watch["status"] = {f"s{index}": _templated(writer.text(node)) for index, node in enumerate(gene["status"])}
    if gene["conditions"]:
        watch["conditions"] = [
            {
                "type": f"C{index}",
                "status": writer.text(b),
                "reason": _templated(writer.text(t)),
                "message": _templated(writer.text(u)),
            }
            for index, (b, t, u) in enumerate(gene["conditions"])
        ]
    if gene["validate"]:
        watch["validate"] = [
            {"rule": f"({writer.text(rule)}) or true", "message": f"no {_templated(writer.text(text))}"}
            for rule, text in gene["validate"]
        ]
    texts = [*files.values(), yaml.safe_dump(watch)]
    if any("part.j2" in text for text in texts):
        files["templates/part.j2"] = writer.text(gene["part"]) + "\n"
    observed = {f"o{index}": _observed(f"o{index}", each) for index, each in enumerate(gene["seen"])}
    if any("pods" in text for text in texts):
        observed["pods"] = {"version": "v1", "kind": "Pod", "selector": {"seen": "o0"}}
    if observed:
        watch["observe"] = observed
    return {"watches.yaml": yaml.safe_dump([watch], sort_keys=False, width=120, allow_unicode=True), **files}


def _templated(expression: str) -> str:
    return f"{{{{ {expression} }}}}"


def _observed(id_: str, each: Gene) -> dict[str, Any]:
    found = {"name": f"{id_}-0"} if each["one"] else {"selector": {"seen": id_}}
    return {"version": "v1", "kind": "Pod", **found}


def _child(writer: Writer, files: dict[str, str], id_: str, child: Gene) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if child["each"] is not None:
        found["forEach"] = writer.text(child["each"])
    for key in ("when", "waitFor", "readyWhen"):
        if child[key] is not None:
            found[key] = writer.text(child[key])
    if child["strategy"]:
        found["apply"] = {"strategy": child["strategy"]}
    name = f"{{{{ metadata.name }}}}-{id_}"
    if child["each"] is not None and child["name"] != "same":
        name += "-{{ index }}" if child["name"] == "index" else "-{{ item | sha256(16) }}"
    if child["body"] is not None:
        path = f"{id_}.yaml.j2"
        files[f"templates/{path}"] = writer.text(child["body"]).replace("NAME", name) + "\n"
        return {**found, "template": path}
    data: dict[str, Any] = {}
    for number, (key, value) in enumerate(child["entries"]):
        written = _templated(writer.text(value))
        if key is None and value[0] == "M":
            data[written] = None
        else:
            data[f"k{number}" if key is None else _templated(writer.text(key))] = written
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": data}
    return {**found, "object": thing}
