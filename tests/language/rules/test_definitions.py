"""The watched kinds against crds/."""

from __future__ import annotations

import json

import yaml

from tests.definitions import definition
from tests.language.rules.projects import Row, load, rows, said, table, watch

THEIRS = (
    "{type: object, properties: {size: {type: integer}, observedGeneration: {type: integer}, conditions: {type: array, items: {type: object, "
    "properties: {type: {type: string, enum: [Ready, Deleted]}, status: {type: string}, reason: {type: string}, message: {type: string}}}}}}"
)
"""A status that was made for another operator."""

ROWS = (
    *rows("""
== crd without version
-- watches.yaml
- group: example.com
  version: v1beta1
  kind: App
>> watches.yaml:2:12: App.example.com has no version v1beta1: it serves v1

== no crd
-- watches.yaml
- group: example.com
  version: v1
  kind: Apps
>> watches.yaml:3:9: crds/ has no CustomResourceDefinition of Apps.example.com (did you mean "App.example.com"?)

== a kind of another group
-- watches.yaml
- group: exmple.com
  version: v1
  kind: App
>> watches.yaml:3:9: crds/ has no CustomResourceDefinition of App.exmple.com (did you mean "App.example.com"?)

== a kind of another group that is watched too
-- watches.yaml
- {group: example.com, version: v1, kind: App}
- {group: other.org, version: v1, kind: App}
>> watches.yaml:2:41: warning: crds/ has no CustomResourceDefinition of App.other.org

== kinds that Kubernetes does not have
reach: cluster
children:
  a: {object: {apiVersion: apps/v1, kind: Deploymnt, metadata: {name: a}}}
  b: {template: b.yaml}
  c: {object: {apiVersion: cert-manager.io/v1, kind: Certificat, metadata: {name: a}}}
  d: {object: {apiVersion: example.com/v1, kind: App, metadata: {name: a}}}
  h: {object: {apiVersion: aps/v1, kind: Deployment, metadata: {name: a}}}
  i: {object: {apiVersion: "{{ 'policy/v1' if has_kind('policy/v1', 'PodDisruptionBudget') else 'policy/v1beta1' }}", kind: PodDisruptionBudget, metadata: {name: a}}}
  j: {object: {apiVersion: "{{ 'policy/v1' if spec.x else 'policy/v1beta1' }}", kind: PodDisruptionBudget, metadata: {name: a}}}
  k: {object: {apiVersion: "{{ 'batch/v1' if spec.x else 'apps/v1' }}", kind: "{{ 'CronJob' if spec.z else 'Deployment' }}", metadata: {name: a}}}
observe:
  e: {version: v1, kind: Pods, selector: {a: b}}
  f: {group: apps, version: v1, kind: Deployment, name: x}
  g: {group: apps, version: v1, name: x}
-- templates/b.yaml
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: x}
---
apiVersion: v1
kind: Service
metadata: {name: a}
>> templates/b.yaml:1:13: Kubernetes 1.36 has no policy/v1beta1 PodDisruptionBudget; there it is v1
>> watches.yaml:6:45: Kubernetes 1.36 has no apps/v1 Deploymnt (did you mean "Deployment"?)
>> watches.yaml:10:30: Kubernetes 1.36 has no API group "aps" (did you mean "apps"?)
>> watches.yaml:12:30: Kubernetes 1.36 has no policy/v1beta1 PodDisruptionBudget; there it is v1
>> watches.yaml:13:81: Kubernetes 1.36 has no apps/v1 CronJob: apiVersion and kind by different conditions have all combinations; choose both by one
>> watches.yaml:13:81: Kubernetes 1.36 has no batch/v1 Deployment: apiVersion and kind by different conditions have all combinations; choose both by one
>> watches.yaml:15:28: Kubernetes 1.36 has no v1 Pods (did you mean "Pod"?)
>> watches.yaml:17:8: an observed resource needs the key "kind"
"""),
    Row(
        "a misspelt field of a definition is one finding",
        "- {group: example.com, version: v1, kind: App}\n- {group: example.com, version: v1, kind: Bpp}\n",
        [
            "crds/apps.yaml:14:9: spec.versions[0].schema.openAPIV3schema: is an unknown field (did you mean openAPIV3Schema?)",
            "crds/b.yaml:11:7: spec.versions[0].storag: is an unknown field (did you mean storage?)",
        ],
        files={
            "crds/apps.yaml": definition().replace("openAPIV3Schema", "openAPIV3schema"),
            "crds/b.yaml": definition("Bpp").replace("storage: true", "storag: true"),
        },
    ),
    Row(
        "a misspelt field without which a definition cannot be read",
        "- {group: example.com, version: v1, kind: App}\n",
        ["crds/apps.yaml:7:3: spec.namess: is an unknown field (did you mean names?)"],
        files={"crds/apps.yaml": definition().replace("names:", "namess:")},
    ),
    Row(
        "crd broken",
        """\
- group: example.com
  version: v1
  kind: App

""",
        [
            "crds/b.yaml:3:1: spec.versions: must be a list with at least one version",
            "crds/c.yaml:1:1: warning: ignored: this document in crds/ is not a CustomResourceDefinition",
            "crds/d.yaml:2:1: not YAML: a value is missing here, or a bracket or brace is not closed",
            "crds/e.yaml:1:1: apps.example.com is defined twice in crds/",
        ],
        files={
            "crds/b.yaml": """\
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
spec:
  names: {kind: X}
""",
            "crds/c.yaml": """\
kind: Kustomization
""",
            "crds/d.yaml": "a: [",
            "crds/e.yaml": definition(),
        },
    ),
    Row(
        "crd not served",
        """\
- group: example.com
  version: v1
  kind: App

""",
        [
            "watches.yaml:2:12: App.example.com does not serve its version v1",
        ],
        files={"crds/apps.yaml": definition().replace("served: true", "served: false")},
    ),
    Row(
        "status room",
        watch("""
status:
  size: "{{ spec.x }}"
  other: "{{ spec.x }}"
  deep: {a: "{{ spec.x }}", b: "{{ spec.x }}", "{{ spec.key }}": x}
"""),
        [
            "watches.yaml:3:9: the CRD of App has no status.conditions, so the API server drops the field: add it to the schema",
            "watches.yaml:3:9: the CRD of App has no status.observedGeneration, so the API server drops the field: add it to the schema",
            "watches.yaml:6:5: the CRD of App has no status.other, so the API server drops the field: add it to the schema",
            "watches.yaml:7:31: the CRD of App has no status.deep.b, so the API server drops the field: add it to the schema",
        ],
        files={
            "crds/apps.yaml": definition(
                status="{type: object, properties: {size: {type: integer}, deep: {type: object, properties: {a: {type: string}}}}}"
            )
        },
    ),
    Row(
        "status room not wanted",
        watch("manageStatus: false"),
        [],
        files={
            "crds/apps.yaml": definition(
                status="{type: object, properties: {size: {type: integer}, deep: {type: object, properties: {a: {type: string}}}}}"
            )
        },
    ),
    Row(
        "no status subresource",
        watch(""),
        [
            "watches.yaml:3:9: warning: the CRD of App has no status subresource: ruleop writes the status with the resource itself, and no observedGeneration",
            "watches.yaml:3:9: the CRD of App has no status.conditions, so the API server drops the field: add it to the schema",
        ],
        files={
            "crds/apps.yaml": definition(
                status="{type: object, properties: {size: {type: integer}, deep: {type: object, properties: {a: {type: string}}}}}",
                subresource=False,
            )
        },
    ),
    Row(
        "conditions of another operator",
        watch("""
status: {size: 1}
conditions:
  - {type: Deleted, status: "true"}
  - {type: Big, status: "true"}
"""),
        [
            'watches.yaml:3:9: warning: the CRD of App does not allow the conditions Reconciling, Stalled, so they are left out: type: must be one of "Ready", "Deleted"',
            "watches.yaml:3:9: warning: the CRD of App has no status.conditions[].lastTransitionTime, status.conditions[].observedGeneration: ruleop writes conditions without",
            'watches.yaml:7:7: the CRD of App does not allow the condition Big, so it is left out: type: must be one of "Ready", "Deleted"',
        ],
        files={"crds/apps.yaml": definition(status=THEIRS)},
    ),
    Row(
        "required fields of the status",
        watch("status: {size: 1}"),
        [
            "watches.yaml:4:11: the CRD of App requires status.phase, and no status is written without: set each in `status` of the rule",
        ],
        files={
            "crds/apps.yaml": definition(
                status="{type: object, required: [size, phase, mode, conditions], x-kubernetes-preserve-unknown-fields: true, properties: {mode: {type: string, default: a}}}"
            )
        },
    ),
    Row(
        "a generation that has to be a string",
        watch(),
        [
            "watches.yaml:3:9: warning: the CRD of App does not allow ruleop's status.observedGeneration: must be a string, not 1, so it is left out",
        ],
        files={
            "crds/apps.yaml": definition(
                status="{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {observedGeneration: {type: string}}}"
            )
        },
    ),
    Row(
        "required conditions that are something else",
        watch(),
        [
            "watches.yaml:3:9: warning: the CRD of App does not allow the conditions Ready, Reconciling, Stalled, so they are left out: conditions: must be an object, not a list",
            "watches.yaml:3:9: the CRD of App requires status.conditions and allows none that ruleop writes, so no status is written: set `manageStatus: false`",
        ],
        files={
            "crds/apps.yaml": definition(
                status="{type: object, required: [conditions], x-kubernetes-preserve-unknown-fields: true, properties: {conditions: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"
            )
        },
    ),
    Row(
        "definitions that are none",
        """\
- group: example.com
  version: v1
  kind: App

""",
        [
            "crds/a.yaml:1:1: warning: ignored: this document in crds/ is not a CustomResourceDefinition",
            "crds/b.yaml:17:20: spec.versions[0].schema.openAPIV3Schema.properties.spec.type: must be one of array, boolean, integer, number, object, string, not 'objekt' (did you mean object?)",
            "crds/b.yaml:18:22: spec.versions[0].schema.openAPIV3Schema.properties.status.type: must be one of array, boolean, integer, number, object, string, not 'objekt' (did you mean object?)",
            "crds/c.yaml:7:26: spec.versions[1]: must be a mapping",
        ],
        files={
            "crds/a.yaml": """\
- a
""",
            "crds/b.yaml": definition("Bpp", spec="{type: objekt}", status="{type: objekt}"),
            "crds/c.yaml": """\
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
spec:
  group: x.y
  scope: Namespaced
  names: {kind: X, plural: xs}
  versions: [{name: v1}, 3]
""",
        },
    ),
)


@table(*ROWS)
def test_errors_in_definitions_are_reported_with_their_positions(row: Row) -> None:
    assert said(row.watches, row.files, row.environ) == row.said


def with_anchors() -> str:
    """App's definition as a tool writes it that repeats a value by its anchor."""
    found = yaml.safe_load(definition())
    version = found["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = version["schema"]["openAPIV3Schema"]["properties"][
        "spec"
    ]
    text = yaml.safe_dump(found)
    assert "&id001" in text
    return text


def test_definitions_may_use_anchors_or_json():
    for name, text in {"apps.yaml": with_anchors(), "apps.json": json.dumps(yaml.safe_load(definition()))}.items():
        project = load(watch("status: {a: b}"), {"crds/apps.yaml": "", f"crds/{name}": text})
        assert [crd.kind for crd in project.crds] == ["App"]


def test_a_definition_in_json_with_an_emoji_and_a_long_key_is_read():
    found = yaml.safe_load(definition())
    found["metadata"]["annotations"] = {"k" * 2000: "\U0001f600"}
    (crd,) = load(watch(), {"crds/apps.yaml": json.dumps(found)}).crds
    assert crd.kind == "App"
