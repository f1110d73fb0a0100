"""Errors between several watches."""

from __future__ import annotations

from tests.language.rules.projects import Row, rows, said, table, watch

ROWS = rows("""
== hidden
-- watches.yaml
- group: example.com
  version: v1
  kind: App
  name: a
- group: example.com
  version: v1
  kind: App
  name: b
  selector: {a: b}
- group: example.com
  version: v1
  kind: App
  name: c
  selector: {a: b, c: d}
- group: example.com
  version: v1
  kind: App
  name: d
  namespaces: [x]
>> watches.yaml:5:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first
>> watches.yaml:10:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first
>> watches.yaml:15:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first

== hidden by namespaces
-- watches.yaml
- group: example.com
  version: v1
  kind: App
  name: a
  namespaces: [x, y]
- group: example.com
  version: v1
  kind: App
  name: b
  namespaces: [x]
- group: example.com
  version: v1
  kind: App
  name: c
  namespaces: [x, z]
- group: example.com
  version: v1
  kind: App
  name: d
>> watches.yaml:5:19: a namespace must be text, not the boolean true: put it in quotes
>> watches.yaml:6:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first

== hidden by selector
-- watches.yaml
- group: example.com
  version: v1
  kind: App
  name: a
  selector: {x: y}
- group: example.com
  version: v1
  kind: App
  name: b
  selector: {matchExpressions: [{key: x, operator: In, values: [y]}, {key: z, operator: Exists}]}
- group: example.com
  version: v1
  kind: App
  name: c
  selector: {x: z}
>> watches.yaml:5:17: the label "x" must be text, not the boolean true: put it in quotes
>> watches.yaml:6:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first
>> watches.yaml:10:65: a value must be text, not the boolean true: put it in quotes
>> watches.yaml:11:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first

== names
-- watches.yaml
- group: example.com
  version: v1
  kind: App
  selector: {a: b}
- group: example.com
  version: v1
  kind: App
  name: b
  selector: {a: c}
- group: example.com
  version: v1
  kind: App
  name: b
>> watches.yaml:1:3: App.example.com has 3 watches, so each needs the key "name"
>> watches.yaml:13:9: another watch of App.example.com has the name "b" (watches.yaml:5:3): choose another

== two versions
-- watches.yaml
- group: example.com
  version: v1
  kind: App
  name: a
- group: example.com
  version: v2
  kind: App
  name: b
>> watches.yaml:5:3: this watch never matches: the one at watches.yaml:1:3 matches all its CRs; put the narrower one first
>> watches.yaml:6:12: App.example.com has no version v2: it serves v1
""")


@table(*ROWS)
def test_errors_between_watches_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


def test_an_invalid_selector_hides_no_other_watch() -> None:
    broken = "selector: {matchExpressions: [{key: a}, {operator: Exists}]}"
    lines = said(watch(f"name: one\n{broken}") + watch("name: two\nselector: {a: b}") + watch(f"name: three\n{broken}"))
    assert [line for line in lines if "never matches" in line] == []
    assert said(watch("name: one\nselector: {}") + watch("name: two")) == [
        'watches.yaml:5:13: "selector" is empty: to match everything, leave the key out'
    ]
