"""The corpus of expensive passes: rules that `check` accepts, each with a custom resource of at most 1.5 MiB that makes
it as expensive as it can be.

`test_shapes` plans each of them and counts the bytes; `bench/core.py` prints the seconds and the memory that they take.
A shape that a search finds becomes an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ruleop.language.templates.values.cost import Account
from ruleop.planning import History, Plan, plan
from ruleop.planning.changes.drift import ENOUGH, FIRST, Reverted
from ruleop.planning.changes.writes import changes, field_paths
from tests.planning.harness import Harness

Json = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """One pass. `limit`: the words of the limit that it exceeds; empty: it fits. `prepare`: what exists before."""

    name: str
    body: str
    spec: Callable[[], Json]
    limit: str = ""
    files: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Harness], History] = lambda _: History.NONE
    reported_only: bool = False  # the limit is exceeded by the status, which does not stop the children
    slow: bool = False  # left to `make test-all`

    def harness(self) -> Harness:
        return Harness.of(self.body, self.spec(), **self.files)

    def prepared(self) -> Pass:
        harness = self.harness()
        history = self.prepare(harness)
        return Pass(harness, history)


@dataclass
class Pass:
    """One pass, which is to be measured."""

    harness: Harness
    history: History
    account: Account = field(default_factory=Account)

    def run(self) -> Plan:
        """Plans, and describes the plan as the log does."""
        assert self.harness.resource is not None
        planned = plan(
            self.harness.rule, self.harness.resource, self.harness.observed(), self.history, account=self.account
        )
        for action in planned.actions:
            field_paths(changes(action, self.harness, None), planned.uid)
        return planned


WORK = "too much work"
SIZE = "are allowed"
TIME = "more than a second of CPU time"

FROM_FILE = """
    children:
      a:
        template: a.yaml
"""
EACH = """
    children:
      a:
        forEach: "{{ spec['items'] }}"
        template: a.yaml
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
data:
"""
EACH_CONFIG = CONFIG.replace("name: a", "name: a-{{ index }}")


def template(text: str) -> dict[str, str]:
    return {"a": CONFIG + text}


def of_each(text: str) -> dict[str, str]:
    return {"a": EACH_CONFIG + text}


def texts(count: int, start: str = "item-") -> list[str]:
    return [f"{start}{number}" for number in range(count)]


# -- shapes that need objects which exist ------------------------------------------------------------------------------


def created(harness: Harness) -> History:
    """The children were created by earlier passes."""
    for _ in range(2):
        harness.execute(harness.plan().actions)
    return History.NONE


def in_conflict(harness: Harness) -> History:
    """A child whose list of environment variables was reverted several times, and has been changed again by a client
    that owns each entry."""
    created(harness)
    (found,) = harness.objects.values()
    container = found["spec"]["template"]["spec"]["containers"][0]
    container["env"][-1]["value"] += "!"
    harness.put(found)
    keys = {f'k:{{"name":"{each["name"]}"}}': {"f:value": {}} for each in container["env"]}
    fields: Json = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:env": keys}}}}}}
    managed = ({"manager": "somebody", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields},)
    (action,) = harness.plan().actions
    times = tuple(float(each) for each in range(ENOUGH))
    fields_of = frozenset({"spec.template.spec.containers"})
    reverted = Reverted(action.desired_digest, fields_of, times, altered=False, managed=managed, wait=FIRST)  # type: ignore[union-attr]
    return replace(History.NONE, drift={action.key: reverted})  # type: ignore[union-attr]


def in_conflict_with_many_fields(harness: Harness) -> History:
    """The same, and the client owns 30,000 more fields for each of the changes that it has made."""
    history = in_conflict(harness)
    ((key, found),) = history.drift.items()
    fields = {f"f:{number}": {"f:value": {}} for number in range(30_000)}
    more = ({"manager": f"m{number}", "fieldsV1": {"f:spec": {"f:template": fields}}} for number in range(20))
    return replace(history, drift={key: replace(found, managed=(*(found.managed or ()), *more))})


def with_ports_of_others(harness: Harness) -> History:
    """A Service to which another client has added as many ports as the rule sets."""
    created(harness)
    (found,) = harness.objects.values()
    found["spec"]["ports"] += [{"name": f"o{number}", "port": number, "protocol": "UDP"} for number in range(1, 4000)]
    found["spec"]["ports"][0]["targetPort"] = 1
    harness.put(found)
    return History.NONE


def with_edited_ports(harness: Harness) -> History:
    """A Service of which another client has changed the number of each port."""
    created(harness)
    (found,) = harness.objects.values()
    for each in found["spec"]["ports"]:
        each["port"] += 20_000
    harness.put(found)
    return History.NONE


def with_other_items(harness: Harness) -> History:
    """The children exist, and the resource is edited so that all of them change."""
    created(harness)
    assert harness.resource is not None
    harness.edit({"items": texts(len(harness.resource["spec"]["items"]), "other-")})
    return History.NONE


def with_other_args(harness: Harness) -> History:
    """A child whose list of equal arguments has another length."""
    created(harness)
    (found,) = harness.objects.values()
    found["spec"]["template"]["spec"]["containers"][0]["args"] = ["x"] * 9999 + ["y"] * 2
    harness.put(found)
    return History.NONE


def without_every_second(harness: Harness) -> History:
    """A child from whose list another client has removed every second item."""
    created(harness)
    (found,) = harness.objects.values()
    found["data"]["a"] = found["data"]["a"][::2]
    harness.put(found)
    return History.NONE


def filled_by_others(harness: Harness, number: int) -> None:
    for found in [each for each in harness.objects.values() if each["kind"] == "Deployment"]:
        (container,) = found["spec"]["template"]["spec"]["containers"]
        container["env"] += [{"name": f"other-{count}", "value": ""} for count in range(number)]
        harness.put(found)


def with_many_entries_of_others(harness: Harness) -> History:
    """Deployments into which another client has written thousands of environment variables."""
    created(harness)
    filled_by_others(harness, 20_000)
    return History.NONE


def with_addresses_of_others(harness: Harness) -> History:
    """Small Services, each with a list of 200 addresses that another client has written; all of them change."""
    created(harness)
    for found in list(harness.objects.values()):
        found["spec"]["externalIPs"] = [f"10.0.{number // 250}.{number % 250 + 1}" for number in range(200)]
        harness.put(found)
    assert harness.resource is not None
    harness.edit({"items": texts(len(harness.resource["spec"]["items"]), "other-")})
    return History.NONE


def with_a_changed_entry_among_many_of_others(harness: Harness) -> History:
    """The same, and it has changed one of the rule's own."""
    created(harness)
    for found in [each for each in harness.objects.values() if each["kind"] == "Deployment"]:
        found["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "other"
        harness.put(found)
    filled_by_others(harness, 20_000)
    return History.NONE


def deep(depth: int, leaf: str = "x") -> Json:
    """Mappings in mappings."""
    found: Json = {"a": leaf}
    for _ in range(depth):
        found = {"a": found}
    return found


def with_other_leaves(harness: Harness) -> History:
    """A child whose deep mappings all end in another value."""
    created(harness)
    assert harness.resource is not None
    harness.edit({"items": {name: deep(80, "y") for name in harness.resource["spec"]["items"]}})
    return History.NONE


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
        - name: c
          image: i
"""


USUAL_DEPLOYMENT = (
    DEPLOYMENT.replace("name: a\n", "name: a-{{ index }}\n", 1).replace("image: i", "image: '{{ item }}'")
    + """\
          imagePullPolicy: IfNotPresent
          ports: [{name: http, containerPort: 8080, protocol: TCP}]
          env: [{name: A, value: '{{ item }}'}, {name: B, value: x}, {name: C, value: y}, {name: D, value: z}]
          resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
          readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 5}
          securityContext: {runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
)
SERVICE = """
apiVersion: v1
kind: Service
metadata:
  name: a
spec:
  selector: {a: b}
  ports: {{ spec.ports }}
"""
EACH_SERVICE = """
apiVersion: v1
kind: Service
metadata:
  name: a-{{ index }}
spec:
  clusterIP: None
  selector: {a: '{{ item }}'}
"""


def once(name: str, spec: Callable[[], Json], limit: str, text: str, **more: Any) -> Shape:
    """One child, with this text in its template."""
    return Shape(name, FROM_FILE, spec, limit, template(text), **more)


def of_items(name: str, spec: Callable[[], Json], limit: str, text: str, **more: Any) -> Shape:
    """A child for each item, with this text in its template."""
    return Shape(name, EACH, spec, limit, of_each(text), **more)


SHAPES = [
    *(
        of_items(
            f"each text searched in each item: {expression}",
            lambda: {"items": list(range(4900)), "text": "a" * 2499, "sought": "a" * 1190 + "b" + "a" * 9},
            WORK,
            f"  a: '{{{{ {expression} | string | length }}}}'\n",
        )
        for expression in (
            "spec.text.find(spec.sought)",
            "spec.text.rfind(spec.sought)",
            "spec.text | replace(spec.sought, 'x')",
            "(spec.text | split(spec.sought))",
            "(spec.sought in spec.text)",
        )
    ),
    of_items(
        "the case of a large text in each item",
        lambda: {"items": list(range(1900)), "text": "1" * 1_000_000},
        WORK,
        "  a: '{{ spec.text is lower }}'\n",
    ),
    of_items(
        "the characters of a wide text in each item",
        lambda: {"items": list(range(1900)), "text": "\U0001f600" * 90_000},
        WORK,
        "  a: '{{ spec.text | list | length }}'\n",
    ),
    once(
        "a hint compares two long names",
        lambda: {"profiles": {"a" * 8000: 1}, "profile": "b" * 8000},
        "",
        "  a: '{{ spec.profiles[spec.profile] }}'\n",
    ),
    once(
        "a missing key beside similar ones",
        lambda: {"profiles": {f"production-environment-{number}": 1 for number in range(30_000)}},
        "",
        "  a: '{{ spec.profiles['production-environment-x'] }}'\n",
    ),
    of_items(
        "each item's template walks the list by a loop",
        lambda: {"items": texts(5000)},
        WORK,
        "  a: |\n    {% for each in spec['items'] %}{{ each }},{% endfor %}\n",
    ),
    of_items(
        "each item's template walks the list by map",
        lambda: {"items": texts(5000)},
        WORK,
        "  a: '{{ spec['items'] | map('upper') | join }}'\n",
    ),
    of_items(
        "a large text inside a longer scalar",
        lambda: {"items": list(range(400)), "text": "x" * 1_000_000},
        WORK,
        "  a: 'a {{ spec.text }}'\n",
    ),
    of_items(
        "a large text of wide characters",
        lambda: {"items": list(range(400)), "text": "\U0001f600" * 250_000},
        WORK,
        "  a: 'a {{ spec.text }}'\n",
    ),
    once(
        "regex_replace with the resource's replacement",
        lambda: {"text": "a" * 10_000, "by": r"\g<0>" * 2_000 + "x" * 1000},
        SIZE,
        "  a: '{{ spec.text | regex_replace('a', spec.by) }}'\n",
    ),
    Shape(
        "an object by its name, in a loop",
        """
        children:
          parts:
            forEach: "{{ spec['items'] }}"
            object:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "{{ item }}"}
          a:
            template: a.yaml
        """,
        lambda: {"items": texts(5000)},
        "",
        template("  a: '{% for each in spec['items'] %}{{ parts[each].metadata.name }}{% endfor %}'\n"),
        created,
    ),
    once(
        "a double loop",
        lambda: {"items": texts(5000)},
        WORK,
        "  a: '{% for x in spec['items'] %}{% for b in spec['items'] %}{% endfor %}{% endfor %}'\n",
    ),
    once(
        "a double loop with output",
        lambda: {"items": texts(5000)},
        WORK,
        "  a: '{% for x in spec['items'] %}{% for b in spec['items'] %}{{ b }}{% endfor %}{% endfor %}'\n",
    ),
    once(
        "a list of literal items",
        lambda: {"items": [0] * 90_000},
        WORK,
        "  a:\n{% for x in spec['items'] %}\n" + "  - 1\n" * 5 + "{% endfor %}\n",
    ),
    once("to_yaml of empty strings", lambda: {"items": [""] * 95_000}, "", "  a: 'x{{ spec['items'] | to_yaml }}'\n"),
    once(
        "to_yaml of empty strings, ten times",
        lambda: {"items": [""] * 95_000},
        WORK,
        "  a: '{% for x in range(10) %}{{ spec['items'] | to_yaml | length }}{% endfor %}'\n",
    ),
    once(
        "from_yaml of many keys",
        lambda: {"text": "\n".join(f"{number}a: 1" for number in range(120_000))},
        WORK,
        "  a: '{{ spec.text | from_yaml | length }}'\n",
    ),
    once(
        "recursive loops",
        lambda: {"items": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]},
        WORK,
        "  a: '{% for x in spec['items'] recursive %}{% if loop.depth < 7 %}{{ loop(spec['items']) }}"
        "{% endif %}{% endfor %}'\n",
    ),
    once(
        "nested groups in a pattern",
        lambda: {"text": "ab" * 400_000, "pattern": "(" * 400 + "a|b" + ")*" * 400},
        SIZE,
        "  a: '{{ spec.text | regex_replace(spec.pattern, 'x') | length }}'\n",
    ),
    once(
        "nested groups in a pattern that fits",
        lambda: {"text": "ab" * 500, "pattern": "(" * 400 + "a|b" + ")*" * 400},
        "",
        "  a: '{{ spec.text | regex_replace(spec.pattern, 'x') | length }}'\n",
    ),
    once(
        "many matches of nested groups",
        lambda: {"text": "ab" * 500_000, "pattern": "(" * 20 + "a" + ")" * 20},
        SIZE,
        "  a: '{{ spec.text | regex_findall(spec.pattern) | length }}'\n",
    ),
    once(
        "many matches that read the rest of the text",
        lambda: {"text": "ab" * 50_000, "pattern": "a.*z|a"},
        TIME,
        "  a: '{{ spec.text | regex_findall(spec.pattern) | length }}'\n",
    ),
    of_items("items that all fail", lambda: {"items": texts(5000)}, "", "  a: '{{ spec.missing[item] }}'\n"),
    Shape(
        "items that share a name",
        EACH,
        lambda: {"items": texts(5000)},
        "",
        template("  a: '{{ item }}'\n"),
    ),
    Shape(
        "objects that all fail, each in its own words",
        EACH,
        lambda: {"items": texts(5000)},
        "",
        {"a": EACH_CONFIG.replace("a-{{ index }}", "A-{{ index }}")},
    ),
    Shape(
        "objects that all have a problem of their own",
        """
        children:
          a:
            forEach: "{{ spec['items'] }}"
            readyWhen: "{{ this.data.ready[item] == 1 }}"
            object:
              apiVersion: v1
              kind: ConfigMap
              metadata: {name: "a-{{ index }}"}
              data: {ready: "no"}
        """,
        lambda: {"items": texts(5000)},
        "",
        {},
        created,
        slow=True,
    ),
    once(
        "256 patterns",
        lambda: {
            "text": "".join(f"{number:x}" for number in range(600)),
            "patterns": [f"[0-9a-f]*a[0-9a-f]{{9}}{number:03}" for number in range(256)],
        },
        "",
        "  a: '{% for p in spec.patterns %}{{ spec.text | regex_match(p) }}{% endfor %}'\n",
    ),
    Shape(
        "who else writes 4,000 environment variables",
        FROM_FILE,
        lambda: {"env": [{"name": f"name-{number}", "value": "x"} for number in range(4000)]},
        "",
        {"a": DEPLOYMENT + "          env: {{ spec.env }}\n"},
        in_conflict,
    ),
    Shape(
        "who else writes an environment variable, of clients with many fields",
        FROM_FILE,
        lambda: {"env": [{"name": "name", "value": "x"}]},
        "",
        {"a": DEPLOYMENT + "          env: {{ spec.env }}\n"},
        in_conflict_with_many_fields,
    ),
    Shape(
        "a difference of 10,000 equal arguments",
        FROM_FILE,
        lambda: {"args": ["x"] * 10_000},
        "",
        {"a": DEPLOYMENT + "          args: {{ spec.args }}\n"},
        with_other_args,
    ),
    Shape(
        "4,000 ports beside those of another client",
        FROM_FILE,
        lambda: {"ports": [{"name": f"p{number}", "port": number} for number in range(1, 4000)]},
        "",
        {"a": SERVICE},
        with_ports_of_others,
    ),
    Shape(
        "4,000 ports whose numbers another client has changed",
        FROM_FILE,
        lambda: {"ports": [{"name": f"p{number}", "port": number} for number in range(1, 4000)]},
        "",
        {"a": SERVICE},
        with_edited_ports,
    ),
    once(
        "fractions",
        lambda: {"items": [f"{number}.5Gi" for number in range(90_000)]},
        TIME,
        "  a: '{% for x in spec['items'] %}{{ (x | quantity) * 3 / 7 + (x | quantity) }}{% endfor %}'\n",
    ),
    once(
        "groups by an attribute that is missing, in a loop",
        lambda: {"items": texts(5000)},
        TIME,
        "  a: '{% for x in spec['items'] %}{{ spec['items'] | groupby('a', 'x') | length }}{% endfor %}'\n",
    ),
    once(
        "missing values in comments",
        lambda: {"items": texts(90_000)},
        "",
        "{% for x in spec['items'] %}\n  # {{ spec.q.w }}\n{% endfor %}\n  a: b\n",
    ),
    Shape(
        "5,000 Deployments",
        EACH,
        lambda: {"items": texts(5000)},
        "",
        {"a": DEPLOYMENT.replace("name: a\n", "name: a-{{ index }}\n", 1)},
    ),
    of_items(
        "an edit of 5,000 small children",
        lambda: {"items": texts(5000)},
        "",
        "  a: '{{ item }}'\n",
        prepare=with_other_items,
        slow=True,
    ),
    of_items(
        "an edit of 3,000 small children",
        lambda: {"items": texts(3000)},
        "",
        "  a: '{{ item }}'\n",
        prepare=with_other_items,
        slow=True,
    ),
    Shape(
        "an edit of 1,000 Deployments",
        EACH,
        lambda: {"items": texts(1000)},
        "",
        {"a": USUAL_DEPLOYMENT},
        with_other_items,
    ),
    Shape(
        "an edit of 2,000 Services whose addresses others have written",
        EACH,
        lambda: {"items": texts(2000)},
        "",
        {"a": EACH_SERVICE},
        with_addresses_of_others,
        slow=True,
    ),
    Shape(
        "an edit of 2,500 Services whose addresses others have written",
        EACH,
        lambda: {"items": texts(2500)},
        "",
        {"a": EACH_SERVICE},
        with_addresses_of_others,
        slow=True,
    ),
    Shape(
        "5 Deployments that others have filled",
        EACH,
        lambda: {"items": texts(5)},
        "",
        {"a": USUAL_DEPLOYMENT},
        with_many_entries_of_others,
    ),
    Shape(
        "5 Deployments that others have filled and changed",
        EACH,
        lambda: {"items": texts(5)},
        "",
        {"a": USUAL_DEPLOYMENT},
        with_a_changed_entry_among_many_of_others,
    ),
    once(
        "mappings inside printed mappings",
        lambda: {"items": texts(60_000)},
        WORK,
        "{% for x in spec['items'] %}\n  {{ {'k' ~ x: {'v': [[], [], [], [], [], []]}} }}\n{% endfor %}",
    ),
    once(
        "items of a mapping, kept by a loop",
        lambda: {"items": dict.fromkeys(texts(2000), "v")},
        WORK,
        "  a:\n  {% for x in spec['items'] %}\n  - {{ spec['items'].items() }}\n  {% endfor %}\n",
        slow=True,
    ),
    once(
        "dict2items of a mapping, kept by a loop",
        lambda: {"items": dict.fromkeys(texts(2000), "v")},
        WORK,
        "  a:\n  {% for x in spec['items'] %}\n  - {{ spec['items'] | dict2items }}\n  {% endfor %}\n",
    ),
    once(
        "short texts of a split, kept by a loop",
        lambda: {"items": texts(500), "text": "ab," * 2000},
        WORK,
        "  a:\n  {% for x in spec['items'] %}\n  - {{ spec.text.split(',') }}\n  {% endfor %}\n",
    ),
    of_items(
        "dict2items for each",
        lambda: {"items": dict.fromkeys(texts(2000), "v")},
        WORK,
        "  a: '{{ spec['items'] | dict2items }}'\n",
    ),
    of_items(
        "a mapping spread into each",
        lambda: {"items": dict.fromkeys(texts(2000), "v")},
        WORK,
        "  {{ spec['items'] }}\n",
    ),
    once(
        "a list spread in a loop",
        lambda: {"items": texts(2000)},
        "printed values",
        "  a:\n  {% for x in spec['items'] %}\n    - {{ spec['items'] }}\n  {% endfor %}\n",
    ),
    Shape(
        "small lists in a status",
        FROM_FILE + "    status: {a: \"{{ spec['items'] }}\"}\n",
        lambda: {"items": [[[[[]]]]] * 130_000},
        WORK,
        template("  a: b\n"),
        reported_only=True,
    ),
    once("small lists in a child", lambda: {"items": [[[[[]]]]] * 130_000}, WORK, "  a: {{ spec['items'] }}\n"),
    once(
        "small lists in a child that another client has changed",
        lambda: {"items": [[[[[]]]]] * 10_000},
        "",
        "  a: {{ spec['items'] }}\n",
        prepare=without_every_second,
    ),
    once(
        "deep mappings in a child",
        lambda: {"items": {f"a{number}": deep(80) for number in range(1000)}},
        WORK,
        "  a: {{ spec['items'] }}\n",
        slow=True,
    ),
    once(
        "deep mappings in a child that the resource changes",
        lambda: {"items": {f"a{number}": deep(80) for number in range(100)}},
        "",
        "  a: {{ spec['items'] }}\n",
        prepare=with_other_leaves,
    ),
]
