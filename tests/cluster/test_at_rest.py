"""An object as a real API server stores it does not differ from the desired one: after a restart, without any history,
nothing is written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane.cluster import ControlPlane
from controlplane.fixtures import Kubectl

from ruleop.kubernetes.builtin.table import builtin_kinds, builtin_resource, builtin_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import Learned, create_fields, normalise_desired, three_way
from ruleop.kubernetes.schema.shape import DERIVED, SERVER_DEFAULTS
from tests.cluster.in_memory import served_by
from tests.cluster.operator import Operator, Permissions, eventually
from tests.cluster.server import Client
from tests.definitions import ANYTHING, crd, fields, version

OBJECTS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("builtin.yaml").read_text())
NOT_MADE = {
    "answers to questions, which are not stored": {
        "Binding",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
        "TokenReview",
    },
    "kept by the cluster's own components": {
        "CSINode",
        "ComponentStatus",
        "Event",
        "IPAddress",
        "Node",
        "ResourceSlice",
        "VolumeAttachment",
    },
    "signed once for somebody who asks, with a key of his": {"CertificateSigningRequest"},
}
# What depends on other values of the object is beyond a kind's schema, and costs one write after a restart. The rich
# objects do without it.
COMPUTED: dict[str, dict[str, Any]] = {
    "default and defaultRequest are made of max": {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "computed"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
    },
    "a plugin of the server adds tolerations to those of a pod": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "computed"},
        "spec": {
            "containers": [{"name": "app", "image": "app:1"}],
            "tolerations": [{"key": "a", "operator": "Exists"}],
        },
    },
}


def path_of(kind: Kind) -> str:
    resource = builtin_resource(kind)
    assert resource is not None
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    return f"{root}/namespaces/default/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


@pytest.fixture(scope="module")
def stored(server: Client, serves: Callable[[Kind], bool]) -> dict[tuple[Kind, str], Any]:
    """All of them, as the server stores them. The last ones limit what may be made, so they go again; kinds of one's
    own are not made, for others would see them."""
    answers = {}
    for obj in OBJECTS:
        kind = Kind.of(obj)
        if not serves(kind):
            continue
        query = "fieldValidation=Strict" + (
            "&dryRun=All" if kind.kind in {"APIService", "CustomResourceDefinition"} else ""
        )
        answers[kind, obj["metadata"]["name"]] = server.post(f"{path_of(kind)}?{query}", normalise_desired(obj, kind))
    for obj in OBJECTS[-2:]:
        server.delete(f"{path_of(Kind.of(obj))}/{obj['metadata']['name']}")
    return answers


def test_every_built_in_kind_is_tested_or_excluded_with_a_reason() -> None:
    named = {kind.kind for kind in builtin_kinds()}
    assert named == {obj["kind"] for obj in OBJECTS} | set().union(*NOT_MADE.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`obj` is each object whose kind the server has."""
    if "obj" in metafunc.fixturenames:
        objects = [each for each in OBJECTS if served_by(metafunc.config)(Kind.of(each))]
        metafunc.parametrize("obj", objects, ids=lambda obj: f"{obj['apiVersion']} {obj['kind']}")


def test_a_full_object_of_each_kind_needs_no_change(stored: dict[tuple[Kind, str], Any], obj: dict[str, Any]) -> None:
    kind = Kind.of(obj)
    live, wanted, shape = stored[kind, obj["metadata"]["name"]], normalise_desired(obj, kind), builtin_shape(kind)
    assert shape is not None
    assert three_way(live, wanted, create_fields(wanted, shape), shape).object is live
    assert len(Learned.NOTHING.learn(wanted, live, shape)) == 0, "and nothing has to be remembered"


@pytest.mark.parametrize("reason", COMPUTED)
def test_values_computed_by_the_server_are_learned(server: Client, stored: object, reason: str) -> None:
    wanted = COMPUTED[reason]
    kind = Kind.of(wanted)
    shape = builtin_shape(kind)
    assert shape is not None
    path = path_of(kind)
    live = server.post(path, wanted)
    server.delete(f"{path}/computed?gracePeriodSeconds=0")
    fields = create_fields(wanted, shape)
    assert three_way(live, wanted, fields, shape).object is not live
    learned = Learned.NOTHING.learn(wanted, live, shape)
    assert three_way(live, wanted, fields, shape, learned=learned).object is live


@pytest.mark.real_server("the server in memory does not have all kinds")
def test_types_and_fields_of_the_tables_by_hand_exist(server: Client) -> None:
    """Nobody would miss them when a type is renamed."""
    schemas = server.schemas()
    named = {name: set(filled) for name, filled in SERVER_DEFAULTS.items()}
    for name, rows in DERIVED.items():
        for row in rows:
            holder = functools.reduce(lambda each, field: _type_of(schemas, each, field), row.within, name)
            named[holder] = named.get(holder, set()) | {row.field}
    known = {name: set(schemas.get(name, {}).get("properties") or ()) for name in named}
    assert {name: sorted(fields - known[name]) for name, fields in named.items() if fields - known[name]} == {}


def _type_of(schemas: dict[str, Any], name: str, field: str) -> str:
    """The type of a field, or of the items of a list."""
    schema = schemas[name]["properties"][field]
    reference: str = schema.get("items", schema)["allOf"][0]["$ref"]
    return reference.rpartition("/")[2]


STACK = fields(spec=fields(note={"type": "string"}), status=ANYTHING)
DEFINITION = crd("Stack", "rest.example.com", version("v1", STACK, subresources={"status": {}}))
MADE = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "PodTemplate",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
]


def test_a_restart_writes_nothing(
    control_plane: ControlPlane, serves: Callable[[Kind], bool], tmp_path: Path, namespace: str, kubectl: Kubectl
) -> None:
    children = [obj for obj in OBJECTS if obj["kind"] in MADE and serves(Kind.of(obj))]
    project = tmp_path / "rules"
    (project / "templates").mkdir(parents=True)
    (project / "crds").mkdir()
    (project / "crds" / "stacks.yaml").write_text(yaml.safe_dump(DEFINITION))
    for number, obj in enumerate(children):
        (project / "templates" / f"{number}.yaml").write_text(yaml.safe_dump(obj))
    templates = {f"child{number}": {"template": f"{number}.yaml"} for number in range(len(children))}
    watch = {"group": "rest.example.com", "version": "v1", "kind": "Stack", "children": templates}
    (project / "watches.yaml").write_text(yaml.safe_dump([watch]))
    control_plane.define(project / "crds" / "stacks.yaml")
    resources = sorted({_full_name(Kind.of(obj)) for obj in children})
    permissions = Permissions(
        watched=["stacks.rest.example.com"], children=resources, observed=["pods"]
    )  # which the Role grants
    with Operator(control_plane, project, permissions, tmp_path / "log") as operator:
        mark = operator.mark()
        stack = {
            "apiVersion": "rest.example.com/v1",
            "kind": "Stack",
            "metadata": {"name": "one", "namespace": namespace},
        }
        path = f"/apis/rest.example.com/v1/namespaces/{namespace}/stacks"
        operator.admin.post(path, stack)

        def reason() -> str:
            conditions = (operator.admin.get(f"{path}/one").get("status") or {}).get("conditions") or [{}]
            return str(conditions[0].get("reason", ""))

        eventually("all to be created", lambda: reason() in {"Ready", "Progressing"}, timeout=60)
        assert len({each for each in operator.writes(mark, namespace) if each.startswith("create")}) == len(children)
        assert operator.terminate() == 0
        mark, said = operator.mark(), len(operator.log())
        operator.start()
        looked = {"event": "reconciled", "resource": f"{namespace}/one"}
        eventually(
            "a look at it", lambda: any(looked.items() <= line.items() for line in operator.log()[said:]), timeout=60
        )
        assert [each for each in operator.writes(mark, namespace) if not each.startswith("patch stacks/status")] == []
        operator.check()


def _full_name(kind: Kind) -> str:
    resource = builtin_resource(kind)
    assert resource is not None
    return f"{resource.plural}.{kind.group}" if kind.group else resource.plural
