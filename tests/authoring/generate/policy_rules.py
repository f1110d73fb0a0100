"""Rules of `validate` that CEL can express exactly, a schema for them, and random custom resources that it admits.

The property of tests/authoring/generate and the comparison with a real API server (tests/cluster) share them.
"""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import strategies as st

from ruleop.authoring.offline import OfflineKinds, prepare
from ruleop.kubernetes.kinds import Object
from ruleop.language.rules import Project, Rule
from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.loading import Loaded
from ruleop.planning import FixedObjects, Observed, plan
from tests.definitions import definition

SPEC = """
type: object
properties:
  image: {type: string}
  replicas: {type: integer, minimum: 0, maximum: 100, default: 1}
  least: {type: integer, minimum: -10, maximum: 10}
  step: {type: integer, minimum: 1, maximum: 10, default: 1}
  count: {type: integer}
  other: {type: integer}
  ratio: {type: number}
  share: {type: number, minimum: 0, maximum: 1, default: 0.5}
  enabled: {type: boolean}
  strict: {type: boolean, default: false}
  size: {type: string, enum: [small, Large, XL], default: small}
  memory: {type: string, pattern: "^[1-9][0-9]*[MG]i$", default: 1Gi}
  tags: {type: array, items: {type: string}}
  ports: {type: array, items: {type: integer}, default: []}
  weights: {type: array, items: {type: number}}
  labels: {type: object, additionalProperties: {type: string}}
  limits: {type: object, additionalProperties: {type: integer}, default: {}}
  tls:
    type: object
    required: [host]
    properties:
      host: {type: string}
      secret: {type: string}
      inner: {type: object, properties: {deep: {type: integer}, active: {type: boolean}}}
  users:
    type: array
    items:
      type: object
      required: [name]
      properties:
        name: {type: string}
        role: {type: string}
        admin: {type: boolean}
        age: {type: integer}
        home: {type: object, properties: {path: {type: string}}}
"""
CRD = definition(
    "Widget",
    group="policy.example.com",
    spec=yaml.safe_dump(yaml.safe_load(SPEC), default_flow_style=True, width=1_000_000).strip(),
)
RULES = (
    "spec.replicas == 1 or 'sqlite' not in spec.image",
    "spec.image == 'nginx'",
    "spec.image | default('nginx') != ''",
    "spec.image | default('', true)",
    "spec.image is defined and spec.image",
    "not spec.image",
    "spec.image > 'n' or spec.replicas in [1, 2, 3]",
    "spec.image | length <= 3",
    "spec.image.startswith('n') or spec.image.endswith(spec.size)",
    "spec.image | default('') | regex_match('^[a-z]+$')",
    "spec.image | default('') | regex_match('^N|x$', ignorecase=true, multiline=true)",
    "(spec.image | default('a')) ~ '-' ~ spec.replicas in ['a-1', 'nginx-2']",
    "spec.image + 'x' == 'nginxx'",
    "spec.replicas % 2 == 1 and spec.replicas // 2 > 0",
    "spec.replicas * 2 + spec.least <= 20",
    "spec.replicas - spec.least != 1",
    "spec.replicas // spec.step >= spec.replicas % spec.step",
    "-spec.replicas < spec.least",
    "1 < spec.replicas <= 3",
    "spec.count == spec.other",
    "spec.count < spec.other or spec.count == 0",
    "spec.count > 1.5",
    "spec.count | default(3) in [1, 2, 3]",
    "spec.count is undefined or spec.count",
    "spec.ratio >= 1",
    "spec.ratio == 1",
    "spec.ratio in [0, 1, 2]",
    "spec.ratio | default(0.5) < spec.share",
    "spec.share < spec.replicas",
    "spec.replicas == spec.share",
    "spec.ratio",
    "spec.weights",
    "1 in spec.ports",
    "spec.enabled",
    "spec.enabled == spec.strict",
    "spec.enabled is defined and spec.enabled is true",
    "spec.strict is false or spec.enabled | default(true)",
    "not (spec.strict and spec.enabled)",
    "(spec.enabled or spec.strict) == true",
    "spec.enabled and spec.replicas > 1",
    "spec.replicas > 1 and spec.enabled",
    "spec.enabled or spec.replicas > 1",
    "spec.replicas > 1 or spec.enabled",
    "(spec.image or 'none') == 'none'",
    "(spec.image and 'some') == 'some'",
    "spec.size in ['small', 'XL']",
    "spec.size | lower == 'large' or spec.size.upper() == 'XL'",
    "spec.memory | quantity >= '512Mi' | quantity",
    "'1Gi' | quantity == spec.memory | quantity",
    "spec.tags | length == 1",
    "spec.tags",
    "not spec.tags | default([])",
    "spec.tags | default([]) | length < 3 and 'a' in spec.tags | default([])",
    "spec.image in spec.tags",
    "spec.tags[0] == 'a'",
    "spec.tags[1] | default('b') == 'b'",
    "spec.tags[0] is defined",
    "spec.tags | select('in', ['a', 'b'])",
    "not spec.tags | default([]) | reject('eq', 'a') | list",
    "spec.tags | select | list | length == spec.tags | length",
    "spec.ports | select('gt', 80) | list | length <= 1",
    "spec.ports[0] == 80",
    "spec.labels",
    "'app' in spec.labels",
    "spec.labels.app == 'web'",
    "spec.labels['a/b'] is defined",
    "spec.labels.app | default('web') == 'web'",
    "not spec.limits | select('in', ['cpu', 'memory']) | list",
    "spec.limits.cpu < 3",
    "spec.limits | length <= 1",
    "'tls' in spec",
    "spec.tls is defined",
    "spec.tls.secret is defined",
    "'secret' in spec.tls",
    "'host' in spec.tls",
    "spec.tls is not defined or spec.tls.host == 'a'",
    "spec.tls.host == 'a'",
    "spec.tls.inner.deep | default(0) == 0",
    "spec.tls.inner.deep == 0",
    "spec.tls.inner.active | default(false, true)",
    "spec.tls.secret | default(spec.image) == 'nginx'",
    "spec.tls.secret == 'a' if spec.tls is defined else spec.image == 'nginx'",
    "(1 if spec.strict else spec.replicas) == 1",
    "spec.users | map(attribute='name') | list | length < 3",
    "'root' not in spec.users | map(attribute='name')",
    "'owner' in spec.users | map(attribute='role')",
    "1 in spec.users | map(attribute='age') | list",
    "not spec.users | selectattr('role', 'eq', 'owner') | list",
    "spec.users | rejectattr('role', 'eq', 'owner') | list | length == 1",
    "spec.users | selectattr('role', 'undefined')",
    "spec.users | selectattr('role') | list | length == 1",
    "spec.users | selectattr('admin') | map(attribute='name') | list | length <= 1",
    "spec.users | selectattr('age', 'ge', 18)",
    "spec.users | selectattr('home.path', 'defined') | list",
    "spec.users | default([]) | selectattr('admin') | rejectattr('name', 'in', ['a', 'b']) | list | length == 0",
    "spec.users[0].role == 'owner'",
    "spec.users[0].home.path is defined",
    "metadata.name | length < 20",
    "metadata.name.upper().startswith('W') and metadata.namespace == 'default'",
    "metadata.labels.rule != 'x'",
    "'rule' in metadata.labels and metadata.labels.size | default('s') == 's'",
    "metadata.annotations is not defined or metadata.annotations.note == 'ä'",
    "cr.metadata.name == 'w'",
    "replicas > 1 or image == 'nginx'",
    "image is defined",
    "spec.size in vars.sizes or spec.replicas <= vars.most.replicas",
)
SHARED = """
vars:
  sizes: [small, XL]
  most: {replicas: 2}
let:
  replicas: "{{ spec.replicas }}"
  image: "{{ spec.image }}"
"""


def project() -> Loaded:
    """A watch for each rule, which selects the custom resources with its label."""
    watches = [
        {
            "group": "policy.example.com",
            "version": "v1",
            "kind": "Widget",
            "name": f"r{number}",
            "selector": {"matchLabels": {"rule": f"r{number}"}},
            "validate": [{"rule": rule, "message": f"rule {number} is broken"}],
            "children": {},
        }
        for number, rule in enumerate(RULES)
    ]
    text = yaml.safe_dump({**yaml.safe_load(SHARED), "watches": watches}, sort_keys=False)
    return build_with_sources({"watches.yaml": text, "crds/widgets.yaml": CRD}, root="", environ={})


def widget(spec: Object | None, number: int, **metadata: Any) -> dict[str, Any]:
    labels = {"rule": f"r{number}", **metadata.pop("labels", {})}
    found = {
        "apiVersion": "policy.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default", "labels": labels, **metadata},
    }
    return found if spec is None else {**found, "spec": spec}


def verdict(project: Project, rule: Rule, resource: Object) -> tuple[str, str]:
    """What the operator makes of a custom resource that was applied: it holds, is Invalid, or the rule fails."""
    stored, findings = prepare(project, resource)
    assert not findings
    kinds = OfflineKinds(project)
    ready = plan(rule, stored, Observed(FixedObjects(), kinds)).conditions.ready
    return {"Invalid": "broken", "RenderFailed": "fails"}.get(ready.reason, "holds"), ready.message


_TEXT = st.sampled_from(("", "a", "b", "nginx", "sqlite:1", "small", "Nx", "n\nx", "ä𝒳", "owner", "root", "K"))
_INTEGER = st.one_of(
    st.integers(-2, 4), st.sampled_from((80, 443, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)))
)
_NUMBER = st.one_of(st.integers(-1, 3), st.sampled_from((0.5, 1.5, -0.25, 1e300, 2**53 + 1)))
_KEYS = st.sampled_from(("app", "a/b", "cpu", "memory", "x"))


def _object(required: dict[str, Any] | None = None, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required or {}, optional=optional)


SPECS = st.none() | _object(
    image=_TEXT,
    replicas=st.integers(0, 5),
    least=st.integers(-10, 10),
    step=st.integers(1, 3),
    count=_INTEGER,
    other=_INTEGER,
    ratio=_NUMBER,
    share=st.sampled_from((0, 0.25, 0.5, 1)),
    enabled=st.booleans(),
    strict=st.booleans(),
    size=st.sampled_from(("small", "Large", "XL")),
    memory=st.sampled_from(("1Gi", "1024Mi", "511Mi", "512Mi")),
    tags=st.lists(_TEXT, max_size=3),
    ports=st.lists(_INTEGER, max_size=3),
    weights=st.lists(_NUMBER, max_size=2),
    labels=st.dictionaries(_KEYS, st.sampled_from(("web", "", "x")), max_size=2),
    limits=st.dictionaries(_KEYS, _INTEGER, max_size=2),
    tls=_object(
        {"host": _TEXT},
        secret=_TEXT,
        inner=_object(deep=st.integers(0, 1), active=st.booleans()),
    ),
    users=st.lists(
        _object(
            {"name": _TEXT},
            role=_TEXT,
            admin=st.booleans(),
            age=st.integers(0, 20),
            home=_object(path=_TEXT),
        ),
        max_size=3,
    ),
)
METADATA = st.one_of(
    st.just({}),
    _object(
        labels=_object(size=st.sampled_from(("s", "L", ""))),
        annotations=_object(note=st.sampled_from(("ä", "")), more=st.just("1")),
    ),
)
