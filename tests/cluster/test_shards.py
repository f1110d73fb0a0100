"""Several processes of one operator that divide the custom resources: as the pods of a StatefulSet, which is scaled
while resources are created and edited, and whose pods are killed and suspended. The audit log shows who wrote."""

from __future__ import annotations

import itertools
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from controlplane.audit import AuditLog, moment
from controlplane.cluster import ControlPlane

from ruleop.kubernetes.buckets import bucket_of, buckets_of, hash_range, owner_of
from ruleop.planning.rollout.rollout_record import RolloutRecord, decode
from tests.cluster.operator import OWN_NAMESPACE, RBAC, WRITES, Permissions, eventually
from tests.cluster.pod import LEASES, Pod
from tests.cluster.relay import Relay
from tests.cluster.server import Client
from tests.definitions import definition

RULES = """\
- group: example.com
  version: v1
  kind: Note
  children:
    text:
      template: text.yaml
  status:
    text: "{{ text.data.text }}"
"""
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data: {text: "{{ spec.text }}"}
"""
SHORT = (
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=500ms",
)
PERMISSIONS = Permissions(["notes.example.com"], ["configmaps"])
OWN = (*OWN_NAMESPACE, LEASES)
STATEFUL_SET = {
    "apiGroups": ["apps"],
    "resources": ["statefulsets"],
    "resourceNames": ["ruleop"],
    "verbs": ["get", "list", "watch"],
}
NOTES = int(os.environ.get("RULEOP_TEST_NOTES", "40"))
"""Resources that are divided. More take minutes: by hand."""


class Shards:
    """The pods of one StatefulSet, each under an account of its own."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path) -> None:
        self.plane, self.admin, self.namespace, self.folder = plane, Client(plane), namespace, folder
        self.notes = f"/apis/example.com/v1/namespaces/{namespace}/notes"
        self.maps = f"/api/v1/namespaces/{namespace}/configmaps"
        self.project = folder / "rules"
        (self.project / "templates").mkdir(parents=True)
        (self.project / "crds").mkdir()
        (self.project / "watches.yaml").write_text(RULES)
        (self.project / "templates/text.yaml").write_text(TEMPLATE)
        self.crd = self.project / "crds/notes.yaml"
        self.crd.write_text(definition("Note"))
        plane.define(self.crd)
        self.mark = plane.audit_log.mark()
        self.second: AuditLog | None = None  # of another API server on the same etcd
        self.port = 0  # of a proxy in front of both
        self.pods: dict[int, Pod] = {}
        self.all: list[Pod] = []

    def close(self) -> None:
        for pod in self.all:
            pod.__exit__()
        self.admin.close()
        self.plane.kubectl("delete", f"--filename={self.crd}", "--wait=true")

    # -- the StatefulSet -----------------------------------------------------------------------------------------------

    def start(self, ordinal: int) -> Pod:
        """A new process for this ordinal, as the kubelet would start it."""
        pod = self.pods[ordinal] = self.pod(ordinal)
        if len(self.all) == 1:
            self.create_stateful_set(1)
        pod.start()
        return pod

    def pod(self, ordinal: int, *flags: str) -> Pod:
        pod = Pod(
            self.plane,
            self.project,
            PERMISSIONS,
            self.folder / f"pod-{len(self.all)}/log",
            *(flags or ["--shards=auto"]),
            *SHORT,
            home=self.all[0].home if self.all else "",
            own=OWN,
        )
        pod.environment = {"POD_NAME": f"ruleop-{ordinal}", "POD_NAMESPACE": pod.home}
        self.all.append(pod)
        pod._grant()
        if self.port:
            text = pod.kubeconfig.read_text()
            pod.kubeconfig.write_text(text.replace(self.plane.server, f"https://127.0.0.1:{self.port}"))
        role = f"{RBAC}/namespaces/{pod.home}/roles/{pod.name}"
        self.admin.merge(role, {"rules": [*OWN, STATEFUL_SET]}, "somebody")
        return pod

    def create_stateful_set(self, count: int) -> None:
        labels = {"app": "ruleop"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "operator", "image": "ruleop"}]}}
        spec = {"serviceName": "", "replicas": count, "selector": {"matchLabels": labels}, "template": template}
        self.admin.post(
            f"/apis/apps/v1/namespaces/{self.all[0].home}/statefulsets",
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "ruleop"}, "spec": spec},
        )

    def scale(self, count: int) -> None:
        path = f"/apis/apps/v1/namespaces/{self.all[0].home}/statefulsets/ruleop"
        self.admin.merge(path, {"spec": {"replicas": count}}, "somebody")
        for ordinal in range(count):
            if ordinal not in self.pods:
                self.start(ordinal)
        for ordinal in [each for each in self.pods if each >= count]:
            assert self.pods.pop(ordinal).terminate() == 0

    def wait_until_divided(self) -> None:
        """Each process says that it has all buckets of its share."""
        count = len(self.pods)
        for ordinal, pod in self.pods.items():
            text = f"shard {ordinal} of {count}"
            eventually(
                f"{text} to be settled",
                lambda pod=pod, text=text: any(
                    line.startswith("[+] shards: ") and text in line
                    for line in pod.probe("/readyz?verbose")[1].splitlines()
                ),
            )

    def publish(self, rules: str, template: str) -> None:
        """New rules for each process, one after the other."""
        for project in (self.project, *(pod.project for pod in self.all)):
            (project / "watches.yaml").write_text(rules)
            (project / "templates/text.yaml").write_text(template)

    def rollout(self) -> RolloutRecord:
        found = self.admin.get(f"/api/v1/namespaces/{self.all[0].home}/configmaps/ruleop-rollouts")
        return decode(found["data"]["Note.example.com"])

    # -- the resources -------------------------------------------------------------------------------------------------

    def create(self, names: range) -> None:
        for number in names:
            metadata = {"name": f"note-{number}"}
            note = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": metadata, "spec": {"text": "first"}}
            self.admin.post(self.notes, note)

    def edit(self, names: range, text: str) -> None:
        for number in names:
            self.admin.merge(f"{self.notes}/note-{number}", {"spec": {"text": text}}, "somebody")

    def wait_until_ready(self, names: range, text: str) -> None:
        """All children are as a single operator makes them, and the status shows it."""

        def pending() -> list[str]:
            notes = {each["metadata"]["name"]: each for each in self.admin.get(self.notes)["items"]}
            maps = {each["metadata"]["name"]: each for each in self.admin.get(self.maps)["items"]}
            return [
                name
                for name in (f"note-{number}" for number in names)
                if name not in maps
                or maps[name]["data"] != {"text": text}
                or (notes[name].get("status") or {}).get("text") != text
                or maps[name]["metadata"]["labels"]["ruleop.dev/bucket"]
                != str(bucket_of(notes[name]["metadata"]["uid"]))
            ]

        eventually(f"all notes to say {text}", lambda: not pending())

    # -- who wrote -----------------------------------------------------------------------------------------------------

    def writers(self) -> dict[str, list[tuple[int, float, float]]]:
        """For each Note, by its name: the index of the process of each write of its status or its child, with begin and
        end."""
        self.all[0].requests()  # waits for the audit log
        by_user = {pod.user: index for index, pod in enumerate(self.all)}
        found = defaultdict(list)
        second = self.second.events(namespace=self.namespace) if self.second is not None else []
        for event in (*self.plane.audit(mark=self.mark, namespace=self.namespace), *second):
            target, writer = event["objectRef"], by_user.get(event["user"]["username"])
            if event["verb"] not in WRITES or target["resource"] not in {"notes", "configmaps"} or writer is None:
                continue
            span = (moment(event["requestReceivedTimestamp"]), moment(event["stageTimestamp"]))
            found[target.get("name", "")].append((writer, *span))
        return {name: sorted(each, key=lambda write: write[1]) for name, each in found.items() if name}

    def check_owners(self) -> None:
        """A process that has written for a Note and stopped doing so never writes for it again, unless it is its turn
        after a later change of the count; and the writes of two processes for one Note never overlap."""
        for name, writes in self.writers().items():
            for (before, _, ended), (after, began, _) in itertools.pairwise(writes):
                assert before == after or ended <= began, f"{name}: {writes}"
        for pod in self.all:
            pod.check()

    def owners(self, count: int) -> dict[str, int]:
        notes = self.admin.get(self.notes)["items"]
        return {each["metadata"]["name"]: owner_of(bucket_of(each["metadata"]["uid"]), count) for each in notes}


@pytest.fixture
def shards(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Shards]:
    made = Shards(control_plane, namespace, tmp_path)
    try:
        yield made
        for pod in made.all:
            pod.check()
    except BaseException:
        for pod in made.all:
            pod.show()
        raise
    finally:
        made.close()


def last_writers(shards: Shards) -> dict[str, Pod]:
    return {name: shards.all[writes[-1][0]] for name, writes in shards.writers().items() if name.startswith("note-")}


def assert_divided(shards: Shards, text: str) -> None:
    """After an edit of all, each is written by its owner."""
    everything = range(len(shards.admin.get(shards.notes)["items"]))
    shards.wait_until_divided()
    shards.edit(everything, text)
    shards.wait_until_ready(everything, text)
    writers, count = last_writers(shards), len(shards.pods)
    assert {name: writers[name] for name in writers} == {
        name: shards.pods[owner] for name, owner in shards.owners(count).items()
    }


def test_scaling_divides_the_resources_again_while_they_change(shards: Shards) -> None:
    shards.start(0)
    shards.create(range(NOTES))
    shards.wait_until_ready(range(NOTES), "first")
    assert_divided(shards, "alone")
    for count in (3, 2, 1):
        shards.edit(range(NOTES), f"before {count}")
        shards.scale(count)
        shards.edit(range(NOTES), f"after {count}")
        assert_divided(shards, f"with {count}")
    shards.check_owners()


def test_a_killed_process_is_replaced_when_its_lease_has_run_out(shards: Shards) -> None:
    shards.start(0)
    shards.create(range(NOTES))
    shards.scale(2)
    assert_divided(shards, "both")
    old = shards.pods[1]
    old.kill()
    shards.edit(range(NOTES), "edited")
    mine = [name for name, owner in shards.owners(2).items() if owner == 0]
    eventually(
        "the notes of the first shard to be edited",
        lambda: all(shards.admin.get(f"{shards.maps}/{name}")["data"]["text"] == "edited" for name in mine),
    )
    shards.start(1)
    shards.wait_until_ready(range(NOTES), "edited")
    shards.check_owners()
    last, first = (
        [began for writes in shards.writers().values() for writer, began, _ in writes if shards.all[writer] is pod]
        for pod in (old, shards.pods[1])
    )
    assert min(first) - max(last) > 4, "it may still have been alive"


def test_a_suspended_process_loses_its_resources_and_writes_nothing_when_it_resumes(shards: Shards) -> None:
    """The StatefulSet is scaled down meanwhile: the other process waits until the Lease has run out."""
    shards.start(0)
    shards.create(range(NOTES))
    shards.scale(2)
    assert_divided(shards, "both")
    suspended = shards.pods.pop(1)
    suspended.signal(signal.SIGSTOP)
    shards.edit(range(NOTES), "edited")
    shards.scale(1)
    shards.wait_until_ready(range(NOTES), "edited")
    shards.edit(range(NOTES), "again")
    mark = shards.plane.audit_log.mark()
    suspended.signal(signal.SIGCONT)
    assert suspended.wait_for_exit() == 1
    assert_divided(shards, "alone")
    assert suspended.writes(mark, shards.namespace) == []
    shards.check_owners()


def test_buckets_without_a_process_are_reported(shards: Shards) -> None:
    first = shards.start(0)
    shards.create(range(NOTES))
    shards.scale(2)
    assert_divided(shards, "both")
    shards.pods.pop(1).kill()
    lines = eventually(
        "the report",
        lambda: [each for each in first.probe("/readyz?verbose")[1].splitlines() if "unowned buckets" in each],
    )
    assert lines == ["[-] unowned buckets: 32 buckets have no process: is ruleop-1 running?"]
    assert first.probe("/readyz")[0] == 200, "a restart would not help"


def test_a_bad_edit_of_the_rules_reaches_one_wave_of_all_shards(shards: Shards) -> None:
    """The processes see the edit at different times, and the first, which drives the rollout, is replaced meanwhile."""
    rules = f"{RULES}  rollout: {{maxUnavailable: 3}}\n"
    shards.publish(rules, TEMPLATE)
    shards.start(0)
    shards.create(range(NOTES))
    shards.scale(3)
    assert_divided(shards, "one")
    bad = "{{ spec.missing if metadata.name in ['note-7', 'note-17', 'note-27'] else 'second' }}"
    shards.publish(rules, TEMPLATE.replace("{{ spec.text }}", bad))
    eventually("the first release", lambda: shards.rollout().released)
    shards.pods[0].kill()
    shards.start(0)
    eventually("the rollout to stop", lambda: shards.rollout().phase == "Stopped", 120.0)
    shards.wait_until_divided()
    record = shards.rollout()
    assert record.total == NOTES
    assert len(record.failed) == 1
    texts = [each["data"]["text"] for each in shards.admin.get(shards.maps)["items"] if "text" in each["data"]]
    assert texts.count("second") <= len(record.released) - 1
    assert texts.count("one") >= NOTES - len(record.released)
    shards.publish(rules, TEMPLATE.replace("{{ spec.text }}", "third"))
    shards.wait_until_ready(range(NOTES), "third")
    eventually("the rollout to be complete", lambda: shards.rollout().phase == "Complete")
    shards.check_owners()


def test_a_pod_without_a_stateful_set_reports_that(shards: Shards) -> None:
    pod = shards.pod(0)
    pod.launch()
    line = pod.wait_for_log("the number of shards is not known")
    assert line["problem"] == f"StatefulSet {pod.home}/ruleop not found: --shards auto is for its pods"
    assert pod.probe("/readyz")[0] == 503


def test_two_processes_whose_selectors_match_the_same_resource(shards: Shards) -> None:
    """The first keeps it; the second reports that, and has it when the first has ended."""
    first = shards.pod(0, "--leader-elect", "--selector=team=a")
    first.start()
    for name, labels in (("one", {"team": "a", "tier": "x"}), ("two", {"tier": "x"}), ("three", {"team": "a"})):
        metadata = {"name": name, "labels": labels}
        note = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": metadata, "spec": {"text": "first"}}
        shards.admin.post(shards.notes, note)
    second = shards.pod(1, "--leader-elect", "--selector=tier=x")
    second.start()
    eventually("all to be written", lambda: len(shards.admin.get(shards.maps)["items"]) == 1 + 3)
    events = eventually(
        "the event",
        lambda: [
            each
            for each in shards.admin.get(f"/apis/events.k8s.io/v1/namespaces/{shards.namespace}/events")["items"]
            if each["reason"] == "ReconciledElsewhere"
        ],
    )
    assert {each["regarding"]["name"] for each in events} == {"one"}
    assert 'another process with the selector "team=a" does that' in events[0]["note"]
    assert first.terminate() == 0
    shards.admin.merge(f"{shards.notes}/one", {"spec": {"text": "second"}}, "somebody")
    eventually(
        "the second to write it",
        lambda: shards.admin.get(f"{shards.maps}/one")["data"]["text"] == "second",
    )
    # Handing over is an edit of a label.
    third = shards.pod(2, "--leader-elect", "--selector=team=b")
    third.start()
    shards.admin.merge(f"{shards.notes}/three", {"metadata": {"labels": {"team": "b"}}}, "somebody")
    shards.admin.merge(f"{shards.notes}/three", {"spec": {"text": "third"}}, "somebody")
    eventually(
        "the third to write it",
        lambda: shards.admin.get(f"{shards.maps}/three")["data"]["text"] == "third",
    )
    writers = {name: [shards.all[writer] for writer, _, _ in writes] for name, writes in shards.writers().items()}
    assert (writers["one"][0], writers["one"][-1]) == (first, second)
    assert set(writers["two"]) == {second}
    assert (writers["three"][0], writers["three"][-1]) == (first, third)


def test_a_resource_that_no_selector_matches_is_counted_by_one_process(shards: Shards) -> None:
    """Until a process has it; and again when that one has ended. The operator may list nothing more for that."""
    first = shards.pod(0, "--leader-elect", "--selector=team=a")
    first.start()
    metadata = {"name": "lost", "labels": {"team": "c"}}
    note = {"apiVersion": "example.com/v1", "kind": "Note", "metadata": metadata, "spec": {"text": "first"}}
    shards.admin.post(shards.notes, note)
    second = shards.pod(1, "--leader-elect", "--selector=team=b")
    second.start()

    def counted(number: int) -> None:
        """By the first process; the second leaves it to that one."""
        expected = [f"[-] unowned resources: {number} without a process"] if number else []

        def lines(pod: Pod) -> list[str]:
            return [each for each in pod.probe("/readyz?verbose")[1].splitlines() if "unowned resources" in each]

        eventually(f"{number} without a process", lambda: lines(first) == expected)
        assert lines(second) == []

    counted(1)
    line = first.wait_for_log("no process reconciles some custom resources")
    assert line["examples"] == [f"Note/{shards.namespace}/lost"]
    third = shards.pod(2, "--leader-elect", "--selector=team=c")
    third.start()
    counted(0)
    assert third.terminate() == 0
    counted(1)


@pytest.mark.newest("it divides lists")
@pytest.mark.real_server("a feature gate of the API server")
def test_an_api_server_that_can_divide_lists_sends_each_shard_its_part(tmp_path: Path) -> None:
    """Its hash of a uid is ruleop's, so a range of buckets is a range of its hashes."""
    with ControlPlane(controllers=False, apiserver_flags=["--feature-gates=ShardedListAndWatch=true"]) as plane:
        plane.api().post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "notes"}})
        shards = Shards(plane, "notes", tmp_path)
        try:
            shards.start(0)
            shards.create(range(NOTES))
            shards.scale(2)
            assert_divided(shards, "both")
            shards.check_owners()
            asked = {
                each["requestURI"]
                for each in shards.pods[1].requests()
                if "/notes?" in each["requestURI"] and each["verb"] in {"list", "watch"}
            }
            assert asked
            assert all("shardSelector=shardRange%28object.metadata.uid" in uri for uri in asked)
            for ordinal in range(2):
                first, end = hash_range(buckets_of(ordinal, 2))
                selector = f"shardRange(object.metadata.uid,'0x{first:016x}','0x{end:016x}')"
                found = plane.api().get(f"{shards.notes}?shardSelector={quote(selector)}")
                names = {each["metadata"]["name"] for each in found["items"]}
                assert names == {name for name, owner in shards.owners(2).items() if owner == ordinal}
        finally:
            shards.close()


@pytest.mark.newest("it divides lists")
@pytest.mark.real_server("two API servers on one etcd")
def test_two_api_servers_of_which_one_can_divide_lists_behind_a_proxy(tmp_path: Path) -> None:
    """As during an upgrade of a control plane. A list may come from one, and its watch from the other; the connections
    end while the resources are edited and divided again."""
    with ControlPlane(controllers=False) as plane:
        plane.api().post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "notes"}})
        shards = Shards(plane, "notes", tmp_path)
        port, shards.second = plane.start_second_apiserver("--feature-gates=ShardedListAndWatch=true")
        relay = Relay(plane.layout.ports[2], port)
        shards.port = relay.port
        try:
            shards.start(0)
            shards.create(range(NOTES))
            for count in (3, 2):
                shards.edit(range(0, NOTES, 2), f"before {count}")
                relay.cut()
                shards.scale(count)
                shards.edit(range(1, NOTES, 2), f"after {count}")
                relay.cut()
                shards.wait_until_divided()
                shards.edit(range(NOTES), f"with {count}")
                relay.cut()
                shards.wait_until_ready(range(NOTES), f"with {count}")
            shards.check_owners()
            for log in (shards.second, plane.audit_log):
                asked = [each["requestURI"] for each in log.events() if "/notes?" in each["requestURI"]]
                assert any("shardSelector" in uri for uri in asked), f"{log.path}: each server was asked"
        finally:
            shards.close()
            relay.close()
