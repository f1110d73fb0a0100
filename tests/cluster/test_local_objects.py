"""The functions of the API server in memory over objects are held to the real API server.

A story is a sequence of writes to one object by several managers: created, applied, replaced and patched in every way.
At each step, the stored object and its managedFields have to be those that our functions make of the object before and
the request; where the real server refuses with a conflict, the server in memory has the same causes.

    RULEOP_OBJECTS_EXAMPLES=500 pytest ... tests/cluster/test_local_objects.py     other stories each time, and that
    many for each kind
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.kinds import Kind
from ruleop.kubernetes.merge import same
from ruleop.localcluster.api.requests import field_selector, label_selector
from ruleop.localcluster.objects.decoding import DecodingError, decode, strict_problem, undecodable, unknown_field
from ruleop.localcluster.objects.patches import json_patch, merge_patch, strategic_merge_patch
from ruleop.localcluster.objects.server_side_apply import (
    LAST_APPLIED,
    ApplyConflictError,
    Tracking,
    apply,
    keep_unchanged,
    track_update,
)
from ruleop.localcluster.objects.typed import NotTypedError, check_typed
from ruleop.localcluster.status_errors import Rejected
from tests.cluster import everything, objects
from tests.cluster.objects import Subject
from tests.cluster.operator import eventually
from tests.cluster.server import APPLY, MERGE, Client, RefusedError
from tests.localcluster.objects.kinds import tracking_of

pytestmark = pytest.mark.real_server("it says what the server in memory should do")

JSON = Any
EXAMPLES = int(os.environ.get("RULEOP_OBJECTS_EXAMPLES", "0"))
STORIES = settings(
    max_examples=EXAMPLES or 60,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
SUBJECTS = [objects.DEPLOYMENT, objects.SERVICE, objects.CONFIG_MAP, objects.EVERYTHING]
# Set when the object is stored, after its fields are tracked.
ALLOCATED = frozenset({"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"})
TYPE_DEPENDENT = ("f:externalTrafficPolicy", "f:allocateLoadBalancerNodePorts")
# By what items are merged, in either way.
KEYS = (
    "name",
    "containerPort",
    "port",
    "protocol",
    "uid",
    "mountPath",
    "devicePath",
    "ip",
    "topologyKey",
    "key",
    "host",
)
MEDIA = {
    "merge": MERGE,
    "put": MERGE,
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
OF_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
NUMBERS = itertools.count()


@dataclass(frozen=True)
class Step:
    verb: str  # apply, put, merge, strategic, json
    manager: str
    force: bool
    body: JSON


@st.composite
def stories(draw: Any, subject: Subject) -> list[Step]:
    managers = st.sampled_from(["kubectl", "one", "two"])
    others = ["json"] if subject is objects.EVERYTHING else ["json", "strategic", "strategic"]
    verbs = st.sampled_from(["apply", "apply", "apply", "put", "merge", *others])
    first = Step(draw(st.sampled_from(["apply", "put"])), draw(managers), False, draw(subject.whole))
    steps = [first]
    for _ in range(draw(st.integers(2, 8))):
        verb = draw(verbs)
        body = draw(subject.whole) if verb == "put" else draw(st.one_of(subject.whole, subject.share))
        if verb == "json":
            body = draw(st.randoms(use_true_random=False))
        elif verb in ("merge", "strategic"):
            body = with_nulls(body, draw(st.randoms(use_true_random=False)), directives=verb == "strategic")
        steps.append(Step(verb, draw(managers), draw(st.booleans()), body))
    return steps


def with_nulls(patch: JSON, chance: Random, *, directives: bool, level: int = 0) -> JSON:
    """A patch that removes some of what it would set, and has directives of a strategic merge patch."""
    if isinstance(patch, list):
        items = [with_nulls(item, chance, directives=directives, level=level + 1) for item in patch]
        keyed = directives and items and all(isinstance(item, dict) for item in items)
        if keyed and chance.random() < 0.15:
            items[0] = {**{name: items[0][name] for name in KEYS if name in items[0]}, "$patch": "delete"}
        if keyed and chance.random() < 0.05:
            items.append({"$patch": "replace"})
        return items
    if not isinstance(patch, dict):
        return patch
    found = {}
    for name, value in patch.items():
        if level and chance.random() < 0.08 and name not in KEYS:
            found[name] = None
            continue
        found[name] = with_nulls(value, chance, directives=directives, level=level + 1)
        if directives and isinstance(value, list) and chance.random() < 0.2:
            found["$setElementOrder/" + name] = [
                {key: item[key] for key in KEYS if key in item} if isinstance(item, dict) else item
                for item in (value if chance.random() < 0.5 else value[::-1])
            ]
        if directives and name == "finalizers" and chance.random() < 0.3:
            found["$deleteFromPrimitiveList/finalizers"], found[name] = value[:1], value[1:]
            found.pop("$setElementOrder/finalizers", None)
    if directives and level > 1 and chance.random() < 0.03:
        found["$patch"] = chance.choice(["replace", "delete", "bogus"])
    if directives and level > 1 and chance.random() < 0.05:
        found["$retainKeys"] = [name for name in found if chance.random() < 0.9]
    return found


def operations(live: JSON, chance: Random) -> list[JSON]:
    """A JSON patch for an object, which may fail."""
    paths = list(paths_of(plain(live))) or [("/metadata/labels", {"a": "x"})]
    made = []
    for _ in range(chance.randint(1, 4)):
        path, value = chance.choice(paths)
        match chance.choice(["add", "remove", "replace", "test", "move", "copy", "end"]):
            case "test":
                made.append({"op": "test", "path": path, "value": chance.choice([value, value, "other", None])})
            case "remove":
                made.append({"op": "remove", "path": chance.choice([path, path, path + "x"])})
            case "move" | "copy" as verb:
                made.append(
                    {"op": verb, "from": path, "path": chance.choice(paths)[0] + chance.choice(["", "", "/0", "/-"])}
                )
            case "end":
                made.append(
                    {"op": "add", "path": path + chance.choice(["/-", "/0", "/x", "/-1", "/99"]), "value": value}
                )
            case verb:
                made.append({"op": verb, "path": path, "value": chance.choice([value, chance.choice(paths)[1]])})
    return made


def paths_of(value: JSON, path: str = "") -> Iterator[tuple[str, JSON]]:
    members = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for name, member in members:
        if name in ("apiVersion", "kind", "name", "namespace", "uid", "ownerReferences") and path.count("/") < 2:
            continue
        below = f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}"
        if path:
            yield below, member
        yield from paths_of(member, below)


@pytest.fixture(scope="module")
def with_everything(server: Client) -> Iterator[Client]:
    server.define(everything.CRD)
    yield server
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{everything.PLURAL}.{everything.GROUP}"
    instances = f"/apis/{everything.GROUP}/v1"
    for each in server.get(f"{instances}/{everything.PLURAL}")["items"]:  # a story may leave one with a finalizer
        metadata = each["metadata"]
        place = f"{instances}/namespaces/{metadata['namespace']}/{everything.PLURAL}/{metadata['name']}"
        server.merge(place, {"metadata": {"finalizers": None}}, "test")
    server.delete(path)
    eventually("the CRD to be gone", lambda: is_gone(server, path))  # other tests define it too


def is_gone(server: Client, path: str) -> bool:
    try:
        server.get(path)
    except RefusedError as error:
        return error.code == 404
    return False


def plain(obj: JSON) -> JSON:
    """The object without what only the server sets."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in OF_SERVER}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}


def managed(obj: JSON) -> JSON:
    """The entries, without fields of a Service that come and go with its type after they are tracked."""
    entries = json.loads(json.dumps(obj["metadata"].get("managedFields")))
    for entry in (entries or ()) if obj["kind"] == "Service" else ():
        spec = entry["fieldsV1"].get("f:spec", {})
        for name in TYPE_DEPENDENT:
            spec.pop(name, None)
        for port in spec.get("f:ports", {}).values():
            port.pop("f:nodePort", None)
    return entries


@dataclass
class Story:
    """One object on the real server, and the result of each step on the server in memory."""

    server: Client
    subject: Subject
    tracking: Tracking
    name: str
    live: JSON = None
    writes: int = 0

    def path(self, **query: str) -> str:
        return f"{self.subject.path}/{self.name}?" + "&".join(f"{name}={value}" for name, value in query.items())

    def take(self, step: Step) -> None:
        if step.verb == "json":
            if self.live is None:
                return
            body = operations(self.live, step.body)
            note(json.dumps(body))
        else:
            body = self.subject.named(step.body, self.name)
        ours = self.made(step, body)
        stored = None if ours is None or isinstance(ours, Exception) else self.stored(ours)
        try:
            answer = self.send(step, body)
        except RefusedError as error:
            note(f"refused: {error}")
            self.check_refusal(step, ours, error)
            return
        except (
            http.client.RemoteDisconnected
        ):  # a directive in a place where the server does not expect it, and it panics
            assert step.verb == "strategic"
            return
        self.writes += 1
        if ours is not None:
            assert not isinstance(ours, Exception), ours
            assert not isinstance(stored, Exception), stored
            assert_same(plain(self.as_sent(stored, ours)), plain(self.as_sent(answer, ours)))
        if step.verb == "apply":
            self.check_applied(step, body, stored, answer)
        else:
            self.check_tracked(step, self.as_sent(answer, body if ours is None else ours), answer)
        self.live = answer

    def made(self, step: Step, body: JSON) -> JSON:
        """The result of a request on the server in memory, or an error; None for a whole object."""
        try:
            match step.verb:
                case "apply":
                    return apply(
                        self.live,
                        body,
                        self.tracking,
                        manager=step.manager,
                        force=step.force,
                        now="2026-01-01T00:00:00Z",
                    )
                case _ if self.live is None:
                    return None
                case "merge":
                    return merge_patch(self.live, body)
                case "strategic":
                    return strategic_merge_patch(self.live, body, self.tracking.shape)
                case "json":
                    return json_patch(self.live, body)
        except (ApplyConflictError, Rejected) as error:
            return error

    def check_refusal(self, step: Step, ours: JSON, error: RefusedError) -> None:
        if step.verb == "apply" and error.code == 409:
            assert isinstance(ours, ApplyConflictError)
            assert frozenset(conflict.field for conflict in ours.conflicts) == error.causes
            assert sorted(str(ours).split("\n")) == sorted(error.message.split("\n"))
        elif isinstance(ours, Rejected):
            # Of several mistakes in a strategic merge patch, the server names any.
            assert ours.code == error.code or step.verb == "strategic"
            assert same_mistake(ours.message, error.message)
        else:  # the object is made, and invalid
            assert error.code in (400, 422) or error.message.startswith("duplicate nodePort"), error
            assert error.message != "the server rejected our request due to an error in our request", ours

    def send(self, step: Step, body: JSON) -> JSON:
        query = {"fieldManager": step.manager}
        if step.verb == "apply":
            return self.server.send("PATCH", self.path(**query, force=str(step.force).lower()), body, APPLY)
        if self.live is None:
            return self.server.send("POST", f"{self.subject.path}?fieldManager={step.manager}", body)
        if step.verb == "put":
            body["metadata"]["resourceVersion"] = self.live["metadata"]["resourceVersion"]
            return self.server.send("PUT", self.path(**query), body)
        return self.server.send("PATCH", self.path(**query), body, MEDIA[step.verb])

    def now(self, answer: JSON) -> str:
        times: list[str] = [entry.get("time", "") for entry in managed(answer) or ()]
        return max(times, default="")

    def check_applied(self, step: Step, body: JSON, stored: JSON, answer: JSON) -> None:
        ours = apply(self.live, body, self.tracking, manager=step.manager, force=step.force, now=self.now(answer))
        result = {**stored, "metadata": {**stored["metadata"], "managedFields": managed(ours)}}
        if self.live is not None:
            result = keep_unchanged(without_counts(self.live), without_counts(result))
        assert_same(managed(result), managed(answer))
        if self.live is not None:
            unchanged = self.live["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"]
            # The server stores an empty map in the metadata of a custom resource, drops it when it is read, and writes
            # the next time.
            assert unchanged == same(without_counts(self.live), result) or self.subject is objects.EVERYTHING

    def stored(self, obj: JSON) -> JSON:
        """The object as the server would store it when it is sent as a whole, or an error."""
        metadata = plain(obj)["metadata"] if "metadata" in obj else {}
        try:
            if self.live is None:
                new = {**obj, "metadata": {**metadata, "name": f"{self.name}-stored"}}
                answer = self.server.send("POST", f"{self.subject.path}?dryRun=All", new)
                return {**answer, "metadata": {**answer["metadata"], "name": self.name}}
            metadata["resourceVersion"] = self.live["metadata"]["resourceVersion"]
            return self.server.send("PUT", self.path(dryRun="All"), {**obj, "metadata": metadata})
        except RefusedError as error:
            return error

    def as_sent(self, obj: JSON, request: JSON) -> JSON:
        """The object without the fields that the request does not give and the server fills in when it stores it."""
        if self.subject.kind != "Service":
            return obj
        sent = {name: value for name, value in (request.get("spec") or {}).items() if value is not None}
        spec = {name: value for name, value in obj["spec"].items() if name in sent or name not in ALLOCATED}
        allocated = {port.get("nodePort") for port in sent.get("ports") or ()}
        if "ports" in spec:
            spec["ports"] = [
                {name: value for name, value in port.items() if name != "nodePort" or value in allocated}
                for port in spec["ports"]
            ]
        return {**obj, "spec": spec}

    def check_tracked(self, step: Step, new: JSON, answer: JSON) -> None:
        new = {**new, "metadata": {name: value for name, value in new["metadata"].items() if name != "managedFields"}}
        ours = track_update(self.live, new, self.tracking, manager=step.manager, now=self.now(answer))
        assert_same(managed(ours), managed(answer))


MISTAKES = (
    "the server rejected our request",
    "unknown patch type",
    "invalid patch format of retainKeys",
    "no elements in any of the given slices",
    "The order in patch list",
    "list element types are not identical",
)
NO_KEY = "does not contain declared merge key"
"""Of an item, which only the real server prints."""


def same_mistake(ours: str, real: str) -> bool:
    if ours.startswith(MISTAKES):
        return real.startswith(MISTAKES)
    return ours.partition(NO_KEY)[1:] == real.partition(NO_KEY)[1:] if NO_KEY in ours else ours == real


def without_counts(obj: JSON) -> JSON:
    return {**plain(obj), "metadata": {**plain(obj)["metadata"], "managedFields": managed(obj)}}


def differences(ours: JSON, real: JSON, path: str = "") -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(real, dict):
        for name in sorted({*ours, *real}):
            yield from differences(ours.get(name, "-"), real.get(name, "-"), f"{path}/{name}")
    elif isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        for index, (one, other) in enumerate(zip(ours, real, strict=True)):
            yield from differences(one, other, f"{path}/{index}")
    elif ours != real:
        yield f"{path}: {json.dumps(ours)}, but on the server {json.dumps(real)}"


def assert_same(ours: JSON, real: JSON) -> None:
    found = list(differences(ours, real))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.kind)
def test_each_write_has_the_same_result(with_everything: Client, subject: Subject) -> None:
    tracking = tracking_of(subject)
    writes = 0

    @STORIES
    @given(stories(subject))
    def run(steps: list[Step]) -> None:
        nonlocal writes
        story = Story(with_everything, subject, tracking, f"story-{next(NUMBERS)}")
        try:
            for step in steps:
                note(
                    f"{step.verb} by {step.manager}{' forced' if step.force else ''}: {json.dumps(step.body, default=str)}"
                )
                story.take(step)
        finally:
            writes += story.writes
            if story.live is not None:
                with_everything.delete(f"{subject.path}/{story.name}")

    run()
    assert writes > STORIES.max_examples * 2


# Requests that are refused


DEPLOYMENTS, CONFIG_MAPS = objects.DEPLOYMENT.path, objects.CONFIG_MAP.path
POD = "spec.template.spec"
APP = f"{POD}.containers.0"
MISFITS: list[tuple[str, JSON]] = [
    ("spec.replicas", "x"),
    ("spec.replicas", 1.5),
    ("spec.replicas", True),
    ("spec.replicas", []),
    ("spec.replicas", 2**40),
    ("spec", 1),
    ("spec", []),
    ("metadata.labels", {"a": 1}),
    ("metadata.labels", "x"),
    ("metadata.finalizers", [1]),
    ("metadata.ownerReferences", {"a": 1}),
    ("metadata.creationTimestamp", "x"),
    ("metadata.creationTimestamp", 1),
    ("spec.paused", "true"),
    ("spec.selector", "x"),
    ("spec.strategy", {"rollingUpdate": {"maxSurge": {}}}),
    ("spec.template.metadata.annotations", {"a": True}),
    (f"{POD}.containers", {}),
    (f"{POD}.containers", ["x"]),
    (f"{APP}.name", 1),
    (f"{APP}.command", "x"),
    (f"{APP}.command", [1]),
    (f"{APP}.ports", [{"containerPort": "80"}]),
    (f"{APP}.livenessProbe", {"httpGet": {"port": 1.5}}),
    (f"{APP}.resources", {"limits": {"cpu": "x"}}),
    (f"{APP}.resources", {"limits": {"cpu": []}}),
    (f"{APP}.foo", 1),
    ("spec.Replicas", 1),
    ("metadata.foo", 1),
    ("foo", {"a": 1}),
]
UNAPPLICABLE: list[tuple[str, JSON]] = [
    ("spec.replicas", "x"),
    ("spec.paused", "x"),
    ("spec", 1),
    ("metadata.labels", {"a": 1}),
    ("metadata.finalizers", ["example.com/a", "example.com/a"]),
    ("metadata.finalizers", [{}]),
    ("metadata.finalizers", [None]),
    (f"{POD}.containers", {}),
    (f"{POD}.containers", [1]),
    (f"{POD}.containers", [None]),
    (f"{APP}.name", 1),
    (f"{APP}.foo", 1),
    (f"{APP}.command", [1]),
    (f"{APP}.ports", [{"containerPort": 80}, {"containerPort": 80}]),
    (f"{APP}.ports", [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80}]),
    (f"{APP}.env", [{"name": "a"}, {"name": "a"}]),
]


def misfit(path: str, value: JSON) -> JSON:
    found: JSON = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "misfit"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        },
    }
    *parents, last = path.split(".")
    target = found
    for name in parents:
        target = target[int(name)] if name.isdecimal() else target.setdefault(name, {})
    target[last] = value
    return found


@pytest.mark.parametrize(("path", "value"), MISFITS, ids=str)
def test_an_object_that_cannot_be_decoded_is_refused(server: Client, path: str, value: JSON) -> None:
    """With the same message where only fields are unknown; a wrong type is described in Go's words there."""
    body = misfit(path, value)
    with pytest.raises(RefusedError) as refused:
        server.send("POST", f"{DEPLOYMENTS}?dryRun=All&fieldValidation=Strict", body)
    kind = Kind("apps", "v1", "Deployment")
    shape = typed_shape(kind)
    assert shape is not None
    try:
        decoded = decode(body, shape)
    except DecodingError:
        assert refused.value.code == 400
        return
    ours = undecodable(kind, strict_problem([unknown_field(name) for name in decoded.unknown]))
    assert (ours.code, ours.message) == (refused.value.code, refused.value.message)


@pytest.mark.parametrize(("path", "value"), UNAPPLICABLE, ids=str)
def test_an_invalid_apply_configuration_is_refused(server: Client, path: str, value: JSON) -> None:
    """At the same fields; values are shown as Go has them there."""
    body = misfit(path, value)
    with pytest.raises(RefusedError) as refused:
        server.send("PATCH", f"{DEPLOYMENTS}/misfit?dryRun=All&fieldManager=x&force=true", body, APPLY)
    shape = typed_shape(Kind("apps", "v1", "Deployment"))
    assert shape is not None
    with pytest.raises(NotTypedError) as ours:
        check_typed(body, shape)
    assert refused.value.code == 500
    real = refused.value.message.partition("Kind=Deployment): ")[2]
    assert _without_values(str(ours.value)) == _without_values(real)


def _without_values(message: str) -> str:
    return re.sub(r", got .*", "", message)


LABEL_SELECTORS = [
    *(
        "a=b",
        "a==b",
        "a!=b",
        "a",
        "!a",
        "! a",
        "a,b",
        "a=",
        "a in (b)",
        "a in ()",
        "a in (,b)",
        "a in (b,)",
        "a in (b,,c)",
    ),
    *("a notin (x, y)", "in", "in in (in)", "a=in", "a>1", "a<1,b>2", "", " ", "example.com/a=b"),
    *(
        "a in (b",
        "a in b",
        "a in (b c)",
        "a in (=",
        "a in (b=",
        "!a=b",
        "!",
        "!=a",
        "a,,b",
        ",a",
        "a=b,",
        "a>x",
        "a gt 1",
        "a=b c",
    ),
    *("/a=b", "a/b/c=d", "A.b_c/x", "a=$%", "a in (x,$)", "-a", "a b", "()", "=b", "a=(", "a" * 70, "a=" + "b" * 70),
]
ANY, POD_KIND = Kind("", "v1", "ConfigMap"), Kind("", "v1", "Pod")
FIELD_SELECTORS = [
    *((CONFIG_MAPS, ANY, f"metadata.name{text}") for text in ("=p", "==p", "!=p", "", "=")),
    *(
        (CONFIG_MAPS, ANY, text)
        for text in ("", ",", "foo=bar", "data.a=1", "metadata.labels=x", "metadata.namespace=x")
    ),
    ("/api/v1/pods", POD_KIND, "spec.nodeName=a,status.phase!=Running"),
    ("/api/v1/pods", POD_KIND, "foo=a"),
    (
        "/api/v1/pods",
        POD_KIND,
        "status.podIPs=1,spec.hostNetwork=true,spec.serviceAccountName=x,status.nominatedNodeName=x",
    ),
    ("/api/v1/events", Kind("", "v1", "Event"), "involvedObject.name=a,involvedObject.uid=x,reason=b,type=c,source=d"),
    ("/api/v1/events", Kind("", "v1", "Event"), "regarding.name=a"),
    ("/apis/events.k8s.io/v1/events", Kind("events.k8s.io", "v1", "Event"), "regarding.name=x,reportingController=y"),
    ("/api/v1/nodes", Kind("", "v1", "Node"), "spec.unschedulable=true"),
    ("/api/v1/namespaces", Kind("", "v1", "Namespace"), "status.phase=Active"),
    ("/api/v1/secrets", Kind("", "v1", "Secret"), "type=Opaque"),
    ("/api/v1/services", Kind("", "v1", "Service"), "spec.clusterIP=None,spec.type=ClusterIP"),
    ("/apis/apps/v1/replicasets", Kind("apps", "v1", "ReplicaSet"), "status.replicas=1"),
    ("/apis/batch/v1/jobs", Kind("batch", "v1", "Job"), "status.successful=1"),
]


@pytest.mark.parametrize("text", LABEL_SELECTORS)
def test_label_selectors_are_accepted_or_refused_alike(server: Client, text: str) -> None:
    assert answer_to(label_selector, text) == refusal_of(server, f"{CONFIG_MAPS}?labelSelector={quote(text)}")


@pytest.mark.parametrize(("path", "kind", "text"), FIELD_SELECTORS)
def test_field_selectors_are_accepted_or_refused_alike(server: Client, path: str, kind: Kind, text: str) -> None:
    ours = answer_to(lambda text: field_selector(text, kind), text)
    assert ours == refusal_of(server, f"{path}?fieldSelector={quote(text)}")


def answer_to(parse: Callable[[str], object], text: str) -> tuple[int, str]:
    try:
        parse(text)
    except Rejected as error:
        return error.code, error.message
    return 200, ""


def refusal_of(server: Client, path: str) -> tuple[int, str]:
    try:
        server.get(path)
    except RefusedError as error:
        return error.code, error.message
    return 200, ""


# Single cases


def config_map(name: str, **data: str) -> JSON:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_field_managers_can_be_reset(server: Client) -> None:
    tracking = tracking_of(objects.CONFIG_MAP)
    for reset in ([], [{}]):
        live = server.send("POST", f"{CONFIG_MAPS}?fieldManager=one", config_map("reset", a="0"))
        patch = {"metadata": {"managedFields": reset}}
        answer = server.send("PATCH", f"{CONFIG_MAPS}/reset?fieldManager=two", patch, MERGE)
        ours = track_update(live, merge_patch(live, patch), tracking, manager="two", now="2026-01-01T00:00:00Z")
        assert managed(ours) == managed(answer) is None
        patch = {"data": {"b": "1"}}
        again = server.send("PATCH", f"{CONFIG_MAPS}/reset?fieldManager=two", patch, MERGE)
        ours = track_update(ours, merge_patch(ours, patch), tracking, manager="two", now="2026-01-01T00:00:00Z")
        assert managed(ours) == managed(again) is None
        server.delete(f"{CONFIG_MAPS}/reset")


def test_a_client_may_write_managed_fields(server: Client) -> None:
    """As kubectl does when it takes over from its client-side apply."""
    tracking = tracking_of(objects.CONFIG_MAP)
    live = server.send("POST", f"{CONFIG_MAPS}?fieldManager=one", config_map("written", a="0", b="1"))
    entry = {**managed(live)[0], "operation": "Apply", "manager": "kubectl"}
    patch = [
        {"op": "replace", "path": "/metadata/managedFields", "value": [entry]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]
    answer = server.send("PATCH", f"{CONFIG_MAPS}/written?fieldManager=kubectl", patch, MEDIA["json"])
    ours = track_update(live, json_patch(live, patch), tracking, manager="kubectl", now="2026-01-01T00:00:00Z")
    assert_same(managed(ours), managed(answer))
    server.delete(f"{CONFIG_MAPS}/written")


def test_kubectl_apply_migrates_from_client_side_apply(server: Client) -> None:
    tracking = tracking_of(objects.CONFIG_MAP)
    body = config_map("csa", a="1", b="1")
    annotated = {**body, "metadata": {"name": "csa", "annotations": {LAST_APPLIED: json.dumps(body)}}}
    live = server.send("POST", f"{CONFIG_MAPS}?fieldManager=kubectl-client-side-apply", annotated)
    live = server.merge(f"{CONFIG_MAPS}/csa", {"data": {"b": "2"}}, "editor")
    path = f"{CONFIG_MAPS}/csa?fieldManager=kubectl"
    with pytest.raises(RefusedError) as refused:
        server.send("PATCH", path, config_map("csa", a="3", b="3"), APPLY)
    with pytest.raises(ApplyConflictError) as ours:
        apply(live, config_map("csa", a="3", b="3"), tracking, manager="kubectl", now="2026-01-01T00:00:00Z")
    assert str(ours.value) == refused.value.message
    answer = server.send("PATCH", path, config_map("csa", a="3", b="2"), APPLY)
    applied = apply(live, config_map("csa", a="3", b="2"), tracking, manager="kubectl", now="2026-01-01T00:00:00Z")
    assert_same(plain(applied), plain(answer))
    assert_same(without_times(applied), without_times(answer))
    server.delete(f"{CONFIG_MAPS}/csa")


def test_the_status_subresource_has_its_own_managers(server: Client) -> None:
    main, status = tracking_of(objects.DEPLOYMENT), tracking_of(objects.DEPLOYMENT, "status")
    live = server.send("POST", f"{DEPLOYMENTS}?fieldManager=one", misfit("metadata.name", "with-status"))
    path = f"{DEPLOYMENTS}/with-status"
    condition = {"type": "Available", "status": "True", "reason": "x", "message": "y"}
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"observedGeneration": 1, "conditions": [condition]}}
    for tracking, address, manager in (
        (main, path, "one"),
        (status, f"{path}/status", "two"),
        (status, f"{path}/status", "three"),
    ):
        answer = server.send("PATCH", f"{address}?fieldManager={manager}", patch, MERGE)
        new = {**answer, "metadata": {**answer["metadata"], "managedFields": managed(live)}}
        ours = track_update(live, new, tracking, manager=manager, now="2026-01-01T00:00:00Z")
        assert_same(without_times(ours), without_times(answer))
        live = answer
    config = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "with-status"},
        "status": {"conditions": [{**condition, "reason": "z"}]},
    }
    with pytest.raises(RefusedError) as refused:
        server.send("PATCH", f"{path}/status?fieldManager=four", config, APPLY)
    with pytest.raises(ApplyConflictError) as conflict:
        apply(live, config, status, manager="four", now="2026-01-01T00:00:00Z")
    assert str(conflict.value) == refused.value.message
    answer = server.apply(f"{path}/status", config, "four")
    applied = apply(live, config, status, manager="four", now="2026-01-01T00:00:00Z", force=True)
    assert_same(without_times(applied), without_times(answer))
    server.delete(path)


def without_times(obj: JSON) -> JSON:
    """The entries in an order that does not depend on the second in which they were written."""
    entries = [{name: value for name, value in entry.items() if name != "time"} for entry in managed(obj) or ()]
    return sorted(entries, key=lambda entry: json.dumps(entry, sort_keys=True))
