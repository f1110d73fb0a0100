"""Errors in one value, one key or one table: the exact lines, with their positions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import SERVER_METADATA
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.keys.tables import keys
from ruleop.language.rules.keys.watches_yaml import TABLES, ChildTable, WatchTable
from ruleop.language.templates.bodies.documents import COMPUTED
from ruleop.nearest import nearest
from tests.definitions import definition
from tests.exploration import examples
from tests.language.rules.projects import SERVICE, Row, load, rows, said, table, watch

THIRTY_LINES = [
    "templates/broken.yaml:4: unknown filter toYaml; use to_yaml",
    "watches.yaml:2:10: the variable IMAGE is not set: set it, or write a default, ${IMAGE:-default}",
    'watches.yaml:3:9: the variable SIZE must be a number, like its default; put the default in quotes for text: ${SIZE:-"3"}',
    'watches.yaml:5:3: a let cannot be named "spec", which is reserved by ruleop: choose another name',
    'watches.yaml:7:5: App.example.com has 2 watches, so each needs the key "name"',
    'watches.yaml:10:5: unknown key "childs" in a watch',
    'watches.yaml:11:12: "reach" must be "namespace" or "cluster", not the text "clustr" (did you mean "cluster"?)',
    'watches.yaml:12:22: "reconcilePeriod": the duration "30" needs a unit: "30s", "30m" or "30h"',
    'watches.yaml:13:30: "maxConcurrentReconciles" must be at least 1, not 0',
    'watches.yaml:14:19: "manageStatus" must be true or false, not the text "no"',
    'watches.yaml:15:15: "selector" is empty: to match everything, leave the key out',
    'watches.yaml:16:17: "namespaces" is an empty list, which matches nothing: add an item, or remove the key',
    'watches.yaml:18:38: an observed resource has "forEach", which requires "name"',
    'watches.yaml:19:23: "version" must be a version without its group, like "v1", not "batch/v1"',
    'watches.yaml:20:63: the observed resource "far" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that',
    'watches.yaml:22:7: a child cannot be named "loop", which is reserved by Jinja: choose another name',
    'watches.yaml:23:7: a child cannot be named "pods": watches.yaml:18:7 has an observed resource of that name; all ids and lets share one namespace',
    "watches.yaml:24:24: templates/gone.yaml does not exist",
    'watches.yaml:25:32: a child has both "template" and "object": remove one of them',
    'watches.yaml:26:16: a child needs "template", "object", "objects" or "patch"',
    "watches.yaml:27:38: `when` cannot read the child `gone`, only the CR, vars, let and observed objects: use `waitFor`, or an {% if %} in the template over `live.`",
    'watches.yaml:28:41: "speck" is not known in `waitFor` (did you mean "spec"?)',
    'watches.yaml:29:44: "selfish" reads itself: read the existing object with `live.selfish`',
    "watches.yaml:31:25: Namespace is a cluster-scoped kind: set `reach: cluster` in the watch to allow that",
    'watches.yaml:32:47: no child has the id "clusters" (did you mean "cluster"?)',
    "watches.yaml:33:90: `random_password` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
    "watches.yaml:34:57: an ignored path \"spec..x\": expected the name of a field; names with special characters are written ['like this']",
    "watches.yaml:36:14: `random.data.x` would expose the data of a Secret in `status`: use its metadata, or test whether it exists",
    "watches.yaml:37:18: `status` cannot read `status`, because it would change what it reads: read the children instead",
    'watches.yaml:39:16: the condition "Ready" is set by ruleop: choose another type',
]

RANDOM = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: '{{ random_password(9) }}'}\n"
ROWS = (
    *rows("""
== unknown key in a child
children:
  a:
    tempalte: a.yaml
>> watches.yaml:6:7: unknown key "tempalte" in a child (did you mean "template"?)

== a rollout
rollout: {maxUnavailable: 0%, failureThreshold: -1, pauseAfter: 0, order: label, progressDeadline: 0s}
>> watches.yaml:4:29: "maxUnavailable" must be a whole number from 1, or a percentage like "10%", not the text "0%"
>> watches.yaml:4:51: "failureThreshold" must be a whole number from 0, or a percentage like "10%", not the number -1
>> watches.yaml:4:67: "pauseAfter" must be at least 1, not 0
>> watches.yaml:4:70: "rollout" has "order: label", which requires "label", the label whose values give the order
>> watches.yaml:4:102: "progressDeadline" must be at least 1m, not 0s

== a rollout by a label without the order
rollout: {label: ring, maxUnavailble: 3}
>> watches.yaml:4:13: "rollout" has "label", which requires "order: label"
>> watches.yaml:4:26: unknown key "maxUnavailble" in "rollout" (did you mean "maxUnavailable"?)

== a rollout without a status
manageStatus: false
rollout: {}
>> watches.yaml:5:3: "rollout" reads from the status which CRs are ready, and ruleop does not write it: remove "rollout"

== the condition of a rollout
rollout: {}
conditions: [{type: Rollout, status: 'true'}]
>> watches.yaml:5:23: the condition "Rollout" is set by ruleop: choose another type

== unknown key in a watch
childs: {}
>> watches.yaml:4:3: unknown key "childs" in a watch

== no near key
zzzzzz: 1
>> watches.yaml:4:3: unknown key "zzzzzz" in a watch

== keys of Operator SDK
playbook: playbook.yml
watchDependentResources: true
overrideValues: {image: a}
>> watches.yaml:4:3: unknown key "playbook" in a watch: ruleop runs no playbooks and roles: write the objects as templates under `children`
>> watches.yaml:5:3: unknown key "watchDependentResources" in a watch: ruleop always does: remove the key
>> watches.yaml:6:3: unknown key "overrideValues" in a watch: write `vars`, or defaults in the templates

== a task of Ansible
children:
  a:
    k8s: {state: present, definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}
    loop: "{{ spec.items }}"
    register: made
>> watches.yaml:6:7: unknown key "k8s" in a child: write `object`, with what is under `definition`
>> watches.yaml:7:7: unknown key "loop" in a child: write `forEach`, with an expression
>> watches.yaml:8:7: unknown key "register" in a child: other children read this child by its id

== a resource of kro
children:
  a:
    id: web
    includeWhen: ["${schema.spec.web}"]
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
>> watches.yaml:6:7: unknown key "id" in a child: the key of the child is its id
>> watches.yaml:7:7: unknown key "includeWhen" in a child: write `when`, without ${}

== a resource of Crossplane
children:
  a:
    patches: [{fromFieldPath: spec.a, toFieldPath: data.a}]
    object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
>> watches.yaml:6:7: unknown key "patches" in a child: write the values as templates in `object`; `patch` is for objects of others

== unknown key in observe
observe:
  pods: {version: v1, kind: Pod, name: x, select: {a: b}}
>> watches.yaml:5:11: an observed resource has both "name" and "selector": remove one of them
>> watches.yaml:5:45: unknown key "select" in an observed resource (did you mean "selector"?)

== key twice
reach: cluster
reach: cluster
>> watches.yaml:5:3: duplicate key "reach": the first is on line 4

== neither template nor object
children:
  a: {when: spec.x}
>> watches.yaml:5:8: a child needs "template", "object", "objects" or "patch"

== both template and object
children:
  a:
    template: a.yaml
    object: {apiVersion: v1, kind: Service, metadata: {name: a}}
>> watches.yaml:7:7: a child has both "template" and "object": remove one of them

== objects that a resource gives
children:
  a: {objects: spec.a}
  b: {objects: spec.a, kinds: [ConfigMap]}
  c: {objects: spec.a, kinds: [v1/Node, rbac.authorization.k8s.io/v1/Role], adopt: orphans}
  f: {objects: spec.a, kinds: [authorization.openshift.io/v1/RoleBinding]}
  d: {template: a.yaml, kinds: [v1/Secret]}
  e: {objects: spec.a, kinds: [rbac.authorization.k8s.io/v1/Role], allow: [extra-privileges], object: {}}
>> watches.yaml:5:9: a child has "objects", which requires "kinds"
>> watches.yaml:6:34: a kind must be a kind with its version, like "v1/ConfigMap" or "apps/v1/Deployment", not "ConfigMap"
>> watches.yaml:7:34: Node is a cluster-scoped kind: `objects` are in the namespace of the CR
>> watches.yaml:7:43: who writes a CR could grant permissions by a Role: remove it, or set `allow: [extra-privileges]` in the child
>> watches.yaml:7:79: who writes a CR could take over objects of others: `adopt` is not for `objects`
>> watches.yaml:8:34: who writes a CR could grant permissions by a RoleBinding: remove it, or set `allow: [extra-privileges]` in the child
>> watches.yaml:9:27: a child has "kinds", which requires "objects"
>> watches.yaml:10:9: a child has both "object" and "objects": remove one of them
>> watches.yaml:10:105: an object needs apiVersion, in plain text
>> watches.yaml:10:105: metadata.name of the object is missing

== once for each request
children:
  a: {template: a.yaml, once: "{{ spec.a }}", forEach: spec.b}
  b: {template: a.yaml, history: 3}
  c: {template: a.yaml, once: "{{ a.metadata.name }}"}
finalize:
  d: {template: a.yaml, once: x}
status: {ruleop: x}
>> watches.yaml:6:27: a child has "history", which requires "once" or "schedule"
>> watches.yaml:7:37: `once` cannot read the child `a`, only the CR, vars, let and observed objects: read the existing object with `live.a`
>> watches.yaml:9:33: "d" runs once in any case: `once` is for `children`
>> watches.yaml:10:12: status.ruleop is set by ruleop: choose another name

== once for each request of each item
children:
  a: {once: "{{ item }}", forEach: spec.b, template: many.yaml}
  b: {once: "{{ spec.b }}", objects: spec.b, kinds: [v1/Service]}
  c: {once: "{{ spec.b }}", template: many.yaml}
  d: {once: "{{ team.id }}", forEach: {team: spec.teams, env: team.envs}, template: a.yaml}
  e: {once: "{{ index }}", forEach: live.s.data, template: a.yaml}
  s: {object: {apiVersion: v1, kind: Secret, metadata: {name: s}}}
finalize:
  z: {forEachOf: d, template: a.yaml}
-- templates/many.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata: {name: b}
>> watches.yaml:5:15: "a" has several objects, and `once` makes one for each request id
>> watches.yaml:6:15: "b" has several objects, and `once` makes one for each request id
>> watches.yaml:7:15: "c" has several objects, and `once` makes one for each request id
>> watches.yaml:9:39: `live.s.data` would give the items data of a Secret, and they are recorded for `once`: loop over something else, and read the Secret in the body
>> watches.yaml:12:20: "d" has `once`: its objects end with their runs, and stand for no item

== once by what exists
children:
  a: {template: a.yaml, once: "{{ live.b.metadata.uid | default('') }}"}
  b: {template: a.yaml, once: "{{ live.b.metadata.uid | default('') }}"}
  c: {template: a.yaml, once: "{{ ready.a }}"}
  d: {template: a.yaml, once: "{{ live.a.metadata.resourceVersion }}"}
  e: {template: a.yaml, once: "{{ live.f.metadata.name }}"}
  f: {template: a.yaml, once: "{{ live.g.metadata.name }}"}
  g: {template: a.yaml, once: "{{ live.e.metadata.name }}"}
  h: {template: a.yaml, schedule: "{{ live.a.spec.x }}"}
>> watches.yaml:6:37: `live.b`: each run would change its own request id, and run again
>> watches.yaml:7:37: `once` cannot read `ready.`, only the CR, vars, let and observed objects
>> watches.yaml:8:37: `live.a.metadata.resourceVersion` changes whenever the object is written, so it would run without end: use a field of the spec, or `metadata.generation`
>> watches.yaml:9:33: `live.f`: the runs of "e" and "f" would begin each other without end
>> watches.yaml:10:33: `live.g`: the runs of "f" and "g" would begin each other without end
>> watches.yaml:11:33: `live.e`: the runs of "g" and "e" would begin each other without end
>> watches.yaml:12:41: `schedule` cannot read `live.`, only the CR, vars, let and observed objects

== once for each time of a schedule
children:
  a: {template: a.yaml, schedule: 0 3 * *, timeZone: Berlin, startingDeadline: 30s}
  b: {template: a.yaml, schedule: "@daily", once: x}
  c: {template: a.yaml, timeZone: UTC, startingDeadline: 2h}
  d: {template: a.yaml, schedule: "@daily", forEach: spec.b}
  e: {template: a.yaml, schedule: 3}
  f: {schedule: "@daily", patch: {version: v1, kind: ConfigMap, name: a, fields: {data: {a: b}}}}
  g: {template: a.yaml, schedule: "{{ a.metadata.name }}"}
finalize:
  h: {template: a.yaml, schedule: "@daily"}
>> watches.yaml:5:37: "schedule": "0 3 * *" is not a cron schedule such as "0 3 * * *": expected exactly 5 fields, found 4: [0 3 * *]
>> watches.yaml:5:56: "timeZone": "Berlin" is not a time zone such as "Europe/Berlin"
>> watches.yaml:5:82: "startingDeadline" must be at least 1m, not 30s
>> watches.yaml:6:27: a child has both "once" and "schedule": remove one of them
>> watches.yaml:7:27: a child has "timeZone", which requires "schedule"
>> watches.yaml:7:42: a child has "startingDeadline", which requires "schedule"
>> watches.yaml:8:37: "d" has several objects, and `schedule` makes one for each time
>> watches.yaml:9:37: "schedule" must be text, not the number 3: put it in quotes
>> watches.yaml:10:9: a child has "patch" and "schedule": remove "schedule", because the object belongs to somebody else
>> watches.yaml:11:41: `schedule` cannot read the child `a`, only the CR, vars, let and observed objects
>> watches.yaml:13:37: "h" runs once in any case: `schedule` is for `children`

== missing version
-- watches.yaml
- group: example.com
  kind: App
>> watches.yaml:1:3: a watch needs the key "version"

== version with its group
-- watches.yaml
- version: example.com/v1
  kind: App
>> watches.yaml:1:12: "version" must be a version without its group, like "v1", not "example.com/v1"

== version as a number
-- watches.yaml
- version: 1
  kind: App
>> watches.yaml:1:12: "version" must be text, not the number 1: put it in quotes

== a watch outside of a list
-- watches.yaml
group: example.com
version: v1
kind: App
>> watches.yaml:1:1: a watch must be an item of a list: start it with `- `, and indent its keys

== a watch that is text
-- watches.yaml
- App
>> watches.yaml:1:3: a watch must be a mapping, not the text "App"

== text for a file
-- watches.yaml
App
>> watches.yaml:1:1: a file of watches must be a list of watches, or a mapping with the key "watches", not the text "App"

== an empty file
-- watches.yaml
>> watches.yaml: the file has no watches

== an empty list
-- watches.yaml
[]
>> watches.yaml: the project has no watches; write `watches: []` if that is intended

== two documents
-- watches.yaml
- group: example.com
  version: v1
  kind: App

---
- group: example.com
  version: v1
  kind: App
>> watches.yaml:6:1: a second document: a file of watches is one list or one mapping

== no YAML
-- watches.yaml
- group: [
>> watches.yaml:2:1: not YAML: a value is missing here, or a bracket or brace is not closed

== child is text
children: {a: a.yaml}
>> watches.yaml:4:17: the child "a" must be a mapping, not the text "a.yaml"

== children is a list
children: [a]
>> watches.yaml:4:13: "children" must be a mapping, not a list

== choice
reach: clustr
>> watches.yaml:4:10: "reach" must be "namespace" or "cluster", not the text "clustr" (did you mean "cluster"?)

== choice of another type
reach: true
>> watches.yaml:4:10: "reach" must be "namespace" or "cluster", not the boolean true

== strategy
apply: {strategy: create_only}
>> watches.yaml:4:21: "strategy" must be "merge", "server-side" or "create-only", not the text "create_only" (did you mean "create-only"?)

== duration without unit
reconcilePeriod: 30
>> watches.yaml:4:20: "reconcilePeriod": the duration "30" needs a unit: "30s", "30m" or "30h"

== duration of nonsense
reconcilePeriod: soon
>> watches.yaml:4:20: "reconcilePeriod": "soon" is not a duration: write it like "10h", "1h30m" or "0s"

== duration as a list
reconcilePeriod: [10h]
>> watches.yaml:4:20: "reconcilePeriod" must be a duration like "10h", not a list

== flag
manageStatus: "no"
>> watches.yaml:4:17: "manageStatus" must be true or false, not the text "no"

== count too small
maxConcurrentReconciles: 0
>> watches.yaml:4:28: "maxConcurrentReconciles" must be at least 1, not 0

== count as text
maxConcurrentReconciles: "3"
>> watches.yaml:4:28: "maxConcurrentReconciles" must be a whole number, not the text "3"

== count as boolean
maxConcurrentReconciles: true
>> watches.yaml:4:28: "maxConcurrentReconciles" must be a whole number, not the boolean true

== no namespaces
namespaces: []
>> watches.yaml:4:15: "namespaces" is an empty list, which matches nothing: add an item, or remove the key

== a namespace that is none
namespaces: [My_Namespace]
>> watches.yaml:4:16: a namespace must be a name of lowercase letters, digits and dashes, at most 63, not "My_Namespace"

== id with a capital
children:
  App: {template: a.yaml}
>> watches.yaml:5:5: the child cannot be named "App": a lowercase letter, then letters, digits and _

== id that is reserved
children:
  spec: {template: a.yaml}
  htpasswd: {template: a.yaml}
>> watches.yaml:5:5: a child cannot be named "spec", which is reserved by ruleop: choose another name
>> watches.yaml:6:5: a child cannot be named "htpasswd", which is reserved by ruleop: choose another name

== id that is Jinja's
children:
  loop: {template: a.yaml}
>> watches.yaml:5:5: a child cannot be named "loop", which is reserved by Jinja: choose another name

== same id in children and observe
children:
  pods: {template: a.yaml}
observe:
  pods: {version: v1, kind: Pod, name: x}
>> watches.yaml:5:5: a child cannot be named "pods": watches.yaml:7:5 has an observed resource of that name; all ids and lets share one namespace

== same id in children and finalize
children:
  a: {template: a.yaml}
finalize:
  a: {template: a.yaml}
>> watches.yaml:7:5: a finalize child cannot be named "a": watches.yaml:5:5 has a child of that name; all ids and lets share one namespace

== let and id
let: {a: 1}
children:
  a: {template: a.yaml}
>> watches.yaml:6:5: a child cannot be named "a": watches.yaml:4:9 has a let of that name; all ids and lets share one namespace

== vars share no names
vars: {a: 1, spec: 2}
children:
  a: {template: a.yaml}

== as without forEach
children:
  a: {template: a.yaml, as: x}
>> watches.yaml:5:27: a child has "as", which requires "forEach"

== loops in loops
children:
  a: {template: a.yaml, forEach: {team: spec.teams, b: team.envs, this: spec.x, Env: spec.y, index: spec.z}}
  b: {template: a.yaml, forEach: {team: spec.teams, env: [1]}, as: team}
  c: {template: a.yaml, forEach: {}}
>> watches.yaml:5:55: an item cannot be named "b": watches.yaml:6:5 has a child of that name
>> watches.yaml:5:69: an item cannot be named "this", which is reserved by ruleop: choose another name
>> watches.yaml:5:83: an item cannot be named "Env": a lowercase letter, then letters, digits and _
>> watches.yaml:5:96: an item cannot be named "index", which is reserved by ruleop: choose another name
>> watches.yaml:6:60: an item "env" must be an expression, not a list
>> watches.yaml:6:66: a child has "as", and the names in "forEach": remove "as"
>> watches.yaml:7:36: "forEach" is an empty mapping: name a loop in it, such as `team: spec.teams`

== as that is taken
children:
  a: {template: a.yaml, forEach: spec.list, as: b}
  b: {template: a.yaml, forEach: spec.list, as: this}
  c: {template: a.yaml, forEach: spec.list, as: item}
>> watches.yaml:5:51: an item cannot be named "b": watches.yaml:6:5 has a child of that name
>> watches.yaml:6:51: an item cannot be named "this", which is reserved by ruleop: choose another name

== template missing
children:
  a: {template: b.yaml}
-- templates/bb.yaml
apiVersion: v1
kind: Service
metadata: {name: a}
>> watches.yaml:5:19: templates/b.yaml does not exist (did you mean "a.yaml"?)

== template outside
children:
  a: {template: ../a.yaml}
  b: {template: /etc/passwd}
  c: {template: templates/a.yaml}
  d: {template: 3}
>> watches.yaml:5:19: "../a.yaml" is outside of templates/
>> watches.yaml:6:19: "/etc/passwd" is outside of templates/
>> watches.yaml:7:19: names are relative to templates/: write "a.yaml"
>> watches.yaml:8:19: "template" must be the name of a file below templates/, not the number 3

== template with syntax mistake
children:
  a: {template: a.yaml}
-- templates/a.yaml
apiVersion: v1
kind: Service
{% if %}
>> templates/a.yaml:3: template syntax: Expected an expression, got 'end of statement block'

== unknown filter
children:
  a: {template: a.yaml, when: spec.x | toYaml}
>> watches.yaml:5:33: unknown filter toYaml; use to_yaml

== expression of a list
children:
  a: {template: a.yaml, forEach: [1, 2]}
  b: {template: a.yaml, when: ""}
  c: {template: a.yaml, when: "a {{ spec.x }}"}
>> watches.yaml:5:36: "forEach" must be an expression, not a list
>> watches.yaml:6:33: "when" must be an expression, not empty
>> watches.yaml:7:33: this takes one expression, such as spec.replicas > 1, not text with {{ }} or {% %} in it

== selector number
selector: {a: 1}
>> watches.yaml:4:17: the label "a" must be text, not the number 1: put it in quotes

== selector with templates
selector: {a: "{{ vars.x }}"}
>> watches.yaml:4:17: a watch's selector must be plain text without templates: it selects the CRs to read

== selector as a template
selector: "{{ vars.x }}"
>> watches.yaml:4:13: a watch's selector must be plain text without templates: it selects the CRs to read

== selector with templates of a mapping and of a list
selector:
  matchLabels: "{{ vars.x }}"
  matchExpressions: [{key: b, operator: In, values: "{{ vars.y }}"}]
>> watches.yaml:5:18: a watch's selector must be plain text without templates: it selects the CRs to read

== selector with what is no label
observe:
  a: {version: v1, kind: Pod, selector: {app: "a,b"}}
  b: {version: v1, kind: Pod, selector: {"{{ spec.key }}": x}}
  c: {version: v1, kind: Pod, selector: {matchExpressions: [{key: a, operator: In, values: [x, "y)"]}]}}
  d: {version: v1, kind: Pod, selector: {app: "{{ spec.a }},b", tier: ""}}
  e: {version: v1, kind: Pod, selector: {matchExpressions: "{{ spec.a }}"}}
  f: {version: v1, kind: Pod, selector: {matchLabels: spec.labels}}
  g: {version: v1, kind: Pod, selector: "{{ missing }}"}
  h: {version: v1, kind: Pod, selector: {matchLabels: "{{ missing }}", matchExpressions: [{key: a, operator: In, values: "{{ absent }}"}]}}
  i: {version: v1, kind: Pod, selector: {matchExpressions: [{key: a, operator: Exists, values: "{{ spec.a }}"}]}}
  j: {version: v1, kind: Pod, selector: "{{ a }}"}
>> watches.yaml:5:49: the label "app" must be at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, not "a,b"
>> watches.yaml:6:44: the label cannot be named "{{ spec.key }}": at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, perhaps after a domain and `/`
>> watches.yaml:7:98: a value must be at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, not "y)"
>> watches.yaml:9:62: "matchExpressions" must be a list, not the text "{{ spec.a }}"
>> watches.yaml:10:57: "matchLabels" must be a mapping, not the text "spec.labels"
>> watches.yaml:11:47: "missing" is not known in `observe`
>> watches.yaml:12:61: "missing" is not known in `observe`
>> watches.yaml:12:128: "absent" is not known in `observe`
>> watches.yaml:13:90: a requirement has "values", which the operator Exists does not compare with: remove them
>> watches.yaml:14:47: `observe` cannot read the observed `a`: observed objects must not depend on observed objects

== selector requirement
selector:
  matchLabels: {a: b}
  matchExpressions:
    - {key: a, operator: in, values: [b]}
    - {key: a, operator: In}
    - {key: a, operator: Exists, values: [b]}
    - {key: "a b", operator: Exists}
>> watches.yaml:7:28: "operator" must be "In", "NotIn", "Exists" or "DoesNotExist", not the text "in" (did you mean "In"?)
>> watches.yaml:8:18: a requirement with the operator In needs "values"
>> watches.yaml:9:36: a requirement has "values", which the operator Exists does not compare with: remove them
>> watches.yaml:10:15: "key" must be a label like "app.kubernetes.io/name", not "a b"

== selector mixed
selector: {matchLabels: {a: b}, c: d}
>> watches.yaml:4:35: unknown key "c" in a selector

== selector empty
selector: {}
>> watches.yaml:4:13: "selector" is empty: to match everything, leave the key out

== selector text
selector: app=x
>> watches.yaml:4:13: "selector" must be a mapping of labels, or matchLabels and matchExpressions, not the text "app=x"

== observe with name and selector
observe:
  pods: {version: v1, kind: Pod}
  more: {version: v1, kind: Pod, name: a, selector: {a: b}}
>> watches.yaml:6:45: an observed resource has both "name" and "selector": remove one of them

== observe elsewhere
observe:
  pods: {version: v1, kind: Pod, name: a, namespace: other}
  here: {version: v1, kind: Pod, name: a, namespace: "{{ metadata.namespace }}"}
  also: {version: v1, kind: Pod, name: a, namespace: "{{ cr.metadata.namespace }}"}
>> watches.yaml:5:56: the observed resource "pods" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that

== child elsewhere
children:
  a: {template: a.yaml, namespace: "{{ spec.namespace }}"}
  b: {template: a.yaml, namespace: "{{ metadata.namespace }}-x"}
  c: {object: {apiVersion: v1, kind: Service, metadata: {name: c, namespace: other}}}
>> watches.yaml:5:38: the child "a" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:6:38: the child "b" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that
>> watches.yaml:7:80: the child "c" may be in another namespace than its CR: set `reach: cluster` in the watch to allow that

== one namespace
namespaces: [other]
children:
  a: {template: a.yaml, namespace: other}

== cluster scoped child
children:
  a: {object: {apiVersion: v1, kind: Namespace, metadata: {name: c}}}
>> watches.yaml:5:17: Namespace is a cluster-scoped kind: set `reach: cluster` in the watch to allow that

== own fields in an object
children:
  a:
    object:
      apiVersion: v1
      kind: Service
      metadata:
        generateName: x
        ownerReferences: []
        finalizers: [x]
        labels: {ruleop.dev/x: y}
        annotations: {ruleop.dev/owner: y}
      status: {}
  b: {object: {apiVersion: v1, kind: List, metadata: {name: x}, items: []}}
  c: {object: {kind: Service, metadata: {name: x}}}
  d: {object: {apiVersion: v1, kind: Service}}
  e: {object: {apiVersion: v1, kind: Service, metadata: "{{ spec.metadata }}"}}
>> watches.yaml:10:11: `metadata.generateName` is not allowed: set metadata.name: ruleop finds objects by name
>> watches.yaml:11:11: `metadata.ownerReferences` is set by ruleop or the API server: remove it
>> watches.yaml:12:11: `metadata.finalizers` is set by ruleop or the API server: remove it
>> watches.yaml:13:20: `metadata.labels['ruleop.dev/x']` is set by ruleop or the API server: remove it
>> watches.yaml:14:25: `metadata.annotations['ruleop.dev/owner']` is set by ruleop or the API server: remove it
>> watches.yaml:15:9: `status` is set by ruleop or the API server: remove it
>> watches.yaml:16:17: `kind: List` is not supported: make each item a child, or use a template with documents separated by `---`
>> watches.yaml:17:17: an object needs apiVersion, in plain text
>> watches.yaml:18:17: metadata.name of the object is missing

== names in an object
children:
  a: {object: {apiVersion: v1, kind: Service, metadata: {name: a..b}}}
  b: {object: {apiVersion: v1, kind: Service, metadata: {name: "a.-{{ metadata.name }}"}}}
  c: {object: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "a:b"}}}
>> watches.yaml:5:66: "a..b" is not valid: a name has up to 63 lowercase letters, digits and `-`, with a letter or digit at both ends

== dependsOn
children:
  a: {template: a.yaml, dependsOn: [bb, p, f]}
  b: {template: a.yaml}
observe:
  p: {version: v1, kind: Pod, name: a}
finalize:
  f: {template: a.yaml, dependsOn: [a]}
>> watches.yaml:5:39: no child has the id "bb" (the ids are "a" and "b")
>> watches.yaml:5:43: "a" cannot depend on the observed "p": use `waitFor` instead
>> watches.yaml:5:46: "a" cannot depend on "f": it exists only during deletion
>> watches.yaml:10:39: "f" cannot depend on "a": children are not rendered during deletion

== ignore paths
apply:
  ignore:
    - spec..replicas
    - {path: "spec.a[", when: spec.x}
    - {when: spec.x}
    - 3
>> watches.yaml:6:14: an ignored path "spec..replicas": expected the name of a field; names with special characters are written ['like this']
>> watches.yaml:7:24: "path" "spec.a[": expected a name or a value
>> watches.yaml:8:9: an ignored path needs the key "path"
>> watches.yaml:9:9: an ignored path must be a mapping, not the number 3

== ignore quoted
apply: {ignore: ["spec..replicas"]}
>> watches.yaml:4:26: an ignored path "spec..replicas": expected the name of a field; names with special characters are written ['like this']

== onImmutable
apply: {onImmutable: "{{ item }}"}
children:
  a: {template: a.yaml, forEach: spec.list, apply: {onImmutable: retry}}
  b: {template: a.yaml, apply: {onImmutable: "{{ 'recreate' if live.a else 'fail' }}"}}
  c: {template: a.yaml}
  d: {template: a.yaml, forEach: spec.list}
  e: {template: a.yaml, apply: {onImmutable: "{{ 'fail' if within('0 2 * * *', '2h') }}"}}
  f: {template: a.yaml, apply: {onImmutable: true}}
>> watches.yaml:4:28: `item` is available only with `forEach`, not in `apply.onImmutable`
>> watches.yaml:6:68: "onImmutable" must be "fail" or "recreate", not the text "retry"
>> watches.yaml:7:66: `apply.onImmutable` cannot read `live.`, only the CR, vars, let and observed objects
>> watches.yaml:10:62: `apply.onImmutable` cannot depend on the time, as `within` does: use it in `when`, or where it decides a value of a field
>> watches.yaml:11:48: "onImmutable" must be text, not the boolean true: put it in quotes

== deletion
children:
  a: {template: a.yaml, deletion: orfan}
  b: {template: a.yaml, deletion: "{{ 'orphan' if spec.keep else 'delete' }}"}
  c: {template: a.yaml, deletion: true}
>> watches.yaml:5:37: "deletion" must be "delete" or "orphan", not the text "orfan"
>> watches.yaml:7:37: "deletion" must be text, not the boolean true: put it in quotes

== conditions
conditions:
  - {type: Ready, status: spec.x}
  - {type: Fine, status: spec.x}
  - {type: Fine, status: spec.x}
  - {status: spec.x}
  - {type: 3, status: spec.x}
>> watches.yaml:5:14: the condition "Ready" is set by ruleop: choose another type
>> watches.yaml:7:14: the condition "Fine" is a duplicate
>> watches.yaml:8:7: a condition needs the key "type"
>> watches.yaml:9:14: "type" must be text, not the number 3: put it in quotes

== validate
validate:
  - {rule: spec.x}
  - {message: hello}
>> watches.yaml:5:7: a validation needs the key "message"
>> watches.yaml:6:7: a validation needs the key "rule"

== status fields of ruleop
status:
  conditions: []
  observedGeneration: 3
>> watches.yaml:5:5: status.conditions is set by ruleop: use "conditions" of the watch
>> watches.yaml:6:5: status.observedGeneration is set by ruleop: remove it

== status of another sort
status: [a]
>> watches.yaml:4:11: "status" must be a mapping of fields, or the name of a template, not a list

== status template
status: b.yaml
>> watches.yaml:4:11: templates/b.yaml does not exist (did you mean "a.yaml"?)

== builtin with status
-- watches.yaml
- version: v1
  kind: ConfigMap
  manageStatus: true
  status: {a: b}
>> watches.yaml:3:3: ConfigMap is a built-in kind, and ruleop never writes its status: remove "manageStatus"
>> watches.yaml:4:3: ConfigMap is a built-in kind, and ruleop never writes its status: remove "status"

== manageStatus false
manageStatus: false
status: {a: b}
>> watches.yaml:5:3: warning: "status" is never written, because of `manageStatus: false`

== include outside
-- watches.yaml
include: [../b.yaml, /etc/passwd]
watches:
- group: example.com
  version: v1
  kind: App
>> watches.yaml:1:11: "../b.yaml" is outside of the project: included files must be inside
>> watches.yaml:1:22: an included file must be a path inside the project, with / between its parts, not "/etc/passwd"

== include glob of nothing
-- watches.yaml
include: [rules/*.yaml]
watches:
- group: example.com
  version: v1
  kind: App
>> watches.yaml:1:11: warning: no file matches "rules/*.yaml"

== mistake in an included file
-- watches.yaml
include: [rules/*.yaml]
-- rules/a.yaml
- group: example.com
  version: v1
  kind: App
  reach: x
>> rules/a.yaml:4:10: "reach" must be "namespace" or "cluster", not the text "x"

== included file without watches
-- watches.yaml
include: [rules/*.yaml]
-- rules/a.yaml
vars: {a: 1}
>> rules/a.yaml: the file has no watches

== text that is a number
conditions: [{type: Fine, status: spec.x, message: 3}]
observe: {a: {version: v1, kind: Pod, name: 3}}
>> watches.yaml:4:54: "message" must be text, not the number 3: put it in quotes
>> watches.yaml:5:47: "name" must be text, not the number 3: put it in quotes

== templates with syntax mistakes
let: {a: "{{ spec.x", b: {c: ["{% if %}", "{{ spec.x | nope }}"]}}
children:
  a: {template: a.yaml, deletion: "{{ }"}
  b: {object: {apiVersion: v1, kind: Service, metadata: {name: "{{ spec. }}"}}}
status: {a: "{{ spec.x | b64enc }}"}
validate: [{rule: "spec.x >", message: "{{ x"}]
>> watches.yaml:4:12: template syntax: unexpected end of template, expected 'end of print statement'
>> watches.yaml:4:33: template syntax: Expected an expression, got 'end of statement block'
>> watches.yaml:4:45: unknown filter nope
>> watches.yaml:6:5: a child cannot be named "a": watches.yaml:4:9 has a let of that name; all ids and lets share one namespace
>> watches.yaml:6:37: template syntax: unexpected '}'
>> watches.yaml:7:5: a child cannot be named "b": watches.yaml:4:25 has a let of that name; all ids and lets share one namespace
>> watches.yaml:7:66: template syntax: expected name or number
>> watches.yaml:8:15: unknown filter b64enc; use b64encode
>> watches.yaml:9:21: template syntax: unexpected 'end of print statement'
>> watches.yaml:9:42: template syntax: unexpected end of template, expected 'end of print statement'

== a mapping is wanted
vars: [a]
let: [a]
children:
  a: {object: [a]}
  b: {template: a.yaml, apply: merge}
>> watches.yaml:4:9: "vars" must be a mapping, not a list
>> watches.yaml:5:8: "let" must be a mapping, not a list
>> watches.yaml:7:17: "object" must be a mapping, not a list
>> watches.yaml:8:34: "apply" must be a mapping, not the text "merge"

== a list is wanted
conditions: {type: Fine}
children: {a: {template: a.yaml, dependsOn: b}}
>> watches.yaml:4:15: "conditions" must be a list, not a mapping
>> watches.yaml:5:47: "dependsOn" must be a list, not the text "b"

== empty values
children:
  a:
    template:
    when:
reach:
>> watches.yaml:6:16: "template" must be the name of a file below templates/, not empty
>> watches.yaml:7:12: "when" must be an expression, not empty
>> watches.yaml:8:9: "reach" must be "namespace" or "cluster", not empty

== path of a field
apply: {ignore: [{path: 3}]}
>> watches.yaml:4:27: "path" must be the path of a field, not the number 3

== text of several lines
reach: |
  a
  b
>> watches.yaml:4:10: "reach" must be "namespace" or "cluster", not text

== yaml mistakes and others at once
children:
  a: &a {template: gone.yaml}
  b: *a
reach: x
>> watches.yaml:5:8: anchors are not allowed (&a): define a repeated value once under `vars` or `let`
>> watches.yaml:5:22: templates/gone.yaml does not exist
>> watches.yaml:6:8: aliases are not allowed (*a): write the value out, or define it once under `vars` or `let`
>> watches.yaml:6:8: the child "b" must be a mapping, not empty
>> watches.yaml:7:10: "reach" must be "namespace" or "cluster", not the text "x"

== forms of templates
children:
  a: {template: a.yaml, namespace: My_Namespace}
  b: {template: a.yaml, deletion: "{{ spec.deletion }}", namespace: "{{ metadata.namespace }}"}
conditions:
  - {type: A, status: spec.x, reason: not one word}
  - {type: B, status: spec.x, reason: "{{ spec.reason }}"}
>> watches.yaml:5:38: "namespace" must be a name of lowercase letters, digits and dashes, at most 63, not "My_Namespace"
>> watches.yaml:8:41: "reason" must be one word, like "Starting", not "not one word"

== computed names in a status
status:
  fine: {"{{ spec.x }}": 1}
  "{{ spec.x }}-at": 1
>> watches.yaml:6:5: a field of the status has a computed name, so ruleop could not remove it later: put it below a field with a fixed name

== namespaces that are too long
namespaces: [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb]
>> watches.yaml:4:81: a namespace must be a name of lowercase letters, digits and dashes, at most 63, not "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

== include of a missing file
-- watches.yaml
include: [rules/b.yaml]
watches:
- group: example.com
  version: v1
  kind: App
-- rules/a.yaml
- group: example.com
  version: v1
  kind: App
>> watches.yaml:1:11: the file "rules/b.yaml" does not exist (did you mean "rules/a.yaml"?)

== include within include
-- watches.yaml
include: [rules/a.yaml]
-- rules/a.yaml
include: [rules/b.yaml]
watches:
- group: example.com
  version: v1
  kind: App
>> rules/a.yaml:1:1: only watches.yaml may include files: name them there
"""),
    Row(
        "random values regenerated",
        watch("""
children:
  a: {template: a.yaml, rotateEvery: 90d}
  b: {object: {apiVersion: v1, kind: Secret, metadata: {name: b}}, apply: {strategy: create-only}, rotateEvery: 1d}
  c: {template: secret.yaml, apply: {strategy: create-only}, renewBefore: 720h}
  d: {template: secret.yaml, apply: {strategy: create-only}, rotateEvery: 30m}
  e: {template: secret.yaml, apply: {strategy: create-only}, rotateEvery: 1d, forEach: spec.a}
  f: {template: secret.yaml, apply: {strategy: create-only}, rotateEvery: 1 day}
  g: {template: two.yaml, apply: {strategy: create-only}, rotateEvery: 7d}
  h: {template: secret.yaml, rotateEvery: 7d}
finalize:
  i: {template: secret.yaml, apply: {strategy: create-only}, rotateEvery: 7d}
"""),
        [
            "templates/secret.yaml:4:21: `random_password` is random: only the body of a child with `apply: {strategy: create-only}` may use it",
            "watches.yaml:5:27: `rotateEvery` is for one of `children` with `apply: {strategy: create-only}`, a single Secret",
            "watches.yaml:6:102: `rotateEvery` regenerates random values, and the body calls none of genCA, genSelfSignedCert, genSignedCert, htpasswd, random_password",
            "watches.yaml:7:64: `renewBefore` regenerates certificates, and the body calls none of genCA, genSelfSignedCert, genSignedCert",
            'watches.yaml:8:77: "rotateEvery" must be at least 1h, not 30m',
            'watches.yaml:10:77: "rotateEvery": "1 day" is not a duration: write it like "10h", "1h30m" or "0s"',
            "watches.yaml:11:61: `rotateEvery` is for one of `children` with `apply: {strategy: create-only}`, a single Secret",
            "watches.yaml:12:32: `rotateEvery` is for one of `children` with `apply: {strategy: create-only}`, a single Secret",
            "watches.yaml:14:64: `rotateEvery` is for one of `children` with `apply: {strategy: create-only}`, a single Secret",
        ],
        {"templates/secret.yaml": RANDOM, "templates/two.yaml": f"{RANDOM}---\n{RANDOM}"},
    ),
    Row(
        "computed names in a status's template",
        watch("status: status.yaml"),
        [f"templates/status.yaml:2:1: {COMPUTED}"],
        files={"templates/status.yaml": "fine: {{ spec.x }}\n{{ spec.x }}: 1\n"},
    ),
    Row(
        "observe from a cluster-scoped resource",
        "- group: example.com\n  version: v1\n  kind: Global\n  reach: cluster\n  observe:\n"
        "    pods: {version: v1, kind: Pod, selector: {a: b}}\n"
        "    apps: {group: example.com, version: v1, kind: App, name: a}\n"
        "    said: {version: v1, kind: Pod, name: a, namespace: other}\n"
        "    node: {version: v1, kind: Node, name: a}\n"
        "    more: {group: x.io, version: v1, kind: Thing, name: a}\n"
        "- {version: v1, kind: Namespace, observe: {pods: {version: v1, kind: Pod, name: a}}}\n"
        "- {version: v1, kind: Pod, observe: {pods: {version: v1, kind: Pod, name: a}}}\n",
        [
            f'watches.yaml:{place}: the observed resource "{name}" needs a namespace because its CR is cluster-scoped: set `namespace`'
            for place, name in (("6:5", "pods"), ("7:5", "apps"), ("11:44", "pods"))
        ],
        files={"crds/globals.yaml": definition("Global", scope="Cluster")},
    ),
    Row(
        "fields in an object that only the API server sets",
        watch(
            "children:\n  a:\n    object:\n      apiVersion: v1\n      kind: Service\n      metadata:\n        name: x\n"
            + "".join(f"        {field}: x\n" for field in sorted(SERVER_METADATA))
        ),
        [
            f"watches.yaml:{line}:11: `metadata.{field}` is set by ruleop or the API server: remove it"
            for line, field in enumerate(sorted(SERVER_METADATA), 11)
        ],
    ),
)


@table(*ROWS)
def test_errors_in_keys_and_values_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


@pytest.mark.parametrize(
    "watches", ["[]\n", "watches: []\ninclude: [rules/*.yaml]\n", "include: [rules/*.yaml]\n", "vars: {a: 1}\n", "{}\n"]
)
def test_a_project_without_watches_is_refused_as_probably_incomplete(watches: str) -> None:
    assert "watches.yaml: the project has no watches; write `watches: []` if that is intended" in said(watches)


def test_an_explicit_empty_list_of_watches_is_allowed() -> None:
    """As before an operator is uninstalled."""
    assert said("watches: []\n") == [
        "watches.yaml:1:10: warning: the project has no watches: no custom resources are managed"
    ]
    assert load("watches: []\n").rules == ()


THIRTY = """\
vars:
  image: ${IMAGE}
  size: ${SIZE:-3}
let:
  spec: 1
watches:
  - group: example.com
    version: v1
    kind: App
    childs: {}
    reach: clustr
    reconcilePeriod: 30
    maxConcurrentReconciles: 0
    manageStatus: "no"
    selector: {}
    namespaces: []
    observe:
      pods: {version: v1, kind: Pod, forEach: spec.x}
      jobs: {version: batch/v1, kind: Job, name: x}
      far: {version: v1, kind: ConfigMap, name: x, namespace: other}
    children:
      loop: {template: a.yaml}
      pods: {template: a.yaml}
      gone: {template: gone.yaml}
      both: {template: a.yaml, object: {apiVersion: v1, kind: Service, metadata: {name: x}}}
      neither: {when: spec.x}
      when: {template: a.yaml, when: gone.x}
      typo: {template: a.yaml, waitFor: speck.x}
      selfish: {template: a.yaml, waitFor: selfish.x}
      broken: {template: broken.yaml}
      cluster: {object: {apiVersion: v1, kind: Namespace, metadata: {name: x}}}
      depends: {template: a.yaml, dependsOn: [clusters]}
      random: {object: {apiVersion: v1, kind: Secret, metadata: {name: x}, data: {x: "{{ random_password(8) }}"}}}
      ignores: {template: a.yaml, apply: {ignore: [spec..x]}}
    status:
      x: "{{ random.data.x }}"
      phase: "{{ status.phase }}"
    conditions:
      - {type: Ready, status: spec.x}
  - kind: App
    version: v1
    group: example.com
    name: b
"""


def test_thirty_errors_are_reported_at_once() -> None:
    files = {"templates/broken.yaml": SERVICE + "x: {{ spec.x | toYaml }}\n"}
    with pytest.raises(ProjectErrors) as caught:
        load(THIRTY, files, {"SIZE": "x"})
    assert str(caught.value).splitlines() == THIRTY_LINES


def test_errors_are_in_the_order_of_files_and_lines() -> None:
    files = {
        "rules/a.yaml": watch("x: 1\nname: a\nselector: {a: b}"),
        "rules/b.yaml": watch("y2: 1\nx: 1\nname: b\nselector: {a: c}"),
        "templates/a.yaml": SERVICE + "{{ nobody }}: 1\n",
    }
    lines = said(
        "include: [rules/*.yaml]\nwatches:\n" + watch("name: top\nselector: {a: d}\nchildren: {a: {template: a.yaml}}"),
        files,
    )
    places = [line.split(": ")[0] for line in lines]
    assert [place.split(":")[0] for place in places] == sorted(place.split(":")[0] for place in places)
    assert places == ["rules/a.yaml:4:3", "rules/b.yaml:4:3", "rules/b.yaml:5:3", "templates/a.yaml:4:4"]


def slips(word: str) -> st.SearchStrategy[str]:
    """A word with one slip of the pen in it."""
    places = st.integers(0, len(word) - 2)
    swapped = places.map(lambda at: word[:at] + word[at + 1] + word[at] + word[at + 2 :])
    dropped = places.map(lambda at: word[:at] + word[at + 1 :])
    doubled = places.map(lambda at: word[: at + 1] + word[at:])
    return st.one_of(swapped, dropped, doubled).filter(lambda slip: slip != word)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_a_misspelled_key_is_reported_with_a_suggestion(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from([WatchTable, ChildTable]))
    names = {known.name for _, known in keys(table)}
    meant = data.draw(st.sampled_from(sorted(name for name in names if len(name) > 4)))
    slip = data.draw(slips(meant).filter(lambda slip: slip not in names and nearest(slip, names) == meant))
    body = f"{slip}: 1" if table is WatchTable else f"children:\n  a: {{template: a.yaml, {slip}: 1}}"
    (line,) = [line for line in said(watch(body)) if "unknown key" in line]
    assert line.endswith(f'unknown key "{slip}" in {table.TITLE} (did you mean "{meant}"?)')


def test_every_key_has_a_description() -> None:
    for each in TABLES:
        for _, known in keys(each):
            assert known.doc.endswith((".", ")")), f"{each.DEFINITION}.{known.name}"
