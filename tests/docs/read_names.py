"""The table of the names that each key of watches.yaml may read, from the scopes of a watch that has all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ruleop.language.rules.checking import build_with_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.language.rules.scopes import RulePart, ScopeView

WATCH: Final = """\
- group: example.com
  version: v1
  kind: App
  reach: cluster
  writeAs: "{{ metadata.namespace }}/app"
  expire: {after: "{{ spec.a }}"}
  let: {first: "{{ spec.a }}", second: "{{ first }}"}
  observe:
    one: {version: v1, kind: Pod, forEach: spec.a, name: "{{ item }}", namespace: "{{ spec.a }}"}
    all: {version: v1, kind: Pod, selector: {a: "{{ spec.a }}"}, where: this.spec.a}
  validate: [{rule: spec.a, message: "{{ spec.a }}"}]
  children:
    many:
      forEach: {outer: spec.a, inner: outer}
      when: spec.a
      waitFor: spec.a
      readyWhen: spec.a
      deletion: "{{ 'retain' if spec.a else 'delete' }}"
      namespace: "{{ spec.a }}"
      apply: {ignore: [{path: data, when: spec.a}], onImmutable: "{{ spec.a }}"}
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ inner }}"}}
    plain: {forEach: spec.a, template: a.yaml}
    given: {objects: spec.a, kinds: [v1/ConfigMap]}
    run: {once: "{{ spec.a }}", object: {apiVersion: v1, kind: ConfigMap, metadata: {name: run}}}
    timed:
      schedule: "{{ spec.a }}"
      timeZone: "{{ spec.a }}"
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: timed}}
    patch: {forEach: spec.a, patch: {version: v1, kind: Pod, selector: {a: "{{ spec.a }}"}, fields: {metadata: {labels: {a: b}}}}}
  status: {a: "{{ spec.a }}"}
  conditions: [{type: A, status: spec.a, reason: "{{ spec.a }}", message: "{{ spec.a }}"}]
"""
TEMPLATE: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ metadata.name }}'}\n"

HEAD: Final = (
    "key",
    "`status`",
    "names of `let`",
    "ids of `observe`",
    "ids of children, `live`, `ready`",
    "`item`, `index`",
    "`this`",
)
_KEYS: Final = {
    "forEach": "`forEach`, `objects`",
    "observe": "`observe.name`, `observe.namespace`, `observe.selector`",
    "validate": "`validate.rule`",
    "expire": "`expire.after`",
    "selector": "`patch.selector`",
    "apply.ignore": "`apply.ignore.when`",
}
"""The keys with other names than in watches.yaml."""


def parts() -> tuple[RulePart, ...]:
    loaded = build_with_sources({"watches.yaml": WATCH, "templates/a.yaml": TEMPLATE}, root="/project", environ={})
    return loaded.watches[0].parts


def read_names() -> str:
    """A row for the keys that read the same names."""
    whole = next(part.view for part in parts() if part.key == "object")
    cells: dict[str, tuple[str, ...]] = {}
    for part in parts():
        found = tuple(_cells(part.view, whole))
        cells[part.key] = tuple(map(max, found, cells.get(part.key, found)))  # of several, what one of them reads
    rows: dict[tuple[str, ...], list[str]] = {}
    for key, found in cells.items():
        rows.setdefault(found, []).append(_KEYS.get(key, f"`{key}`"))
    lines = [HEAD, ("---",) * len(HEAD), *((", ".join(keys), *found) for found, keys in rows.items())]
    return "".join(f"| {' | '.join(line)} |\n" if line[0] != "---" else f"|{'|'.join(line)}|\n" for line in lines)


def _cells(view: ScopeView, whole: ScopeView) -> Iterator[str]:
    """What a view has of the names that the body of a child sees. "yes" is more than "some"."""
    yield "yes" if view.reads_status else ""
    yield _some(view.lets, whole.lets)
    yield _some(view.observed, whole.observed)
    yield _some(view.children | view.ready | view.live, whole.children)
    yield "yes" if view.index else "some" if view.items else ""
    yield "yes" if view.this else ""


def _some(names: frozenset[str], every: frozenset[str]) -> str:
    return "yes" if names == every else "some" if names else ""
