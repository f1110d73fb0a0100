"""The server in memory (`ruleop.localcluster`) in the place of the real control plane: what tests use of
`controlplane.cluster.ControlPlane`.

Whose pods run, what the garbage collector does and what a request is answered is `LocalCluster`'s. Here are only the
names that the tests know, the form of the audit log, and the few commands of kubectl that they give: a program of its
own would have to be built first.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import yaml
from controlplane.access import KNOWN_USERS, User
from controlplane.api import Api, ApiError
from controlplane.audit import AuditLog, Event, Mark
from controlplane.cluster import ControlPlaneError

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster import LocalCluster
from ruleop.localcluster.api.audit import Audit, Audited
from ruleop.localcluster.controllers.garbage_collector import Definitions
from ruleop.localcluster.controllers.services import Ingresses
from ruleop.localcluster.kinds.builtin_kinds import admit_pod_as_it_is
from ruleop.localcluster.kinds.registry import Registry

TIMEOUT = 30.0


class InMemory:
    """One cluster, from start() to stop(). It has no RBAC: every user may do everything, as the bindings of most tests
    say anyway."""

    def __init__(self, *, controllers: bool = True, audit: bool = True) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ruleop-memory-")
        self.layout = SimpleNamespace(work=Path(self._folder.name), authority=None)
        self.cluster = LocalCluster()
        self.cluster.audit.enabled = audit
        machinery = self.cluster.machinery
        # A real cluster without add-ons has no controller of Ingresses.
        machinery.controllers = [
            each
            for each in machinery.controllers
            # The API server itself handles definitions.
            if isinstance(each, Definitions) or (controllers and not isinstance(each, Ingresses))
        ]
        if not controllers:  # nobody makes service accounts
            pods = self.cluster.registry.get("", "v1", "pods")
            assert pods is not None
            pods = replace(pods, strategy=replace(pods.strategy, admit=admit_pod_as_it_is))
            self.cluster.registry._by_path["", "v1", "pods"] = pods
        self.users: dict[str, User] = {}
        for name in KNOWN_USERS:
            self.token_for(name)
        self._going = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.cluster.start()

    def stop(self) -> None:
        self.cluster.stop()
        self._folder.cleanup()

    def check(self) -> None:
        """It has no programs that could have ended."""

    # -- who asks ------------------------------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        """For who sends a token."""
        return f"http://127.0.0.1:{self.cluster.port}"

    def token_for(self, user: str, groups: Sequence[str] = ()) -> str:
        if user not in self.users:
            self.users[user] = User(user, tuple(groups), self.cluster.users.token_for(user))
        return self.users[user].token

    def kubeconfig(self, user: str = "admin") -> Path:
        path = self.layout.work / f"{user}.kubeconfig"
        path.write_text(json.dumps(self.cluster.kubeconfig(user)))
        return path

    def api(self, user: str = "admin") -> Api:
        return Api(self.server, None, self.token_for(user))

    @property
    def audit_log(self) -> AuditLog:
        return _AuditLog(self.cluster.audit)

    def audit(self, **wanted: Any) -> list[Event]:
        return self.audit_log.events(**wanted)

    # -- kinds ---------------------------------------------------------------------------------------------------------

    def define(self, *files: Path) -> None:
        self.kubectl("apply", *[f"--filename={file}" for file in files])

    def until_served(self, *_definitions: str) -> None:
        """They are served once they are stored."""

    def restart_controllers(self, watching: Sequence[str] = ()) -> None:
        """The garbage collector knows each kind as soon as it is served."""

    def kubectl(self, *arguments: str, user: str = "admin", stdin: str | None = None, timeout: float = TIMEOUT) -> str:
        """`apply`, `create` and `delete` of files, `wait` for a condition, `patch` and `delete` of an object, and
        `delete --all`."""
        return _Kubectl(self.api(user), stdin, timeout)(*arguments)

    # -- faults --------------------------------------------------------------------------------------------------------

    def pause_apiserver(self) -> None:
        """It stops answering, with all its connections open."""
        self._going.clear()
        loop = self.cluster._loop
        assert loop is not None
        loop.call_soon_threadsafe(self._going.wait)

    def resume_apiserver(self) -> None:
        self._going.set()

    def stop_apiserver(self) -> None:
        self.cluster.stop()

    def start_apiserver(self) -> None:
        """At the same address, with the same objects. What happened before is no longer known to it."""
        self.cluster.start()
        self.cluster.compact()

    def restart_apiserver(self) -> None:
        self.stop_apiserver()
        self.start_apiserver()


def in_memory(config: pytest.Config) -> bool:
    """Whether this run is on the server in memory."""
    return bool(config.getoption("--cluster-server") == "memory")


def served_by(config: pytest.Config) -> Callable[[Kind], bool]:
    """Whether the server of this run has a built-in kind."""
    return _is_served if in_memory(config) else lambda _kind: True


def _is_served(kind: Kind) -> bool:
    return any(each.kind == kind for each in Registry().in_group_version(kind.group, kind.version))


class _AuditLog(AuditLog):
    """Requests in the form of the real server's log."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def mark(self) -> Mark:
        return Mark(len(self._audit.entries), time.time())

    def lines(self, position: int) -> Iterator[tuple[Event, int]]:
        return ((_event(each), end) for end, each in enumerate(self._audit.entries[position:], position + 1))


def _event(entry: Audited) -> Event:
    target = {
        "apiGroup": entry.group,
        "resource": entry.resource,
        "namespace": entry.namespace,
        "name": entry.name,
        "subresource": entry.subresource,
    }
    return {
        "requestURI": entry.uri,
        "verb": entry.verb,
        "user": {"username": entry.user},
        "userAgent": entry.user_agent,
        **({"objectRef": {name: value for name, value in target.items() if value}} if entry.resource else {}),
        "responseStatus": {"code": entry.status},
        "stage": "ResponseStarted" if entry.verb == "watch" else "ResponseComplete",
        # A write is done at one moment.
        **dict.fromkeys(
            ("requestReceivedTimestamp", "stageTimestamp"), datetime.fromtimestamp(entry.time, UTC).isoformat()
        ),
    }


def _names(resource: Any, key: str) -> list[str]:
    """A resource may be called by its plural, its singular and its short names."""
    return [resource[key], *([resource["singularName"], *resource.get("shortNames", ())] if key == "name" else [])]


class _Kubectl:
    def __init__(self, api: Api, stdin: str | None, timeout: float) -> None:
        self.api, self.stdin, self.timeout = api, stdin, timeout
        self.namespace = "default"
        self.options: dict[str, str] = {}
        self.files: list[str] = []

    def __call__(self, *arguments: str) -> str:
        words = []
        for each in arguments:
            name, _, value = each.partition("=")
            if name == "--filename":
                self.files.append(value)
            elif name == "--namespace":
                self.namespace = value
            elif name.startswith("--"):
                self.options[name] = value
            else:
                words.append(each)
        verb, *words = words
        if verb in {"apply", "create"}:
            for document in self._documents():
                self._apply(document)
        elif verb == "wait":
            self._wait(words)
        elif verb == "delete":
            self._delete_all([*map(self._path_of, self._documents()), *self._named(words)])
        elif verb == "patch":
            self._patch(words)
        else:
            raise ControlPlaneError(f"kubectl {verb} is not known to the tests' stand-in: use the API")
        return ""

    def _documents(self) -> list[Any]:
        texts = []
        for each in self.files:
            path = Path(each)
            if each == "-":
                texts.append(self.stdin or "")
            else:
                texts += [file.read_text() for file in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
        documents = [each for text in texts for each in yaml.safe_load_all(text) if each]
        return [item for each in documents for item in (each["items"] if each["kind"] == "List" else [each])]

    def _resource(self, version: str, **wanted: str) -> Any:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        resources = self.api.get(root)["resources"]
        found = next(each for each in resources if all(value in _names(each, key) for key, value in wanted.items()))
        return f"{root}/namespaces/{{}}/{found['name']}" if found["namespaced"] else f"{root}/{found['name']}"

    def _path_of(self, document: Any) -> str:
        metadata = document["metadata"]
        path = self._resource(document["apiVersion"], kind=document["kind"])
        return f"{path.format(metadata.get('namespace', self.namespace))}/{metadata['name']}"

    def _apply(self, document: Any) -> None:
        path = self._path_of(document)
        try:
            self.api.post(path.rpartition("/")[0], document)
        except ApiError as error:
            if error.status != 409:
                raise ControlPlaneError(str(error)) from None
            self.api.merge(path, document)

    def _wait(self, words: list[str]) -> None:
        """--for=condition=..."""
        kind, _, name = words[0].partition("/")
        (path,) = self._named([kind, name])
        wanted, deadline = self.options["--for"].partition("=")[2], time.monotonic() + self.timeout
        while not any(
            (each["type"], each["status"]) == (wanted, "True")
            for each in self.api.get(path).get("status", {}).get("conditions", ())
        ):
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"{path} is not {wanted}")
            time.sleep(0.01)

    def _patch(self, words: list[str]) -> None:
        (path,) = self._named(words)
        kinds = {"json": "json-patch", "merge": "merge-patch", "strategic": "strategic-merge-patch"}
        content_type = f"application/{kinds[self.options.get('--type', 'strategic')]}+json"
        patch = json.loads(self.options["--patch"])
        try:
            self.api.json("PATCH", f"{path}?fieldManager=kubectl-patch", patch, content_type)
        except ApiError as error:
            raise ControlPlaneError(str(error)) from None

    def _named(self, words: list[str]) -> list[str]:
        if not words:
            return []
        plural, _, group = words[0].partition(".")
        versions = [each for each in self.api.get("/apis")["groups"] if not group or each["name"] == group]
        for version in ["v1", *(each["preferredVersion"]["groupVersion"] for each in versions)]:
            try:
                path = self._resource(version, name=plural)
            except StopIteration:
                continue
            path = path.format(self.namespace)
            names = words[1:] or [each["metadata"]["name"] for each in self.api.get(path)["items"]]
            return [f"{path}/{name}" for name in names]
        raise ControlPlaneError(f"no resource {words[0]}")

    def _delete_all(self, paths: list[str]) -> None:
        uids = {path: self._uid(path) for path in paths}
        for path in paths:
            try:
                self.api.delete(path, {"propagationPolicy": "Background"})
            except ApiError as error:
                if error.status != 404 or "--ignore-not-found" not in self.options:
                    raise ControlPlaneError(str(error)) from None
        if self.options.get("--wait") != "false":
            deadline = time.monotonic() + self.timeout
            for path in paths:
                while self._uid(path) == uids[path] != "":  # an object of the same name may be made meanwhile
                    if time.monotonic() > deadline:
                        raise ControlPlaneError(f"{path} is still there")
                    time.sleep(0.01)

    def _uid(self, path: str) -> str:
        """Empty if the object does not exist."""
        try:
            return str(self.api.get(path)["metadata"]["uid"])
        except ApiError as error:
            if error.status == 404:
                return ""
            raise
