"""`apply.own` names lists in which several writers may have items, of the kinds that its children have."""

from __future__ import annotations

import pytest

from tests.definitions import definition
from tests.language.rules.projects import said, watch
from tests.tables import cases

KINDS = {
    "Deployment": "apps/v1",
    "Ingress": "networking.k8s.io/v1",
    "Job": "batch/v1",
    "Service": "v1",
    "ConfigMap": "v1",
}
CUSTOM = definition(
    "Table",
    spec="{type: object, properties: {plain: {type: array, items: {type: string}}, "
    "set: {type: array, x-kubernetes-list-type: set, items: {type: string}}, "
    "keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], "
    "items: {type: object, required: [k], properties: {k: {type: string}}}}, "
    "open: {type: object, x-kubernetes-preserve-unknown-fields: true}}}",
)


def own(path: str, kind: str = "Service", **more: str) -> list[str]:
    api_version = KINDS.get(kind, "example.com/v1")
    body = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    extra = "".join(f", {name}: {value}" for name, value in more.items())
    watches = watch(f"children:\n  a:\n    template: k.yaml\n    apply: {{own: ['{path}']{extra}}}")
    return said(watches, {"templates/k.yaml": body, "crds/tables.yaml": CUSTOM})


@pytest.mark.parametrize(
    ("owned", "reasons"),
    cases("""
[Service, spec.ports]
[Deployment, spec.template.spec.containers]
[Deployment, "spec.template.spec.containers[name=app].env"]
[Deployment, spec.template.spec.volumes]
[Table, spec.keyed]
[Table, spec.set]
[Table, spec.open.anything]
[Unknown, spec.anything]
[Service, spec.prots]
>> Service has no such field: "prots" (did you mean ports?)
[Service, spec.selector]
>> this is not a list in Service
[Service, spec.clusterIP]
>> this is not a list in Service
[Service, spec.externalIPs]
>> Service replaces this list as a whole already: remove the path
[Service, "spec.ports[port=80]"]
>> this path selects an item: remove the selector
[Service, "spec[a=b].ports"]
>> [...] follows a list, and this is not a list in Service
[Service, metadata.finalizers]
>> the lists of metadata, such as finalizers, are shared with the API server and other controllers
[Deployment, spec.template.spec.containers.env]
>> "env" follows a list: select one of its items, like [name=...]
[Ingress, "spec.rules[host=a].http.paths"]
>> this is inside a list or map that Ingress replaces as a whole: remove the path
[Table, spec.plain]
>> Table replaces this list as a whole already: remove the path
[ConfigMap, data]
>> this is not a list in ConfigMap
[Job, spec.template.spec.containers]
>> the strategy create-only never updates the child, so it cannot remove items of others
"""),
)
def test_only_lists_merged_item_by_item_can_be_owned(owned: list[str], reasons: list[str]) -> None:
    kind, path = owned
    assert own(path, kind) == [f'watches.yaml:7:21: an owned path "{path}": {reason}' for reason in reasons]


def test_a_job_with_strategy_merge_can_own_lists() -> None:
    assert own("spec.template.spec.containers", "Job", strategy="merge") == []


def test_a_syntax_error_in_an_owned_path_is_reported_with_its_position() -> None:
    assert own("spec..ports") == [
        "watches.yaml:7:27: an owned path \"spec..ports\": expected the name of a field; names with special characters are written ['like this']"
    ]


CHILDREN = "children:\n  a: {template: a.yaml}\n  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}"


def test_an_owned_path_of_a_watch_must_fit_one_of_its_children() -> None:
    assert said(watch(f"apply: {{own: [spec.ports]}}\n{CHILDREN}")) == []
    assert said(watch(f"apply: {{own: [spec.prots]}}\n{CHILDREN}")) == [
        'watches.yaml:4:17: an owned path "spec.prots": Service has no such field: "prots" (did you mean ports?)'
    ]


def test_an_owned_path_of_the_file_must_fit_a_child_of_one_of_its_watches() -> None:
    other = {"crds/others.yaml": definition("Other")}
    watches = watch("children:\n  c: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}")
    second = watch("children:\n  a: {template: a.yaml}").replace("kind: App", "kind: Other")
    assert said(f"apply: {{own: [spec.ports]}}\nwatches:\n{watches}{second}", other) == []
