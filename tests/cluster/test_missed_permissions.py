"""Without any permission of the roles that `ruleop generate rbac` writes, something fails.

The API server does not stream lists here, so that `list` is used, too. docs/reference/permissions.md has what fails:
RULEOP_WRITE_PAGES=1 writes it again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from controlplane.cluster import ControlPlane

from tests.cluster.generated_roles import EVERY, GeneratedRoles, Life, Pair, Prepared, missed_by
from tests.cluster.operator import eventually
from tests.cluster.server import RefusedError
from tests.processes.fork_server import ForkServer

pytestmark = pytest.mark.real_server("RBAC refuses")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "permissions.md"
BEGIN, END = "<!-- permissions: begin -->\n", "<!-- permissions: end -->"
PURPOSES: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("a watched kind", "nears.permissions.example.com"): {
        "get": "the live state after a conflict, and before the finalizer is removed",
        "list": "the cache, on a server that does not stream lists, and after one has expired",
        "watch": "the cache",
    },
    ("its `/status`", "nears.permissions.example.com/status"): {"patch": "the status"},
    ("a watched kind whose rules need a finalizer", "fars.permissions.example.com"): {"patch": "the finalizer"},
    ("a watched kind without a status subresource", "bares.permissions.example.com"): {"patch": "the status"},
    ("a kind of child", "services"): {
        "get": "the live state before a deletion, after a conflict, and of an object that has a child's name",
        "list": "the cache, as above",
        "watch": "the cache",
        "create": "new children",
        "patch": "changes",
        "delete": "children that are not desired; not for `deletion: orphan`",
    },
    ("an observed kind", "limitranges"): {"list": "the cache, as above", "watch": "the cache"},
    ("an observed object with a fixed name", "resourcequotas"): {"list": "the cache, as above", "watch": "the cache"},
    ("an object with a fixed name, of `patch`", "priorityclasses.scheduling.k8s.io"): {
        "list": "the cache, as above",
        "watch": "the cache",
        "patch": "its fields",
    },
    ("the role that a child refers to", "clusterroles.rbac.authorization.k8s.io"): {"bind": "the RoleBinding"},
    ("all that a child grants", "jobs.batch/status"): {"get": "the Role; the verbs are those that it grants"},
    ("`events.events.k8s.io`", "events.events.k8s.io"): {"create": "Events", "patch": "the count of a repeated Event"},
    ("`customresourcedefinitions.apiextensions.k8s.io`", "customresourcedefinitions.apiextensions.k8s.io"): {
        "list": "new and changed kinds, as above; not with `--namespaces`",
        "watch": "new and changed kinds; not with `--namespaces`",
    },
    ("`namespaces`", "namespaces"): {
        "get": "whether the namespace is being deleted; only for `finalize`, `patch` and orders of deletion"
    },
    ("ConfigMap `NAME-inventory`", "configmaps"): {
        "create": "the inventory, and the revisions (a role cannot limit creations to a name)",
        "get": "the inventory at the start",
        "update": "kinds that are added or removed",
    },
    ("ConfigMap `NAME-revisions`", "configmaps revisions"): {
        "get": "the revisions of the rules, when an operator starts to lead, and after a reload",
        "update": "a new revision",
    },
    ("Secret `NAME-owner-key`", "secrets"): {
        "create": "the key; only for `finalize`, `patch`, `reach: cluster`, `deletion` and orders of deletion",
        "get": "the key at the start",
        "update": "the end of the replacement of a key",
    },
    ("Lease `NAME`", "leases.coordination.k8s.io"): {
        "create": "the first leader; only with `--leader-elect`",
        "get": "who leads",
        "list": "other processes of the operator",
        "update": "leading, and its renewal",
    },
}
PAIRS = [Pair(verb, *resource.split()) for (_, resource), verbs in PURPOSES.items() for verb in verbs]
OUTCOMES: dict[Pair, str] = {}


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    with ControlPlane(apiserver_flags=["--feature-gates=WatchList=false"]) as plane:
        yield plane
        plane.check()


@pytest.fixture(scope="module")
def every(control_plane: ControlPlane) -> Iterator[None]:
    control_plane.define(EVERY / "crds")
    yield
    control_plane.kubectl("delete", f"--filename={EVERY / 'crds'}", "--wait=false")


@pytest.mark.usefixtures("every")
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_each_permission_is_missed_when_it_is_taken_away(
    control_plane: ControlPlane, fork_server: ForkServer, pair: Pair, tmp_path: Path, namespace: str
) -> None:
    operator = Prepared(control_plane, EVERY, tmp_path / "operator" / "log", without=pair)
    operator.program = fork_server.command()
    life = Life(operator, EVERY, namespace)
    with operator:
        life.live()
        eventually("a request that is refused", operator.is_refused)
        OUTCOMES[pair] = reported(operator, pair)
        operator.kill()
        for path in life.paths():
            with contextlib.suppress(RefusedError):
                operator.admin.merge(path, {"metadata": {"finalizers": None}}, "somebody")
                operator.admin.delete(path)


UNREPORTED: Final = {
    Pair("get", "nears.permissions.example.com"): "a conflict is retried later, and a finalizer is not removed",
    Pair("get", "namespaces"): "the deletion of a namespace is noticed when a write is rejected",
}


def reported(operator: GeneratedRoles, pair: Pair) -> str:
    """What the operator says of the refused request: in the condition of the custom resource, or in its log."""
    if pair in UNREPORTED:
        return UNREPORTED[pair]
    missed = missed_by(pair)

    def found() -> str | None:
        for line in operator.warnings():
            words = (f"cannot {pair} ", f"cannot {pair}:", "grant the ")
            if line["event"] == "problem" and any(each in line["message"] for each in words):
                return f"Ready is False, `{line['reason']}`"
            if str(line.get("error", "")).startswith((f"{missed} ", f"{missed}: ")):
                return f"`{line['event']}` in the log"
        return None

    return eventually(f"a report of {pair}", found)


def test_the_page_has_each_permission_with_what_fails_without_it() -> None:
    assert set(OUTCOMES) == set(PAIRS), "run the whole module"
    head = ["| on | verb | for | without it |", "|---|---|---|---|"]
    rows = [
        f"| {where} | {verb} | {why} | {OUTCOMES[Pair(verb, *resource.split())]} |"
        for (where, resource), verbs in PURPOSES.items()
        for verb, why in verbs.items()
    ]
    text = PAGE.read_text(encoding="utf-8")
    (before, rest), table = text.split(BEGIN), "\n".join([*head, *rows])
    written = f"{before}{BEGIN}\n{table}\n\n{END}{rest.partition(END)[2]}"
    if os.environ.get("RULEOP_WRITE_PAGES"):
        PAGE.write_text(written, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == written
