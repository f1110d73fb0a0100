"""The official Python client gets the same answers from both servers: the typed API, the dynamic one, a watch,
apply."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

from tests.cluster.clients.normalise import normalised
from tests.cluster.clients.sides import FILES, Side, Sides
from tests.definitions import crd, fields, version

pytestmark = pytest.mark.real_server("its answers are compared")

APPLY = "application/apply-patch+yaml"


class Conversation:
    """The answers of one server."""

    def __init__(self, side: Side, namespace: str) -> None:
        self.namespace = namespace
        self.api = config.new_client_from_config(str(side.kubeconfig))
        self.core, self.apps = client.CoreV1Api(self.api), client.AppsV1Api(self.api)
        self.heard: list[str] = []

    def ask(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            answer = call(*arguments, **named)
        except ApiException as error:
            status = json.loads(error.body)
            self.hear({"status": error.status, "reason": status["reason"], "message": status["message"]})
            return None
        self.hear(answer)
        return answer

    def hear(self, answer: Any) -> None:
        plain = answer.to_dict() if hasattr(answer, "to_dict") else self.api.sanitize_for_serialization(answer)
        self.heard.append(normalised(json.dumps(plain, indent=1, sort_keys=True, default=str)))


def settings(colour: str, name: str = "settings") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"colour": colour}}


def typed(said: Conversation) -> None:
    core, apps = said.core, said.apps
    said.ask(core.create_namespaced_config_map, said.namespace, settings("blue"))
    said.ask(core.create_namespaced_config_map, said.namespace, settings("blue"))
    found = said.ask(core.read_namespaced_config_map, "settings", said.namespace)
    said.ask(core.patch_namespaced_config_map, "settings", said.namespace, {"data": {"size": "large"}})
    said.ask(core.patch_namespaced_config_map, "settings", said.namespace, [{"op": "remove", "path": "/data/size"}])
    said.ask(core.replace_namespaced_config_map, "settings", said.namespace, found)  # of an old version
    said.ask(core.read_namespaced_config_map, "nothing", said.namespace)
    said.ask(core.list_namespaced_config_map, said.namespace, field_selector="metadata.name=settings")
    said.ask(core.list_namespaced_config_map, said.namespace, label_selector="a b")
    deployment = yaml.safe_load((FILES / "web.yaml").read_text().partition("---")[0])
    said.ask(apps.create_namespaced_deployment, said.namespace, deployment, dry_run="All")
    apps.create_namespaced_deployment(said.namespace, deployment)
    for event in watch.Watch().stream(apps.list_namespaced_deployment, said.namespace, timeout_seconds=30):
        if (event["object"].status.available_replicas or 0) == 2:
            break
    said.ask(apps.read_namespaced_deployment_scale, "web", said.namespace)
    said.ask(apps.patch_namespaced_deployment_scale, "web", said.namespace, {"spec": {"replicas": 1}})
    said.ask(core.delete_namespaced_config_map, "settings", said.namespace)
    said.ask(core.delete_namespaced_config_map, "settings", said.namespace)
    said.ask(core.delete_namespaced_config_map, "nothing", said.namespace, body=client.V1DeleteOptions(dry_run=["All"]))


def watched(said: Conversation) -> None:
    core = said.core
    version = core.list_namespaced_config_map(said.namespace).metadata.resource_version
    core.create_namespaced_config_map(said.namespace, settings("blue", "watched"))
    core.patch_namespaced_config_map("watched", said.namespace, {"data": {"colour": "red"}})
    core.patch_namespaced_config_map("watched", said.namespace, {"metadata": {"labels": {"seen": "yes"}}})
    core.delete_namespaced_config_map("watched", said.namespace)
    stream = watch.Watch().stream
    for selector in ("", "seen=yes"):
        events = stream(
            core.list_namespaced_config_map,
            said.namespace,
            resource_version=version,
            label_selector=selector,
            timeout_seconds=2,
        )
        for event in events:
            said.hear([event["type"], event["raw_object"]])


def applied(said: Conversation) -> None:
    apply = said.core.patch_namespaced_config_map
    named = {"_content_type": APPLY}
    said.ask(apply, "applied", said.namespace, settings("blue", "applied"), field_manager="first", **named)
    said.ask(apply, "applied", said.namespace, settings("red", "applied"), field_manager="second", **named)
    said.ask(apply, "applied", said.namespace, settings("red", "applied"), field_manager="second", force=True, **named)
    said.ask(apply, "applied", said.namespace, settings("red", "applied"), **named)
    said.ask(apply, "applied", said.namespace, {"data": {}}, field_manager="second", **named)


def dynamically(said: Conversation) -> None:
    client.ApiextensionsV1Api(said.api).create_custom_resource_definition(definition())
    definitions = dynamic.DynamicClient(said.api).resources.get(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
    )
    for event in definitions.watch(field_selector="metadata.name=gadgets.python.example.com", timeout=30):
        conditions = event["raw_object"].get("status", {}).get("conditions") or []
        if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            break
    gadgets = dynamic.DynamicClient(said.api).resources.get(api_version="python.example.com/v1", kind="Gadget")
    said.hear(sorted(gadgets.subresources))
    gadget = {"apiVersion": "python.example.com/v1", "kind": "Gadget", "metadata": {"name": "one"}, "spec": {"size": 1}}
    said.ask(gadgets.create, body=gadget, namespace=said.namespace)
    said.ask(
        gadgets.create, body={**gadget, "spec": {"size": "big"}, "metadata": {"name": "two"}}, namespace=said.namespace
    )
    said.ask(gadgets.get, name="one", namespace=said.namespace)
    said.ask(gadgets.get, namespace=said.namespace)
    merge = "application/merge-patch+json"
    said.ask(gadgets.patch, name="one", namespace=said.namespace, body={"spec": {"size": 2}}, content_type=merge)
    status = {"status": {"ready": True}}
    said.ask(gadgets.status.patch, name="one", namespace=said.namespace, body=status, content_type=merge)
    changed = {**gadget, "spec": {"size": 3}}
    said.ask(gadgets.server_side_apply, body=changed, namespace=said.namespace, field_manager="python")
    said.ask(
        gadgets.server_side_apply, body=changed, namespace=said.namespace, field_manager="python", force_conflicts=True
    )
    custom = client.CustomObjectsApi(said.api)
    said.ask(custom.list_namespaced_custom_object, "python.example.com", "v1", said.namespace, "gadgets")
    said.ask(custom.get_namespaced_custom_object, "python.example.com", "v1", said.namespace, "gadgets", "nothing")
    said.ask(gadgets.delete, name="one", namespace=said.namespace)
    deleted = definitions.delete(name="gadgets.python.example.com").to_dict()
    said.hear([deleted["metadata"]["generation"], sorted(deleted["metadata"]), deleted["status"]])


def definition() -> dict[str, Any]:
    schema = fields(spec=fields(size={"type": "integer"}), status=fields(ready={"type": "boolean"}))
    return crd("Gadget", "python.example.com", version("v1", schema, subresources={"status": {}}))


@pytest.mark.parametrize("talk", [typed, watched, applied, dynamically], ids=lambda talk: talk.__name__)
def test_the_python_client_gets_the_same_answers_from_both_servers(
    sides: Sides, talk: Callable[[Conversation], None]
) -> None:
    namespace = f"python-{talk.__name__}"
    list(sides.tell([], namespace))
    conversations = [Conversation(side, namespace) for side in sides.sides]
    for said in conversations:
        talk(said)
    real, local = conversations
    assert local.heard == real.heard, "\n".join(
        line
        for expected, found in zip(real.heard, local.heard, strict=False)
        for line in difflib.unified_diff(expected.splitlines(), found.splitlines(), "real", "in memory", lineterm="")
    )
