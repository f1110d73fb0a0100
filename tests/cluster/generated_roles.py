"""An operator with exactly the roles of `ruleop generate rbac`, and what it asks of the API server through the life of
its custom resources."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from click.testing import CliRunner
from controlplane.audit import Event, Followed, moment
from controlplane.cluster import ControlPlane

from ruleop.authoring.checking.inferred_definitions import with_definitions
from ruleop.cli.program import program
from ruleop.kubernetes.kinds import Object
from ruleop.language.rules.checking import load_with_sources
from tests.cluster.operator import counts, eventually
from tests.cluster.pod import Pod
from tests.cluster.server import RefusedError
from tests.definitions import ANYTHING, crd, version

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "rbac.authorization.k8s.io"
_FOREIGN = frozenset({"Secret", "ConfigMap", "Namespace"})  # objects of others that rules read
EVERY = Path(__file__).parent / "every_permission"  # a project that needs each of them
QUIET = 0.7  # seconds without a request: the operator is at rest


class Pair(NamedTuple):
    """A verb on a resource, which a role grants or the operator uses."""

    verb: str
    resource: str  # such as deployments.apps or apps.example.com/status
    name: str = ""  # of one of the operator's own objects, without the operator's name in front

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def title(resource: str, group: str, subresource: str = "") -> str:
    resource, slash, part = resource.partition("/") if not subresource else (resource, "/", subresource)
    return f"{resource}.{group}".rstrip(".") + slash + part


def granted(objects: Iterable[Object]) -> set[Pair]:
    return {
        Pair(verb, title(resource, group))
        for each in objects
        for rule in each.get("rules", ())
        for group in rule.get("apiGroups", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def pair_of(event: Event) -> Pair:
    target = event["objectRef"]
    return Pair(event["verb"], title(target["resource"], target.get("apiGroup", ""), target.get("subresource", "")))


def missed_by(pair: Pair) -> Pair:
    """The request that is refused without a permission: who grants permissions has to have them."""
    grants = {"clusterroles": "rolebindings", "jobs": "roles"}
    granted_by = grants.get(pair.resource.partition(".")[0]) if pair.verb == "bind" or "/" in pair.resource else None
    return Pair("create", f"{granted_by}.{RBAC}") if granted_by else pair._replace(name="")


class GeneratedRoles(Pod):
    """Account, roles and operator have one name. `without`: taken from the rules of the roles."""

    def __init__(
        self, plane: ControlPlane, project: Path, log: Path, *flags: str, without: Pair | None = None, **choices: str
    ) -> None:
        super().__init__(plane, project, None, log, "--leader-elect", *flags, own=())
        self.arguments = (*self.arguments, "--name", self.name)
        options = {"name": self.name, "namespace": self.name, **choices}
        command = [word for name, value in options.items() for word in (f"--{name}", value)]
        ran = CliRunner().invoke(program, ["generate", "rbac", "-C", str(project), *command], catch_exceptions=False)
        assert ran.exit_code == 0, ran.stderr
        self.roles: list[dict[str, Any]] = list(yaml.safe_load_all(ran.stdout))
        self.granted = granted(self.roles)
        self._followed: Followed | None = None  # from its first start on
        self.without = without
        for role in self.roles if without is not None else ():
            for rule in [*role.get("rules", ())]:
                if title(rule.get("resources", [""])[0], rule.get("apiGroups", [""])[0]) == without.resource:
                    self._take_away(without, rule, role["rules"])

    def _take_away(self, pair: Pair, rule: dict[str, Any], rules: list[dict[str, Any]]) -> None:
        if pair.name:
            names, own = rule.get("resourceNames", []), f"{self.name}-{pair.name}"
            if own not in names:
                return
            rules.append({**rule, "resourceNames": [each for each in names if each != own]})
            rule["resourceNames"] = [own]
        rule["verbs"] = [verb for verb in rule["verbs"] if verb != pair.verb] or ["none"]

    def _grant(self) -> None:
        namespaces = {each["metadata"].get("namespace", self.name) for each in self.roles}
        for name in sorted(namespaces):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.apply(*self.roles)
        account = f"/api/v1/namespaces/{self.name}/serviceaccounts/{self.name}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = eventually("a token", lambda: self.admin.post(account, asked))["status"]["token"]
        self.kubeconfig.write_text(yaml.safe_dump(self.config({"token": token})))
        for each in self.roles:
            for rule in each.get("rules", ()):
                if "resourceNames" not in rule and "resources" in rule and rule["verbs"] != ["none"]:
                    resource = rule["resources"][0].partition("/")[0]
                    if "/" not in rule["resources"][0]:
                        self.may(
                            each["metadata"].get("namespace", ""), rule["verbs"][0], resource, rule["apiGroups"][0]
                        )

    def replace_key(self) -> None:
        """The Secret of the owner key as it is when somebody has replaced the key."""
        key, old = (base64.b64encode(letter * 32).decode() for letter in (b"a", b"b"))
        metadata = {"name": f"{self.name}-owner-key", "namespace": self.name}
        data = {"key": key, "previous-key": old}
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    def lose_revisions(self) -> None:
        """The ConfigMap of the revisions as it is when somebody has emptied it."""
        metadata = {"name": f"{self.name}-revisions", "namespace": self.name}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    def apply(self, *objects: Object) -> None:
        stream = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.plane.kubectl("apply", "--server-side", "--filename=-", stdin=stream)

    # -- what it asked for ---------------------------------------------------------------------------------------------

    def asked(self) -> Iterator[Event]:
        """Its requests for objects."""
        for event in self._followed.events() if self._followed is not None else ():
            if counts(event) and "resource" in event.get("objectRef", ()):
                yield event

    def used(self) -> set[Pair]:
        return {pair_of(event) for event in self.asked() if event["responseStatus"]["code"] != 403}

    def refused(self) -> set[Pair]:
        return {pair_of(event) for event in self._refused()}

    def _refused(self) -> Iterator[Event]:
        return (event for event in self.asked() if event["responseStatus"]["code"] == 403)

    def is_refused(self) -> bool:
        """Whether the permission that was taken away has been missed."""
        if self.without is None:
            return False
        missed, name = missed_by(self.without), self.without.name
        events = (event for event in self._refused() if pair_of(event) == missed)
        return any(event["objectRef"].get("name", "").endswith(name) for event in events)

    def until_at_rest(self) -> None:
        """Returns when it has asked for nothing for a while, but for its Lease, and has nothing to do."""
        begun = time.time()

        def rests() -> bool:
            asked = [event for event in self.asked() if event["objectRef"]["resource"] != "leases"]
            times = [moment(event["stageTimestamp"]) for event in asked if event["verb"] != "watch"]
            return self.is_refused() or (time.time() - max([*times, begun]) > QUIET and self._is_idle())

        eventually("the operator to be at rest", rests)

    def _is_idle(self) -> bool:
        _, text = self.probe("/readyz?verbose")
        return all(" 0 running, 0 queued" in line for line in text.splitlines() if "] controller " in line)

    def start(self) -> None:
        """Returns when it leads."""
        self._followed = self._followed or self.plane.audit_log.follow(self.mark(), self.user)
        led = len(self._led())
        self.launch()
        eventually("the operator to lead", lambda: self.is_refused() or (self._alive() and len(self._led()) > led))

    def _led(self) -> list[dict[str, Any]]:
        return [line for line in self.log() if line["event"] == "became leader"] if self.log_file.exists() else []


class Prepared(GeneratedRoles):
    """An operator of `every_permission`, whose key somebody has replaced before it starts. If it may not write the
    revisions, they exist: only the inventory is created."""

    def _grant(self) -> None:
        super()._grant()
        if self.without != Pair("create", "secrets"):
            self.replace_key()
        if self.without in {Pair("create", "configmaps"), Pair("update", "configmaps", "revisions")}:
            self.lose_revisions()


class Life:
    """The custom resources of a project in a cluster, from their creation to their deletion."""

    def __init__(self, operator: GeneratedRoles, root: Path, namespace: str) -> None:
        self.operator, self.root, self.namespace = operator, root, namespace
        loaded = with_definitions(load_with_sources(root, environ={}))
        self.rules = loaded.project.rules
        definitions = [*_documents(root / "crds"), *loaded.project.definitions]  # of `schema`, often in both
        self.crds = list({each["metadata"]["name"]: each for each in definitions}.values())
        known = {each["spec"]["names"]["plural"] for each in self.crds}
        by_hand = [policy for rule in self.rules for policy in rule.reach.rbac if policy.resources[0] not in known]
        kinds = {kind.group: kind for rule in self.rules for child in rule.every_child for kind in child.kinds}
        self.crds += [_definition(kinds[each.groups[0]], each.resources[0]) for each in by_hand]
        watched = {rule.kind.versionless for rule in self.rules}
        examples = [self._placed(each) for each in _documents(root / "examples") if "kind" in each]
        self.crs = [each for each in examples if _group_kind(each) in watched]
        self.others = [self._placed(each) for each in _documents(root / "existing") if each["kind"] in _FOREIGN]

    def live(self) -> None:
        """From creation to deletion, or until a permission is missed."""
        steps = (self.create, self.lose_records, self.conflict, self.alternate, self.forget_children, self.delete)
        for step in steps:
            if not self.operator.is_refused():
                step()

    def _placed(self, obj: dict[str, Any]) -> dict[str, Any]:
        metadata = obj["metadata"]
        scoped = {each["spec"]["names"]["kind"]: each["spec"]["scope"] for each in self.crds}
        if obj["kind"] == "Namespace" or scoped.get(obj["kind"]) == "Cluster":
            return obj
        return {**obj, "metadata": {"namespace": self.namespace, **metadata}}

    def define(self) -> None:
        stream = json.dumps({"apiVersion": "v1", "kind": "List", "items": self.crds})
        self.operator.plane.kubectl("apply", "--server-side", "--filename=-", stdin=stream)
        self.operator.plane.until_served(*(f"crd/{each['metadata']['name']}" for each in self.crds))

    def undefine(self) -> None:
        for each in self.crds:
            self.operator.plane.kubectl("delete", f"crd/{each['metadata']['name']}")

    def create(self) -> None:
        for each in [*self.others, *self.crs]:
            namespace = each["metadata"].get("namespace")
            if namespace:
                self.operator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.operator.apply(*self.others, *self.crs)
        self.operator.until_at_rest()

    def paths(self) -> list[str]:
        """Of the CRs."""
        plurals = {each["spec"]["names"]["kind"]: each["spec"]["names"]["plural"] for each in self.crds}
        return [
            f"/apis/{each['apiVersion']}/"
            + (f"namespaces/{each['metadata']['namespace']}/" if "namespace" in each["metadata"] else "")
            + f"{plurals[each['kind']]}/{each['metadata']['name']}"
            for each in self.crs
        ]

    def lose_records(self) -> None:
        """Somebody removes ruleop's annotation from each child: it is written again. Meanwhile the child changes, until
        writes are outdated, and children of custom kinds are read live."""
        children = [*self._children()]
        wanted = {each for each in self._reads(of_children=True) if any(_is_of(path, each) for path in children)}

        def is_read() -> bool:
            for path in children:
                for note in (None, "changed"):
                    annotations = {"ruleop.dev/applied": None, "example.com/note": note}
                    try:
                        self.operator.admin.merge(path, {"metadata": {"annotations": annotations}}, "somebody")
                    except RefusedError as refused:
                        if refused.code != 404:  # a child of the project before this one, which is collected only now
                            raise
            return self.operator.is_refused() or wanted <= self.operator.used()

        eventually("a live read of each child of a custom kind", is_read)
        self.operator.until_at_rest()

    def _reads(self, *, of_children: bool) -> set[Pair]:
        """The live reads of custom kinds that the operator may have to make."""
        watched = {rule.kind.kind for rule in self.rules}
        crds = [each for each in self.crds if (each["spec"]["names"]["kind"] in watched) is not of_children]
        return {Pair("get", each["metadata"]["name"]) for each in crds} & self.operator.granted

    def _children(self) -> Iterator[str]:
        plane = self.operator.plane
        for pair in sorted(self.operator.granted):
            if pair.verb == "create" and "delete" in {
                each.verb for each in self.operator.granted if each.resource == pair.resource
            }:
                found = plane.kubectl(
                    "get", pair.resource, "-A", "-l", "ruleop.dev/part-of", "-o", "json", "--ignore-not-found"
                )
                for each in json.loads(found or '{"items": []}')["items"]:
                    yield _path(each, pair.resource.partition(".")[0])

    def conflict(self) -> None:
        """Somebody changes the CRs while their status is written, until writes are outdated, and the CRs read live."""
        wanted = self._reads(of_children=False)

        def is_read() -> bool:
            for path in self.paths():
                for value in ("true", None):
                    paused = {"metadata": {"annotations": {"ruleop.dev/paused": value}}}
                    self.operator.admin.merge(path, paused, "somebody")
            return self.operator.is_refused() or wanted <= self.operator.used()

        eventually("a live read of each custom resource", is_read)
        self.operator.until_at_rest()

    def alternate(self) -> None:
        """Custom resources that say whether they are valid become invalid, twice: an Event repeats."""
        for path in (path for path, cr in zip(self.paths(), self.crs, strict=True) if "valid" in cr["spec"]):
            for valid in (False, True) * 2:
                self.operator.admin.merge(path, {"spec": {"valid": valid}}, "somebody")
                self.operator.until_at_rest()

    def delete(self) -> None:
        for path in self.paths():
            self.operator.admin.delete(path)
        gone = "the custom resources to be gone"
        eventually(gone, lambda: self.operator.is_refused() or not any(map(self._exists, self.paths())))
        self.operator.until_at_rest()

    def _exists(self, path: str) -> bool:
        found = self.operator.plane.kubectl("get", "--raw", path.rpartition("/")[0])
        return any(each["metadata"]["name"] == path.rpartition("/")[2] for each in json.loads(found)["items"])

    def forget_children(self) -> None:
        """The rules no longer have children, so those that exist are removed; then they have them again, unless the
        removal is refused: then the operator tries it until it has reported that."""
        file = self.operator.project / "watches.yaml"
        rules = file.read_text()
        heads = [
            {"group": rule.kind.group, "version": rule.kind.version, "kind": rule.kind.kind}
            | ({"reach": "cluster"} if rule.reach.cluster else {})
            for rule in self.rules
        ]
        for text in (yaml.safe_dump(heads), rules):
            if not self.operator.is_refused():
                file.write_text(text)
                self.operator.terminate()
                self.operator.start()
                self.operator.until_at_rest()


def _path(obj: Object, plural: str) -> str:
    root = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else "/api/v1"
    namespace = obj["metadata"].get("namespace")
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{plural}/{obj['metadata']['name']}"


def _group_kind(obj: Object) -> tuple[str, str]:
    return (obj["apiVersion"].rpartition("/")[0], obj["kind"])


def _documents(folder: Path) -> list[dict[str, Any]]:
    files = sorted([*folder.glob("*.yaml"), *folder.glob("*.json")]) if folder.exists() else []
    found = [each for file in files for each in yaml.safe_load_all(file.read_text()) if isinstance(each, dict)]
    by_name = {(each.get("kind"), each.get("metadata", {}).get("name")): each for each in found}
    return list(by_name.values())


def _definition(kind: Any, plural: str) -> dict[str, Any]:
    """A CRD for a kind of others that may have any fields."""
    return crd(kind.kind, kind.group, version(kind.version, ANYTHING), plural=plural)


def _is_of(path: str, read: Pair) -> bool:
    plural, _, group = read.resource.partition(".")
    return path.startswith(f"/apis/{group}/") and f"/{plural}/" in path
