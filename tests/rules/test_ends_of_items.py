"""`forEachOf` in a finalize child: what it may name, and what the child sees."""

from __future__ import annotations

from tests.rules.projects import Row, rule, said, table, watch

LOOP = "forEach: spec.tenants, as: tenant, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ tenant }}'}}"
OBJECT = "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"
ALONE = "one with `forEachOf` is made for one item, and reads no other finalize child, nor is it read by one"

ROWS = (
    Row(
        "what it may name",
        watch(f"""
children:
  a: {{{LOOP}}}
  b: {{{OBJECT}}}
  c: {{forEach: spec.x, patch: {{version: v1, kind: ConfigMap, name: x, fields: {{data: {{a: b}}}}}}}}
  d: {{forEach: spec.x, template: two.yaml}}
  e: {{forEachOf: a, {OBJECT}}}
finalize:
  f: {{forEachOf: b, {OBJECT}}}
  g: {{forEachOf: c, {OBJECT}}}
  h: {{forEachOf: d, {OBJECT}}}
  i: {{forEachOf: f, {OBJECT}}}
  j: {{forEachOf: aa, {OBJECT}}}
  k: {{forEachOf: a, forEach: spec.x, {OBJECT}}}
  l: {{forEachOf: a, dependsOn: [f], {OBJECT}}}
"""),
        [
            'watches.yaml:9:9: "e" is made while its item exists: `forEachOf` is for `finalize`',
            'watches.yaml:11:20: "b" makes no object for each item of a `forEach`, so it has no items that end',
            'watches.yaml:12:20: "c" makes no object for each item of a `forEach`, so it has no items that end',
            (
                'watches.yaml:13:20: "d" makes several objects for each item, and one of them has to stand for the item: '
                "make several children of its template"
            ),
            'watches.yaml:14:20: "f" is a finalize child: `forEachOf` names a child with `forEach`',
            'watches.yaml:15:20: no child has the id "aa" (the ids are "a", "b", "c", "d" and "e")',
            (
                'watches.yaml:16:23: a child has "forEachOf" and "forEach": remove "forEach", because it is made for one '
                "item, and removed when that has ended"
            ),
            (
                'watches.yaml:17:23: a child has "forEachOf" and "dependsOn": remove "dependsOn", because it is made for '
                "one item, and removed when that has ended"
            ),
        ],
        {"templates/two.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" * 2},
    ),
    Row(
        "what it sees",
        watch(f"""
children:
  a: {{{LOOP}}}
finalize:
  f:
    forEachOf: a
    when: tenant
    readyWhen: this.data.x == tenant
    object:
      apiVersion: v1
      kind: ConfigMap
      metadata: {{name: "{{{{ tenant }}}}"}}
      data:
        x: "{{{{ a | length }}}} {{{{ live.a | length }}}}"
        i: "{{{{ index }}}}"
        j: "{{{{ item }}}}"
        k: "{{{{ g.x }}}}"
        l: "{{{{ ready.a }}}}"
  g:
    dependsOn: [f]
    object: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: g}}, data: {{x: "{{{{ live.f }}}}", w: "{{{{ f.x }}}}"}}}}
"""),
        [
            'watches.yaml:17:18: the finalize child "f" cannot read `index`: the item has no position when it has ended',
            'watches.yaml:18:18: `item` is not available in the finalize child "f"; here the item is named `tenant`',
            f'watches.yaml:19:18: the finalize child "f" cannot read the finalize child `g`: {ALONE}',
            f'watches.yaml:20:18: the finalize child "f" cannot read `ready.`: {ALONE}',
            f'watches.yaml:22:19: "g" cannot depend on "f": {ALONE}',
            f"watches.yaml:23:84: `live.f`: {ALONE}",
            f'watches.yaml:23:103: the finalize child "g" cannot read the finalize child `f`: {ALONE}',
        ],
    ),
    Row(
        "items of Secrets",
        watch(f"""
observe:
  login: {{version: v1, kind: Secret, name: login}}
let:
  users: "{{{{ login.data.users }}}}"
children:
  a: {{{LOOP.replace("spec.tenants", "login.data.users")}}}
  b: {{{LOOP.replace("spec.tenants", "users")}}}
  c: {{{LOOP.replace("spec.tenants", "login.data.users").replace("name: '{{ tenant }}'", "name: c")}}}
finalize:
  f: {{forEachOf: a, {OBJECT}}}
  g: {{forEachOf: b, {OBJECT}}}
"""),
        [
            f"watches.yaml:{line}:18: `{path}` would give the items data of a Secret, and they are recorded for "
            "`forEachOf`: loop over something else, and read the Secret in the body"
            for line, path in ((9, "login.data.users"), (10, "users"))
        ],
    ),
)


@table(*ROWS)
def test_mistakes_are_reported_at_their_place(row: Row) -> None:
    found = said(row.watches, row.files)
    assert [each for each in found if "would expose" not in each] == row.said


def test_the_child_knows_what_ends_its_items_and_needs_no_garbage_collector() -> None:
    found = rule(f"children: {{a: {{{LOOP}}}}}\nfinalize: {{f: {{forEachOf: a, {OBJECT}}}, g: {{{OBJECT}}}}}")
    assert (found.children["a"].ended_by, found.children["a"].in_order) == (("f",), True)
    assert (found.finalize["f"].for_each_of, found.finalize["f"].many, found.finalize["f"].ended_by) == ("a", True, ())
    assert (found.finalize["g"].for_each_of, found.finalize["g"].many) == ("", False)
    assert found.ends_items
