"""A misspelt path of `apply` does nothing: an ignored field is reverted for ever."""

from __future__ import annotations

import pytest

from tests.authoring.checking.projects import said
from tests.language.rules.projects import HEAD, watch
from tests.language.rules.test_owned_lists import CUSTOM, KINDS


def body(kind: str) -> str:
    return f"apiVersion: {KINDS.get(kind, 'example.com/v1')}\nkind: {kind}\nmetadata: {{name: '{{{{ metadata.name }}}}'}}\n"


def ignoring(ignore: str, kind: str = "Deployment") -> list[str]:
    files = {"templates/k.yaml": body(kind), "crds/tables.yaml": CUSTOM}
    found = said(watch(f"children:\n  a:\n    template: k.yaml\n    apply: {{ignore: [{ignore}]}}"), files)
    return [each for each in found if "ignored path" in each]


@pytest.mark.parametrize(
    ("kind", "path", "reason"),
    [
        ("Deployment", "spec.replica", 'Deployment has no such field: "replica" (did you mean replicas?)'),
        ("Deployment", "replicas", 'Deployment has no such field: "replicas" (did you mean spec.replicas?)'),
        ("Deployment", "spec.replicas.value", 'Deployment has no such field: "value"'),
        ("Deployment", "metadata.annotation", 'Deployment has no such field: "annotation" (did you mean annotations?)'),
        (
            "Deployment",
            "spec.template.spec.containers.image",
            '"image" follows a list: select one of its items, like [name=...]',
        ),
        (
            "Deployment",
            "spec.template.spec.containers[name=app].imgae",
            'Deployment has no such field: "imgae" (did you mean image?)',
        ),
        (
            "Deployment",
            "spec.template.spec.containers[nam=app].image",
            'Deployment has no such field: "nam" (did you mean name?)',
        ),
        ("Deployment", "spec.template[a=b]", "[...] follows a list, and this is not a list in Deployment"),
        ("ConfigMap", "spec.nope", 'ConfigMap has no such field: "spec"'),
        ("Table", "spec.plian", 'Table has no such field: "plian" (did you mean plain?)'),
    ],
)
def test_a_path_that_the_kind_does_not_have_is_an_error(kind: str, path: str, reason: str) -> None:
    assert ignoring(f"'{path}'", kind) == [f'RO403 watches.yaml:7:24: an ignored path "{path}": {reason}']


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", "spec.replicas"),
        ("Deployment", "metadata.annotations['example.com/a']"),
        ("Deployment", "metadata.labels.a"),
        ("Deployment", "metadata.ownerReferences"),
        ("Deployment", "spec.template.spec.containers[name=app].image"),
        ("Deployment", "spec.template.spec.containers[name=app].resources.limits.memory"),
        ("Service", "spec.ports[port=53,protocol=UDP].nodePort"),
        ("ConfigMap", "data['a.b']"),
        ("Job", "spec.parallelism"),
        ("Table", "spec.plain"),
        ("Table", "metadata.annotations.a"),
        ("Table", "spec.keyed[k=a].k"),
        ("Table", "spec.open.anything.at.all"),
        ("Unknown", "spec.anything"),
    ],
)
def test_a_path_of_the_kind_is_not_reported(kind: str, path: str) -> None:
    assert ignoring(f'"{path}"', kind) == []


def test_a_path_with_a_condition_is_reported_at_the_path() -> None:
    (found,) = ignoring("{when: true, path: spec.replica}")
    assert found.startswith('RO403 watches.yaml:7:37: an ignored path "spec.replica": ')


def test_a_shared_path_needs_one_child_with_the_field() -> None:
    files = {"templates/k.yaml": body("Deployment"), "templates/s.yaml": body("Service")}
    children = "children: {a: {template: k.yaml}, b: {template: s.yaml}}"

    def shared(path: str) -> list[str]:
        watches = f"apply: {{ignore: [{path}]}}\nwatches:\n" + HEAD + f"  {children}\n"
        return [each for each in said(watches, files) if "ignored path" in each]

    assert shared("spec.clusterIP") == []
    assert shared("spec.replicas") == []
    assert shared("spec.replica") == [
        'RO403 watches.yaml:1:18: an ignored path "spec.replica": Deployment has no such field: "replica" (did you mean replicas?)'
    ]


def test_an_owned_path_selects_items_by_a_field_that_they_have() -> None:
    files = {"templates/k.yaml": body("Deployment")}

    def owning(key: str) -> list[str]:
        own = f"spec.template.spec.containers[{key}=app].env"
        found = said(watch(f"children: {{a: {{template: k.yaml, apply: {{own: ['{own}']}}}}}}"), files)
        return [each for each in found if "owned path" in each]

    assert owning("name") == []
    (found,) = owning("nam")
    assert found.startswith('RO403 watches.yaml:4:50: an owned path "spec.template.spec.containers[nam=app].env": ')
    assert found.endswith('Deployment has no such field: "nam" (did you mean name?)')
