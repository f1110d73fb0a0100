"""The grammar of rules: typed productions over every filter and construct of the language.

A node of a gene is `[type, production, scope, children]`, plain JSON. A production is text with slots:

    <T>     a node of type T
    <S|T>   a node of type S, which may use one more variable, of type T
    @       the name of that variable
    #       a number of the node, so that keys and macros have different names

Types: T text, N number, B truth, L list, O list of mappings, G list of children, M mapping, I a mapping with name and
value, D any of them; S lines below a mapping, Y lines below a list, Z lines below a list whose items have names, X
lines of text, and K a whole child. A candidate of a wrong type only fails, so types are loose where Jinja's are.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

Scope: TypeAlias = list[list[str]]  # pairs of a name and its type
Node: TypeAlias = list[Any]  # [type, production, scope, children]

_SLOT: Final = re.compile(r"<([A-Z])(?:\|([A-Z]))?>")
_INDENTED: Final = re.compile(r"^( *)(?:- )?<[A-Z](?:\|[A-Z])?>$")


def lines_of(text: str) -> tuple[str, ...]:
    """Lines without their indentation."""
    return tuple(line.strip() for line in text.strip().splitlines())


def blocks_of(text: str) -> tuple[str, ...]:
    """Blocks of lines, separated by blank lines."""
    return tuple(textwrap.dedent(text).strip().split("\n\n"))


_LEAVES: Final[dict[str, tuple[str, ...]]] = {
    "T": (
        "spec.text", "spec.text", "spec.word", "spec.pattern", "metadata.name", "'a'", "' '", "','", "''", "'name'",
        "'v'", "'[a-z]*'", "'(a|b)+'", "'%s'", "'x' * 1000", "(metadata.annotations.note | default('n'))",
        "(spec.table.name5 | default('v'))", "spec.text", "spec.word",
    ),
    "N": ("0", "1", "2", "7", "100", "spec.number", "spec.many | length", "spec.text | length"),
    "B": ("true", "false", "spec.flag", "spec.missing is defined"),
    "L": ("spec.many", "spec.many", "spec.many", "spec.many", "spec.mixed", "spec.nested", "spec.table | list",
        "['a', 'b']", "range(9)", "[]"),
    "O": ("spec.entries", "spec.entries", "spec.table | dict2items", "spec.table.items()", "[]"),
    "G": ("spec.entries",),
    "M": ("spec.table", "spec.table", "spec.deep", "spec", "metadata", "{}", "{'name': 'a'}"),
    "D": ("spec.text", "spec.many", "spec.entries", "spec.table", "spec.deep", "spec.nested", "spec", "cr", "omit"),
    "I": ("spec.entries | first", "spec.table", "{'name': 'a', 'value': 'b'}"),
    "S": ("k#: a", "k#: {{ spec.text }}", "{{ spec.table }}", "k#: {{ spec.entries }}", "k#: {{ spec.many }}"),
    "Y": ("- a", "- {{ spec.text }}", "{{ spec.entries }}", "{{ spec.many }}", "- {name: a, value: b}"),
    "Z": ("{{ spec.entries }}", "- {name: a, value: b}"),
    "X": ("a", "- a", "a: b", "{{ spec.text }}", "{{ spec.many | join(',') }}"),
    "K": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}",),
}  # fmt: skip

_RULES: Final[dict[str, tuple[str, ...]]] = {
    "T": lines_of("""
        <T> | upper
        <T> | lower
        <T> | title
        <T> | capitalize
        <T> | trim
        <T> | trim(<T>)
        <T> | quote
        <T> | shell_quote
        <T> | basename
        <T> | dirname
        <T> | urlencode
        <T> | b64encode
        <T> | b64encode | b64decode
        <D> | sha256
        <D> | sha256(8)
        <T> | dns_label
        <T> | dns_label(<T>, <N>)
        <T> | indent(<N>)
        <T> | indent(2, true)
        <T> | wordwrap(<N>)
        <T> | wordwrap(<N>, wrapstring=<T>)
        <T> | center(<N>)
        <T> | truncate(<N>)
        <T> | replace(<T>, <T>)
        <T> | regex_replace(<T>, <T>)
        <T> | regex_replace(<T>, <T>, ignorecase=true)
        <T> | regex_search(<T>)
        <T> | regex_escape
        <T> | sha1
        <D> | hash('sha512')
        <D> | to_nice_yaml
        <T> | b64encode('utf-16-le')
        <T> | default(<T>)
        <T> | format(<T>, <N>)
        '%s %s %d' | format(<T>, <T>, <N>)
        '%-100s' | format(<T>)
        <D> | to_json
        <D> | to_yaml
        <D> | string
        <L> | join(<T>)
        <L> | join
        <O> | join(',', attribute='name')
        <L> | first
        <L> | last
        <L> | min
        <L> | max
        <T> ~ <T>
        <T> + <T>
        <T> * <N>
        <T>[<N>]
        <T>[<N>:]
        <T>[::-1]
        <T>.strip(<T>)
        <T>.rstrip(<T>)
        <T>.replace(<T>, <T>)
        <T>.removeprefix(<T>)
        <T>.join(<L>)
        (<T> if <B> else <T>)
        (<B> | ternary(<T>, <T>))
        <M>[<T>]
        <M>[<T>] | default(<T>)
        <M>[<T>] | default(<T>)
        <M>.get(<T>, <T>)
        <M>.missing | default(<T>)
        <M>.name5 | default(<T>)
        spec.missing
        spec[<T>] | default(<T>)
        <I>.name
        <I>.value
        <I>.missing | default(<T>)
        <I> | condition(<T>)
        <O> | map(attribute='name') | join(<T>)
        <O> | map(attribute=<T>) | join
        <G>[<T>].name | default(<T>)
        <G>['app-c0-' ~ <T>].metadata.name
        <G>['ConfigMap/' ~ <T>].metadata.name | default(<T>)
        <M>.metadata.name | default(<T>)
    """),
    "N": lines_of("""
        <L> | length
        <T> | length
        <T> | wordcount
        <T> | int
        <T> | float
        (<T> ~ 'Gi') | quantity
        '1Gi' | quantity('Mi')
        <T>.count(<T>)
        <T>.find(<T>)
        <T>.rfind(<T>)
        <N> + <N>
        <N> * <N>
        <N> - <N>
        <N> // <N>
        <N> ** <N>
        <N> % <N>
        <L> | sum
        <O> | sum(attribute='size')
        <L> | map('length') | sum
        <L> | map('int') | max
        <N> | abs
        <N> | round
        <N> | filesizeformat
        <G> | length
    """),
    "B": lines_of("""
        <T> == <T>
        <D> == <D>
        <D> != <D>
        <L> < <L>
        <T> < <T>
        <T> in <T>
        <T> in <L>
        <T> in <M>
        <D> in <L>
        <N> < <N>
        not <B>
        <B> and <B>
        <B> or <B>
        <T> | regex_match(<T>)
        <T> | regex_match(<T>, multiline=true)
        <T> | bool
        <T>.startswith(<T>)
        <T>.endswith(<T>)
        <T> is defined
        <T> is lower
        <T> is upper
        <T> is odd
        <T> is in(<T>)
        <D> is mapping
        <D> is sequence
        <M>[<T>] is defined
        <L> | select('equalto', <T>) | list | length > 0
        <L> is iterable
    """),
    "L": lines_of("""
        <T> | list
        <T> | split(<T>)
        <T>.split(<T>)
        <T>.splitlines()
        <T> | regex_findall(<T>)
        <T> | regex_search(<T>, '\\\\1')
        spec.json | from_yaml
        spec.json | from_json
        <L> | to_yaml | from_yaml
        <L> | to_json | from_json
        <L> | list
        <L> | sort
        <L> | sort(reverse=true)
        <L> | unique
        <L> | reverse
        <L> | flatten
        <L> | product(<L>)
        <L> | product(repeat=<N>)
        <O> | subelements(<T>, skip_missing=true)
        <O> | keep_keys([<T>, 'name'])
        <O> | map('remove_keys', [<T>])
        <L> | select('version', <T>, '<')
        <L> | select('search', <T>)
        <L> | select('ip_address')
        <L> | flatten(1)
        <L> | batch(<N>)
        <L> | slice(<N>)
        <L> | zip(<L>)
        <L> | zip_longest(<L>, fillvalue=<T>)
        <L> | union(<L>)
        <L> | difference(<L>)
        <L> | intersect(<L>)
        <L> | symmetric_difference(<L>)
        <L> | map('upper')
        <L> | map('length')
        <L> | map('sha256')
        <L> | map('to_yaml')
        <L> | map('to_json')
        <L> | map('regex_replace', <T>, <T>)
        <L> | map('regex_search', <T>)
        <L> | map('replace', <T>, <T>)
        <L> | map('dns_label')
        <L> | map('split', <T>)
        <L> | map('default', <T>)
        <L> | map('quantity')
        <L> | map('length')
        <L> | map('join', <T>)
        <L> | map('sort')
        <L> | map('unique')
        <L> | map('difference', <L>)
        <L> | map('combine', <M>)
        <L> | map('ternary', <L>, <L>)
        <L> | map('format', <T>)
        <L> | select('in', <L>)
        <L> | reject('in', <T>)
        <L> | select('equalto', <T>)
        <L> | select('lessthan', <T>)
        <L> + <L>
        <L> * <N>
        <L>[<N>:]
        <L>[::-1]
        [<T>, <T>]
        [<D>]
        [<L>, <L>, <L>]
        range(<N>)
        range(spec.number)
        <O> | map(attribute='name')
        <O> | map(attribute='value')
        <O> | map(attribute='name', default=<T>)
        <O> | map(attribute=<T>)
        <O> | map(attribute='value.a.0')
        <O> | groupby('value')
        <O> | groupby('name')
        <M>.keys()
        <M>.values()
        <M> | dictsort
        <M> | dictsort(by='value')
        <G> | map(attribute='metadata.name') | list
        pods | map(attribute='metadata.name')
    """),
    "O": lines_of("""
        <M> | dict2items
        <M> | dict2items('name', 'value')
        <M> | items
        <M> | dictsort
        <O> | sort(attribute='name')
        <O> | sort(attribute='value')
        <O> | unique(attribute='value')
        <O> | unique(attribute='name')
        <O> | unique
        <O> | sort(attribute='name,value')
        <O> | selectattr('name', 'equalto', <T>)
        <O> | selectattr('name', 'in', <L>)
        <O> | selectattr(<T>)
        <O> | rejectattr('value', 'equalto', <T>)
        <O> | rejectattr('name', 'in', <T>)
        <O> | map('combine', <M>)
        <O> | union(<O>)
        <O> | difference(<O>)
        <O> | intersect(<O>)
        <O> | reverse
        <O> + <O>
        [{'name': <T>, 'value': <D>}]
        <G>
        <L> | map('dict2items') | flatten
    """),
    "M": lines_of("""
        <M> | combine(<M>)
        <M> | combine(<M>, list_merge='append')
        <M> | combine(<M>, list_merge='append_rp')
        <M> | combine(<M>, list_merge='prepend_rp')
        <M> | combine(<M>, recursive=false)
        <M> | combine(<L>)
        <O> | items2dict('name', 'value')
        <O> | items2dict
        {<T>: <D>}
        {'a': <D>, 'b': <D>}
        spec.yaml | from_yaml
        spec.yaml | from_json
        <M> | to_yaml | from_yaml
        <M> | to_json | from_json
        <I>
        <M>.data | default({})
        (<M> if <B> else <M>)
    """),
    "G": ("<O>",),
    "I": lines_of("""
        <O> | first
        <O> | last
        <O>[<N>]
        <O> | min(attribute='name')
        <O> | max(attribute='value')
    """),
    "D": ("<T>", "<N>", "<B>", "<L>", "<O>", "<M>", "<I>", "<L>", "<O>", "<M>", "<T>"),
    "S": blocks_of("""
        k#: {{ <D> }}

        k#: {{ <D> }}

        k#: "{{ <T> }}"

        k#: a{{ <T> }}b{{ <T> }}

        k#: {{ <L> }}

        k#: {{ <O> }}

        {{ <M> }}

        "{{ <T> }}": {{ <D> }}

        "{{ <T> }}-#": {{ <D> }}

        k#:
          <Y>

        k#:
          <S>

        k#: |
          <X>

        k#: >-
          <X>

        {% set @ = <T> %}
        <S|T>

        {% set @ = <L> %}
        <S|L>

        {% set @ = <O> %}
        <S|O>

        {% set @ = <M> %}
        <S|M>

        {% set @ %}
        <X>
        {% endset %}
        <S|T>

        {% set @ %}
        <Y>
        {% endset %}
        k#: {{ @ | from_yaml }}
        <S|T>

        {% set @ = namespace(all='') %}
        {% for z in <L> %}{% set @.all = @.all ~ z %}{% endfor %}
        k#: {{ @.all }}

        {% if <B> %}
        <S>
        {% else %}
        <S>
        {% endif %}

        {% for @ in <L> %}
        "{{ @ }}": {{ <D> }}
        {% endfor %}

        {% for @, w# in <M>.items() %}
        "{{ @ }}": {{ w# }}
        {% endfor %}

        {% macro m#(@) %}
        <S|T>
        {% endmacro %}
        {{ m#(<T>) }}

        {% macro m#(@) %}{{ @ }}{% endmacro %}
        k#:
          {% for z in <L> %}
          - {{ m#(z) }}
          {% endfor %}

        {% macro m#(n) %}{% if n > 0 %}{{ m#(n - 1) }}{{ <T> }}{% endif %}{% endmacro %}
        k#: {{ m#(<N>) }}

        k#:
          {% filter upper %}
          <X>
          {% endfilter %}

        k#: {{ render('part.j2') }}

        {% include 'part.j2' %}

        <S>
        <S>

        <S>
        <S>
        <S>
    """),
    "Y": blocks_of("""
        - {{ <D> }}

        - {{ <T> }}

        - "{{ <T> }}"

        - {{ <N> }}

        - a{{ <T> }}

        - [a, a, a, a, a, a, a, a, {{ <T> }}]

        - a
        - a
        - a
        - a
        - a
        - a
        - a
        - a

        - {name: "{{ <T> }}", value: {{ <D> }}}

        - name: {{ <T> }}
          value: {{ <D> }}
          <S>

        {{ <L> }}

        {{ <O> }}

        {% for @ in <L> %}
        <Y|T>
        {% endfor %}

        {% for @ in <L> %}
        <Y|T>
        {% endfor %}

        {% for @ in <O> %}
        <Y|I>
        {% endfor %}

        {% for @ in <O> %}
        - {{ @ }}
        {% endfor %}

        {% for @ in <L> if <B> %}
        <Y|T>
        {% else %}
        <Y>
        {% endfor %}

        {% for @ in <M>.items() %}
        - {name: "{{ @.key }}", value: "{{ @.value }}"}
        {% endfor %}

        {% for @ in <L> recursive %}
        {% if @ is sequence and @ is not string %}
        - {{ loop(@) | length }}
        {% else %}
        - {{ @ }}
        {% endif %}
        {% endfor %}

        {% for @ in <L> recursive %}
        - a
        {{ loop(@) if @ is sequence and @ is not string }}
        {% endfor %}

        {% for @ in <L> recursive %}
        {% if loop.depth < 3 %}
        - {{ loop(<L>) | length }}
        {% endif %}
        {% endfor %}

        {% for @ in <L> %}
        {% if loop.changed(@) %}
        - {{ loop.previtem | default('') }}
        {% endif %}
        {% endfor %}

        {% for @ in <L> %}{% if <B> %}{% endif %}{% endfor %}
        - a

        {% if <B> %}
        <Y>
        {% endif %}

        {% set @ = <L> %}
        <Y|L>

        {% set @ = <T> %}
        <Y|T>

        <Y>
        <Y>
    """),
    "Z": blocks_of("""
        {{ <O> }}

        {{ <O> | unique(attribute='name') }}

        - {name: "{{ <T> }}", value: {{ <D> }}}

        - name: a#
          value: {{ <T> }}
          <S>

        {% for @ in <O> %}
        - {name: "{{ @.name }}", value: "{{ @.value }}"}
        {% endfor %}

        {% for @ in <O> %}
        - name: {{ @.name }}
          value: {{ <D> }}
        {% endfor %}

        {% for @ in <L> %}
        - name: n{{ loop.index }}
          value: {{ @ }}
          <S|T>
        {% endfor %}

        {% for @ in <L> | unique %}
        - {name: "{{ @ }}", value: a}
        {% endfor %}

        <Z>
        <Z>
    """),
    "X": blocks_of("""
        {{ <T> }}

        a {{ <T> }} b

        - {{ <T> }}

        {{ <T> }}: {{ <T> }}

        {{ <D> | to_yaml }}

        {{ <D> | to_json }}

        {% for @ in <L> %}
        <X|T>
        {% endfor %}

        {% for @ in <L> %}{{ @ }}{% endfor %}

        {% for @ in <O> %}
        <X|I>
        {% endfor %}

        {% if <B> %}
        <X>
        {% endif %}

        <X>
        <X>
    """),
    "K": blocks_of("""
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: NAME
        data:
          <S>

        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: NAME
          annotations:
            <S>
        data:
          <S>

        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: {{ <T> }}
        data:
          <S>

        apiVersion: v1
        kind: Secret
        metadata:
          name: NAME
        stringData:
          <S>

        apiVersion: example.com/v1
        kind: Thing
        metadata:
          name: NAME
        spec:
          <S>

        apiVersion: example.com/v1
        kind: Thing
        metadata:
          name: NAME
        spec:
          entries:
            <Z>
          <S>

        apiVersion: example.com/v1
        kind: Thing
        metadata:
          name: NAME
        spec:
          members:
            <Y>

        apiVersion: example.com/v1
        kind: Other
        metadata:
          name: NAME
        spec:
          <S>
          list:
            <Y>

        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: NAME
        spec:
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec:
              containers:
                - name: web
                  image: i
                  env:
                    <Z>
                  args:
                    <Y>

        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: NAME
        spec:
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec:
              containers:
                <Z>
              volumes:
                <Z>

        apiVersion: v1
        kind: Service
        metadata:
          name: NAME
        spec:
          ports:
            <Z>
          externalIPs:
            <Y>

        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata:
          name: NAME
        rules:
          <Y>

        {% for @ in <L> %}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: NAME-{{ loop.index }}
        data:
          <S|T>
        {% endfor %}

        {% for @ in <O> %}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: "{{ @.name }}"
        data:
          <S|I>
        {% endfor %}
    """),
}  # fmt: skip

TYPES: Final = frozenset(_RULES)
_SUITS: Final[dict[str, frozenset[str]]] = {
    "D": frozenset("TNBLOMIG"),
    "M": frozenset("I"),
    "L": frozenset("OG"),
    "O": frozenset("G"),
}
_LINES: Final = frozenset("SYZXK")


class Grammar:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def node(self, type_: str, scope: Scope, depth: int) -> Node:
        """A random node of about this depth."""
        if depth <= 0 or (type_ not in _LINES and self.chance.random() < 0.35):
            return self._leaf(type_, scope)
        return self.filled(type_, self.chance.choice(_RULES[type_]), scope, depth)

    def filled(self, type_: str, production: str, scope: Scope, depth: int, donors: list[Node] | None = None) -> Node:
        """The production with random children; `donors` are used where their types fit."""
        donors = list(donors or ())
        children = []
        for wanted, variable in slots(production):
            inner = [*scope, [f"x{len(scope)}", variable]] if variable else scope
            fit = next((each for each in donors if each[0] == wanted and within(each, inner)), None)
            if fit is not None:
                donors.remove(fit)
            children.append(fit or self.node(wanted, inner, depth - 1))
        return [type_, production, scope, children]

    def _leaf(self, type_: str, scope: Scope) -> Node:
        suits = {type_} | _SUITS.get(type_, frozenset())
        names = [name for name, of in scope if of in suits]
        if names and self.chance.random() < 0.7:
            return [type_, self.chance.choice(names), scope, []]
        if type_ == "K":
            return self.filled("K", self.chance.choice(_RULES["K"]), scope, 1)
        return [type_, self.chance.choice(_LEAVES[type_]), scope, []]

    def sibling(self, node: Node) -> Node:
        """Another production with the node's children."""
        return self.filled(node[0], self.chance.choice(_RULES[node[0]]), node[2], 2, node[3])

    def around(self, node: Node) -> Node:
        """A production with the node in one of its slots."""
        fitting = [rule for rule in _RULES[node[0]] if any(wanted == node[0] for wanted, _ in slots(rule))]
        if not fitting:
            return node
        return self.filled(node[0], self.chance.choice(fitting), node[2], 2, [node])


def slots(production: str) -> Iterator[tuple[str, str]]:
    for match in _SLOT.finditer(production):
        yield match[1], match[2] or ""


def within(node: Node, scope: Scope) -> bool:
    """Whether the node may stand where these variables exist."""
    return all(each in scope for each in node[2])


def leaf_of(type_: str, scope: Scope) -> Node:
    """The plainest node of a type, for minimising."""
    return [type_, _LEAVES[type_][0], scope, []]


def nodes(value: Any) -> Iterator[tuple[list[Any] | dict[str, Any], Any, Node]]:
    """All nodes of a gene, each with its holder and its place there."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _found(value, name, member)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _found(value, index, member)


def _found(holder: list[Any] | dict[str, Any], place: Any, member: Any) -> Iterator[tuple[Any, Any, Node]]:
    if is_node(member):
        yield holder, place, member
        yield from nodes(member[3])
    elif isinstance(member, (dict, list)):
        yield from nodes(member)


def is_node(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 4
        and isinstance(value[0], str)
        and value[0] in TYPES
        and isinstance(value[3], list)
    )


class Writer:
    """Writes nodes as text."""

    def __init__(self) -> None:
        self.number = 0

    def text(self, node: Node) -> str:
        self.number += 1
        production, variable = node[1].replace("#", str(self.number)), f"x{len(node[2])}"
        if node[3]:
            production = production.replace("@", variable)
        children = iter(node[3])
        lines = []
        for line in production.split("\n"):
            indented = _INDENTED.match(line)
            if indented is not None and node[3]:
                inner = self.text(next(children)).replace("\n", "\n" + indented[1])
                lines.append(indented[1] + inner)
            else:
                lines.append(_SLOT.sub(lambda match: self._inline(next(children), match[1]), line))
        return "\n".join(lines)

    def _inline(self, child: Node, wanted: str) -> str:
        text = self.text(child)
        plain = wanted in _LINES or re.fullmatch(r"[\w.]+|'[^']*'|\[\]|\{\}", text)
        return text if plain else f"({text})"
