"""Rules are changed under a running operator: what an edit touches follows, what it does not touch is left alone, and
nothing is lost."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from ruleop.language.rules.checking import load_project
from ruleop.language.rules.loading import build_unchecked
from ruleop.operator.controllers.inventory import decode
from ruleop.operator.revisions import revision_store
from tests.cluster.mounts import publish
from tests.cluster.operator import RBAC, Operator, Permissions, described, eventually
from tests.cluster.server import CRDS, RefusedError
from tests.definitions import ANYTHING, crd, fields, version
from tests.folders import write_files

GROUP = "reload.example.com"
SOON = 60.0
FINALIZER = "ruleop.dev/ruleop"
PERMISSIONS = Permissions(
    watched=[f"boxes.{GROUP}", f"crates.{GROUP}", f"chests.{GROUP}"],
    children=["secrets", "serviceaccounts", "limitranges"],
)


def definition(kind: str, plural: str) -> dict[str, Any]:
    schema = fields(spec=ANYTHING, status=ANYTHING)
    versions = (version(name, schema, storage=name == "v1", subresources={"status": {}}) for name in ("v1", "v2"))
    return crd(kind, GROUP, *versions, plural=plural)


KINDS = {"Box": "boxes", "Crate": "crates", "Chest": "chests"}


def watch(kind: str, *, version: str = "v1", children: str = "secret: {template: secret.yaml}", more: str = "") -> str:
    return f"- {{group: {GROUP}, version: {version}, kind: {kind}, children: {{{children}}}{more and ', ' + more}}}\n"


def secret(text: str = "{{ spec.text }}", name: str = "{{ metadata.name }}") -> str:
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{text: '{text}'}}\n"


BASE = {
    "watches.yaml": watch("Box") + watch("Crate", children="secret: {template: other.yaml}"),
    "templates/secret.yaml": secret(),
    "templates/other.yaml": secret(name="{{ metadata.name }}-other"),
    "templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '{{ metadata.name }}'}\n",
    "templates/last.yaml": secret("the end", "{{ metadata.name }}-last"),
}
ACCOUNT = "secret: {template: secret.yaml}, account: {template: account.yaml}"
FINALIZE = "finalize: {last: {template: last.yaml}}"


class Rules:
    """The files of an operator's project, and what the operator makes of them."""

    def __init__(self, operator: Operator, namespace: str) -> None:
        self.operator, self.namespace, self.admin = operator, namespace, operator.admin

    def write(self, files: dict[str, str]) -> None:
        write_files(self.operator.project, files)

    def taken(self) -> list[list[str]]:
        """The kinds that each reload so far has touched."""
        return [
            [kind.partition(".")[0] for kind in line["touched"]]
            for line in self.operator.log()
            if line["event"] == "rules reloaded"
        ]

    def edit(self, files: dict[str, str]) -> list[str]:
        """Returns when it is in effect, with the kinds that it touches."""
        before = len(self.taken())
        self.write(files)
        return eventually("the edit to be taken", lambda: self.taken()[before:], SOON)[-1]

    def watches(self, *lines: str) -> list[str]:
        return self.edit({"watches.yaml": "".join(lines)})

    # -- objects -------------------------------------------------------------------------------------------------------

    def path(self, resource: str, name: str = "") -> str:
        base = f"/apis/{GROUP}/v1" if resource in KINDS.values() else "/api/v1"
        return f"{base}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def make(self, kind: str, name: str, text: str = "one") -> None:
        body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": {"text": text}}
        self.admin.post(self.path(KINDS[kind]), body)

    def there(self, resource: str, name: str) -> dict[str, Any] | None:
        try:
            return self.admin.get(self.path(resource, name))  # type: ignore[no-any-return]
        except RefusedError as error:
            if error.code == 404:
                return None
            raise

    def wait_for(self, resource: str, name: str) -> dict[str, Any]:
        return eventually(f"{resource}/{name}", lambda: self.there(resource, name), SOON)

    def wait_for_text(self, name: str, text: str) -> None:
        def holds() -> bool:
            found = self.there("secrets", name)
            return found is not None and base64.b64decode(found["data"]["text"]).decode() == text

        eventually(f"the secret {name} to say {text!r}", holds, SOON)

    def wait_until_ready(self, kind: str, name: str) -> None:
        """The pass that reported it has ended, too: its line of the log is written last."""

        def ready() -> bool:
            found = self.there(KINDS[kind], name)
            conditions = ((found or {}).get("status") or {}).get("conditions") or []
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

        eventually(f"{kind} {name} to be ready", ready, SOON)
        eventually(
            "the pass to be over", lambda: any(line["reason"] == "Ready" for line in _passes(self, 0, name)), SOON
        )

    def finalizers(self, kind: str, name: str) -> list[str]:
        found = self.there(KINDS[kind], name)
        return (found or {"metadata": {}})["metadata"].get("finalizers") or []

    def inventory(self) -> dict[str, Any]:
        found = self.admin.get(f"/api/v1/namespaces/{self.operator.name}/configmaps/ruleop-inventory")
        entries = decode(found.get("data") or {}).items()
        return {
            kind.kind: {"children": sorted(each.kind for each in entry.children), "finalizer": entry.finalizer}
            for kind, entry in entries
        }

    def revisions(self) -> revision_store.Revisions:
        path = f"/api/v1/namespaces/{self.operator.name}/configmaps/ruleop-revisions"
        return revision_store.decode(self.admin.get(path))

    def said(self, event: str, **fields: Any) -> bool:
        return any(
            line["event"] == event and all(line.get(name) == value for name, value in fields.items())
            for line in self.operator.log()
        )

    def verbose(self) -> str:
        return self.operator.probe("/readyz?verbose")[1]


@pytest.fixture(scope="module", autouse=True)
def kinds(control_plane: ControlPlane) -> Iterator[None]:
    """Kept out of the project, so that nothing there is about them."""
    admin = control_plane.api()
    for kind, plural in KINDS.items():
        admin.post(CRDS, definition(kind, plural))
    control_plane.until_served(*(f"crd/{plural}.{GROUP}" for plural in KINDS.values()))
    yield
    for plural in KINDS.values():
        admin.delete(f"{CRDS}/{plural}.{GROUP}")


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with Operator(
        control_plane, project(tmp_path_factory.mktemp("source")), PERMISSIONS, log_in(tmp_path_factory), *PAUSE
    ) as running:
        yield running
        # A resource whose finalizer is not removed would block its definition and its namespace.
        rules = Rules(running, "")
        rules.write({"watches.yaml": "watches: []\n"})
        eventually("all finalizers to go", lambda: rules.inventory() == {}, SOON)
        running.check()
        assert running.terminate() == 0


PAUSE = ("--prune-after-reload", "1s")


def project(folder: Path) -> Path:
    write_files(folder, {**BASE, "crds/readme.txt": ""})
    return folder


def log_in(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("operator") / "log"


@pytest.fixture
def rules(operator: Operator, namespace: str) -> Rules:
    """The rules of all tests to begin with."""
    rules = Rules(operator, namespace)
    files = {path: text for path, text in BASE.items() if (operator.project / path).read_text() != text}
    if files:
        rules.edit(files)
    return rules


def test_an_edit_of_a_template_is_rolled_out_and_affects_no_other_kind(rules: Rules) -> None:
    for name in ("a", "b"):
        rules.make("Box", name)
    rules.make("Crate", "c")
    for kind, name in (("Box", "a"), ("Box", "b"), ("Crate", "c")):
        rules.wait_until_ready(kind, name)
    mark, logged = rules.operator.mark(), len(rules.operator.log())
    assert rules.edit({"templates/secret.yaml": secret("{{ spec.text }} more")}) == ["Box"]
    for name in ("a", "b"):
        rules.wait_for_text(name, "one more")
        eventually("its status", lambda name=name: _passes(rules, logged, name), SOON)
    requests = rules.operator.requests(mark, rules.namespace)
    asked = sorted((each["verb"], each["objectRef"]["resource"], each["objectRef"]["name"]) for each in requests)
    assert [each for each in asked if each[1] not in {"boxes", "events"}] == [
        ("patch", "secrets", "a"),
        ("patch", "secrets", "b"),
    ]
    assert {verb for verb, *_ in asked} <= {"patch", "create"}, "nothing is read or listed"
    assert _passes(rules, logged, "c") == []


def test_a_kind_of_child_is_created_when_added_and_pruned_when_removed(rules: Rules) -> None:
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    mark, logged = rules.operator.mark(), len(rules.operator.log())
    assert rules.watches(watch("Box", children=ACCOUNT), watch("Crate", children="secret: {template: other.yaml}")) == [
        "Box"
    ]
    rules.wait_for("serviceaccounts", "a")
    assert ("watch", "serviceaccounts") in {
        (each["verb"], each["objectRef"]["resource"]) for each in rules.operator.requests(mark)
    }
    assert "ServiceAccount" in rules.inventory()["Box"]["children"]
    eventually("the pass to be over", lambda: _written(rules, logged, "a"), SOON)
    logged = len(rules.operator.log())
    rules.edit({"watches.yaml": BASE["watches.yaml"]})
    eventually("it to be pruned", lambda: rules.there("serviceaccounts", "a") is None, SOON)
    eventually("the pass to be over", lambda: _written(rules, logged, "a"), SOON)
    (line,) = _lines(rules, "deleted", logged)  # a busy operator writes the status in a pass of its own
    assert "pruning is resumed" in str(line["because"])
    eventually("the inventory to forget it", lambda: "ServiceAccount" not in rules.inventory()["Box"]["children"], SOON)
    eventually("its watch to end", lambda: "ServiceAccount" not in rules.verbose(), SOON)
    assert rules.inventory()["Box"]["children"] == ["Secret"]


def test_held_back_pruning_is_reported_and_then_done(rules: Rules) -> None:
    def conditions() -> dict[str, Any]:
        return {each["type"]: each for each in rules.there("boxes", "a")["status"]["conditions"]}  # type: ignore[index]

    rules.watches(watch("Box", children=ACCOUNT))
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    rules.edit({"watches.yaml": BASE["watches.yaml"]})
    found = eventually(
        "it to be reconciling", lambda: conditions() if conditions()["Ready"]["status"] == "False" else None, SOON
    )
    assert re.fullmatch(r"the deletion of 1 object is held back until \d\d:\d\d:\d\d UTC", found["Ready"]["message"])
    assert (found["Reconciling"]["status"], found["Stalled"]["status"]) == ("True", "False")
    eventually("it to be ready again", lambda: conditions()["Ready"]["status"] == "True", SOON)
    assert rules.there("serviceaccounts", "a") is None


def _written(rules: Rules, since: int, name: str) -> list[dict[str, Any]]:
    """The log lines of the passes that wrote something."""
    return [line for line in _passes(rules, since, name) if line["written"]]


def _passes(rules: Rules, since: int, name: str) -> list[dict[str, Any]]:
    return [line for line in _lines(rules, "reconciled", since) if line["resource"] == f"{rules.namespace}/{name}"]


def _lines(rules: Rules, event: str, since: int) -> list[dict[str, Any]]:
    return [line for line in rules.operator.log()[since:] if line["event"] == event]


def test_a_child_created_while_the_inventory_shrinks_stays_in_the_inventory(rules: Rules) -> None:
    rules.make("Box", "a")
    rules.wait_for("secrets", "a")
    for _ in range(2):
        rules.watches(watch("Box", children=ACCOUNT))
        rules.wait_for("serviceaccounts", "a")
        assert "ServiceAccount" in rules.inventory()["Box"]["children"]
        rules.watches(watch("Box"))
        eventually("it to be pruned", lambda: rules.there("serviceaccounts", "a") is None, SOON)


def test_a_broken_edit_changes_nothing_and_is_reported_until_it_is_fixed(rules: Rules) -> None:
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    mark = rules.operator.mark()
    rules.write({"watches.yaml": BASE["watches.yaml"].replace("children", "childern", 1)})
    eventually("readyz to tell", lambda: "[-] rules" in rules.verbose(), SOON)
    assert "watches.yaml:1:" in rules.verbose()
    assert 'unknown key "childern"' in rules.verbose()
    assert rules.operator.probe("/readyz")[0] == 200
    refusals = [line for line in rules.operator.log() if line["event"].startswith("reload rejected")]
    assert "watches.yaml:1:" in refusals[-1]["errors"]
    assert rules.operator.writes(mark, rules.namespace) == []
    rules.admin.merge(rules.path("boxes", "a"), {"spec": {"text": "two"}}, "somebody")
    rules.wait_for_text("a", "two")
    assert rules.edit({"watches.yaml": BASE["watches.yaml"]}) == []
    assert "[-] rules" not in rules.verbose()


def test_an_edit_that_check_refuses_is_refused_by_the_operator(rules: Rules) -> None:
    """Whether it concerns the schema of the custom resource or that of a child: all custom resources would fail."""
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    mark = rules.operator.mark()
    rules.write({"templates/secret.yaml": secret().replace("stringData", "stringDta")})
    eventually("readyz to tell", lambda: "[-] rules" in rules.verbose(), SOON)
    assert "templates/secret.yaml:4:" in rules.verbose()
    assert "stringDta" in rules.verbose()
    assert rules.operator.probe("/readyz")[0] == 200
    assert rules.operator.writes(mark, rules.namespace) == []
    rules.admin.merge(rules.path("boxes", "a"), {"spec": {"text": "two"}}, "somebody")
    rules.wait_for_text("a", "two")
    assert rules.edit(BASE) == []


def test_an_added_watch_starts(rules: Rules) -> None:
    rules.make("Chest", "a")
    assert rules.edit(
        {"watches.yaml": BASE["watches.yaml"] + watch("Chest", children="secret: {template: other.yaml}")}
    ) == ["Chest"]
    rules.wait_for("secrets", "a-other")


def test_each_of_several_watches_of_a_kind_reads_its_crs_in_its_own_version(rules: Rules) -> None:
    """A CR moves from one to the other with its label; its status is written, and its end finalized, in the version of
    its watch."""
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    told = "secret: {template: secret.yaml}"
    status = "status: {seen: '{{ cr.apiVersion }}'}"
    rules.edit(
        {
            "watches.yaml": watch("Box", children=told, more=f"name: old, selector: {{age: old}}, {status}")
            + watch("Box", version="v2", children=told, more=f"name: new, {status}, {FINALIZE}"),
            "templates/secret.yaml": secret("{{ cr.apiVersion }}"),
        }
    )

    def seen(name: str, version: str) -> None:
        rules.wait_for_text(name, f"{GROUP}/{version}")
        eventually(
            "the status",
            lambda: (rules.there("boxes", name) or {}).get("status", {}).get("seen") == f"{GROUP}/{version}",
            SOON,
        )

    seen("a", "v2")
    rules.admin.merge(rules.path("boxes", "a"), {"metadata": {"labels": {"age": "old"}}}, "somebody")
    seen("a", "v1")
    rules.admin.merge(
        rules.path("boxes", "a"), {"metadata": {"labels": {"age": "new"}}, "spec": {"text": "two"}}, "somebody"
    )
    seen("a", "v2")
    rules.wait_until_ready("Box", "a")
    assert not rules.said("reconcile failed with an internal error; will retry")
    mark = rules.operator.mark()
    rules.admin.delete(rules.path("boxes", "a"))
    eventually("it to be gone", lambda: rules.there("boxes", "a") is None, SOON)
    requests = [
        (each["verb"], each["objectRef"]["name"])
        for each in rules.operator.requests(mark)
        if each["objectRef"]["resource"] == "secrets"
    ]
    assert ("create", "a-last") in requests


def test_watches_of_other_versions_of_a_kind_continue(rules: Rules) -> None:
    rules.edit({"templates/secret.yaml": secret("{{ cr.apiVersion }}")})
    rules.make("Box", "a")
    rules.wait_for_text("a", f"{GROUP}/v1")
    before = rules.wait_for("secrets", "a")["metadata"]["uid"]
    assert rules.watches(watch("Box", version="v2", more="maxConcurrentReconciles: 1")) == ["Box", "Crate"]
    rules.wait_for_text("a", f"{GROUP}/v2")
    assert rules.wait_for("secrets", "a")["metadata"]["uid"] == before
    rules.make("Box", "b")
    rules.wait_for_text("b", f"{GROUP}/v2")


def test_a_removed_watch_keeps_its_children_and_removes_its_finalizer(rules: Rules) -> None:
    rules.watches(watch("Box", more=FINALIZE), watch("Crate", children="secret: {template: other.yaml}"))
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    assert rules.finalizers("Box", "a") == [FINALIZER]
    assert rules.inventory()["Box"]["finalizer"] is True
    before, mark = rules.wait_for("secrets", "a"), rules.operator.mark()
    assert rules.watches(watch("Crate", children="secret: {template: other.yaml}")) == ["Box"]
    eventually("its finalizer to go", lambda: rules.finalizers("Box", "a") == [], SOON)
    eventually("the inventory to forget it", lambda: "Box" not in rules.inventory(), SOON)
    eventually("its watch to end", lambda: f"{GROUP}/v1 Box" not in rules.verbose(), SOON)
    assert rules.wait_for("secrets", "a") == before
    assert rules.operator.writes(mark, rules.namespace) == ["patch boxes a"]
    rules.watches(watch("Box", more=FINALIZE), watch("Crate", children="secret: {template: other.yaml}"))
    eventually("its finalizer to be back", lambda: rules.finalizers("Box", "a") == [FINALIZER], SOON)
    eventually("what is there to be remembered", lambda: rules.inventory().get("Box", {}).get("children"), SOON)


def test_the_finalizer_of_a_watch_removed_while_the_operator_was_stopped_is_removed(rules: Rules) -> None:
    rules.watches(watch("Box", more=FINALIZE), watch("Crate", children="secret: {template: other.yaml}"))
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    rules.operator.kill()
    rules.write({"watches.yaml": watch("Crate", children="secret: {template: other.yaml}")})
    rules.operator.start()
    eventually("its finalizer to go", lambda: rules.finalizers("Box", "a") == [], SOON)
    eventually("the inventory to forget it", lambda: "Box" not in rules.inventory(), SOON)
    assert rules.there("secrets", "a") is not None


def test_empty_watches_remove_all_finalizers(rules: Rules) -> None:
    rules.watches(watch("Box", more=FINALIZE), watch("Crate", children="secret: {template: other.yaml}"))
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    rules.watches("watches: []\n")
    eventually("its finalizer to go", lambda: rules.finalizers("Box", "a") == [], SOON)
    eventually("the inventory to be empty", lambda: rules.inventory() == {}, SOON)
    assert rules.there("secrets", "a") is not None
    assert rules.operator.probe("/readyz")[0] == 200


def test_an_unneeded_finalizer_is_removed_after_a_reload(rules: Rules) -> None:
    rules.watches(watch("Box", more=FINALIZE))
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    assert rules.finalizers("Box", "a") == [FINALIZER]
    rules.watches(watch("Box"))
    eventually("its finalizer to go", lambda: rules.finalizers("Box", "a") == [], SOON)
    eventually("the inventory to know", lambda: rules.inventory()["Box"]["finalizer"] is False, SOON)


@pytest.mark.real_server("RBAC refuses")
def test_a_missing_permission_to_remove_a_finalizer_is_logged_once(rules: Rules) -> None:
    rules.watches(watch("Box", more=FINALIZE), watch("Crate", children="secret: {template: other.yaml}"))
    rules.make("Box", "a")
    rules.make("Box", "b")
    for name in ("a", "b"):
        rules.wait_until_ready("Box", name)
    role = f"{RBAC}/clusterroles/{rules.operator.name}"
    granted = rules.admin.get(role)["rules"]
    without = [
        {**each, "verbs": [verb for verb in each["verbs"] if verb != "patch"]} if "boxes" in each["resources"] else each
        for each in granted
    ]
    event = "finalizer cannot be removed; will retry"
    logged = len(rules.operator.log())
    rules.admin.merge(role, {"rules": without}, "somebody")
    try:
        rules.watches(watch("Crate", children="secret: {template: other.yaml}"))
        eventually("it to say so", lambda: _lines(rules, event, logged), SOON)
    finally:
        rules.admin.merge(role, {"rules": granted}, "somebody")
    for name in ("a", "b"):
        eventually("its finalizer to go", lambda name=name: rules.finalizers("Box", name) == [], SOON)
    (line,) = _lines(rules, event, logged)
    assert "patch boxes" in line["error"]


def test_a_manual_edit_of_the_inventory_is_harmless(rules: Rules) -> None:
    """Missing entries are written again, and unknown ones are removed."""
    rules.make("Box", "a")
    rules.wait_until_ready("Box", "a")
    path = f"/api/v1/namespaces/{rules.operator.name}/configmaps/ruleop-inventory"
    rules.operator.kill()
    nonsense = {
        "Nobody.example.com": '{"children":["Nothing.example.com"],"finalizer":true}',
        f"Box.{GROUP}": "{",
        "Crate": "[]",
    }
    rules.admin.send("PUT", path, {**rules.admin.get(path), "data": nonsense})
    rules.operator.start()
    eventually(
        "what is there to be remembered", lambda: rules.inventory().get("Box", {}).get("children") == ["Secret"], SOON
    )
    eventually("what is not there to be forgotten", lambda: "Nobody" not in rules.inventory(), SOON)
    rules.operator.kill()
    rules.admin.delete(path)
    rules.operator.start()
    eventually("it to be there again", lambda: rules.inventory().get("Box", {}).get("children") == ["Secret"], SOON)


def test_each_edit_is_a_revision_and_a_restart_is_none(rules: Rules) -> None:
    present = load_project(rules.operator.project, environ={})
    eventually("the rules to be recorded", lambda: rules.revisions().is_recorded(present.revision), SOON)
    before = len(rules.revisions().index)
    rules.edit({"templates/secret.yaml": secret("changed")})
    eventually("the edit to be recorded", lambda: len(rules.revisions().index) > before, SOON)
    rules.edit({"templates/secret.yaml": BASE["templates/secret.yaml"]})
    eventually("its reversal to be recorded", lambda: len(rules.revisions().index) > before + 1, SOON)
    revisions = rules.revisions()
    assert revisions.index[-3].digest == revisions.index[-1].digest == present.revision
    for digest, text in ((revisions.index[-2].digest, "changed"), (present.revision, "{{ spec.text }}")):
        files = revision_store.files_of_revision(revisions, digest, present.root)
        assert files is not None
        found = build_unchecked(files, environ={})
        assert found.templates["secret.yaml"] == secret(text)
        assert (found.digest == present.digest) == (digest == present.revision)

    rules.operator.kill()
    mark, passes = rules.operator.mark(), len(rules.operator.log())
    rules.make("Box", "a")
    rules.operator.start()
    eventually("it to work", lambda: _passes(rules, passes, "a"), SOON)

    def asked() -> list[str]:
        requests = (described(each) for each in rules.operator.requests(mark, rules.operator.name))
        return [each for each in requests if each.endswith("-revisions")]

    assert set(eventually("it to be read", asked, SOON)) == {"get configmaps ruleop-revisions"}


def test_configmaps_mounted_as_folders_are_reloaded(
    control_plane: ControlPlane, tmp_path: Path, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tmp_path / "variables").write_text("WORD=said in a file\n")
    arguments = (*PAUSE, "--env-file", str(tmp_path / "variables"))
    operator = Operator(control_plane, project(tmp_path / "source"), PERMISSIONS, log_in(tmp_path_factory), *arguments)
    templates = {path.removeprefix("templates/"): text for path, text in BASE.items() if path.startswith("templates/")}
    shutil.rmtree(operator.project)
    (operator.project / "templates").mkdir(parents=True)
    publish(operator.project, "..1", {"watches.yaml": BASE["watches.yaml"]})
    publish(operator.project / "templates", "..1", templates)
    rules = Rules(operator, namespace)
    with operator:
        rules.make("Box", "a")
        rules.wait_for_text("a", "one")
        for number in (2, 3):
            publish(
                operator.project / "templates", f"..{number}", {**templates, "secret.yaml": secret(f"number {number}")}
            )
            rules.wait_for_text("a", f"number {number}")
        publish(
            operator.project, "..2", {"watches.yaml": watch("Box", children=ACCOUNT, more="vars: {word: '${WORD}'}")}
        )
        rules.wait_for("serviceaccounts", "a")
        publish(operator.project / "templates", "..4", {**templates, "secret.yaml": secret("{{ vars.word }}")})
        rules.wait_for_text("a", "said in a file")
        operator.check()
        assert operator.terminate() == 0
