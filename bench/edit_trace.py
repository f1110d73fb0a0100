"""The way of one edit through the operator: the functions that it calls between a change of `spec.deployment.replicas`
and the status that reports the new pods. The server in memory runs in a thread of its own, which is not traced.

    make bench        or        python bench/edit_trace.py

Each of the files has a line with its functions and their calls. Nothing is asserted. People have to follow this way,
so a new step of a pass takes the place of another: the aim is at most 75 files, 400 functions, and 90 calls that make
kinds and keys. On a busy machine a pass may wait where it usually does not, and then passes a few more.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import operator
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
import yaml
from structlog.testing import capture_logs

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ruleop.language.rules.checking import load_project  # noqa: E402
from ruleop.localcluster import LocalCluster  # noqa: E402
from ruleop.operator.manager.manager import Manager  # noqa: E402
from ruleop.operator.manager.parts import Options  # noqa: E402
from tests.waiting import until  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

PACKAGE: Final = f"{ROOT / 'ruleop'}/"
EDITS: Final = 5
BACKGROUND: Final = frozenset(
    {"inventory_gc", "loop_watchdog", "remarking", "follow_discovery", "follow_schemas", "bench"}
)
"""Tasks of the manager that have a time of their own, and that of this program, which waits for a quiet operator."""
IDENTITIES: Final = frozenset({"Kind.of", "Kind.parse", "Kind.versionless", "ObjectKey.of", "ObjectKey.group_kind"})

Calls = Counter[tuple[str, str]]
"""The number of calls of each function, by its file and its name."""


def trace_edit(folder: Path) -> Calls:
    """The calls that every one of some edits has: what else happens meanwhile differs between them."""
    app = yaml.safe_load((ROOT / "examples/app.yaml").read_text())
    with LocalCluster() as cluster, _logged():
        cluster.write_kubeconfig(folder / "kubeconfig")
        for each in sorted((ROOT / "crds").glob("*.yaml")):
            cluster.call(lambda each=each: cluster.apply(yaml.safe_load(each.read_text())))
        cluster.call(lambda: cluster.apply(app))
        return asyncio.run(_trace(cluster, app, str(folder / "kubeconfig")))


async def _trace(cluster: LocalCluster, app: dict[str, Any], kubeconfig: str) -> Calls:
    options = Options(
        kubeconfig=kubeconfig,
        metrics_address="0",
        health_address="0",
        leader_elect=False,
        reload=False,
        prune_after_reload=0.0,
    )
    cast("asyncio.Task[Calls]", asyncio.current_task()).set_name("bench")
    manager = Manager(load_project(ROOT, environ={}), ROOT, options)
    running = asyncio.create_task(manager.run())
    traces: list[Calls] = []

    def called(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and _is_traced(code.co_filename) and not code.co_name.endswith(("comp>", "expr>")):
            task = asyncio.current_task()
            if task is None or task.get_name() not in BACKGROUND:
                traces[-1][code.co_filename.removeprefix(PACKAGE), code.co_qualname] += 1

    try:
        await _until(lambda: _available(cluster, app) == app["spec"]["deployment"]["replicas"], manager)
        for _ in range(EDITS):
            app["spec"]["deployment"]["replicas"] += 1
            traces.append(Counter())
            sys.setprofile(called)
            cluster.call(lambda: cluster.apply(app))
            await _until(lambda: _available(cluster, app) == app["spec"]["deployment"]["replicas"], manager)
            sys.setprofile(None)
    finally:
        sys.setprofile(None)
        manager.stopping.set()
        await running
    return functools.reduce(operator.and_, traces)


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """The log has the level that an operator has by default, and is not printed."""
    before = structlog.get_config()["wrapper_class"]
    with capture_logs():
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
        yield
    structlog.configure(wrapper_class=before)


def _is_traced(file: str) -> bool:
    return file.startswith(PACKAGE) and not file.startswith(f"{PACKAGE}localcluster/")


async def _until(holds: Callable[[], bool], manager: Manager) -> None:
    """Returns when this holds, and the operator has nothing to do."""
    await until("a quiet operator", lambda: holds() and all(each.is_quiet() for each in manager.work.controllers))


def _available(cluster: LocalCluster, app: dict[str, Any]) -> int | None:
    """The pods that the status of the App reports, if the App is ready."""
    resource = next(each.resource for each in cluster.registry.all() if each.kind.kind == app["kind"])
    (found,) = cluster.call(lambda: [each.obj for each in cluster.store.all(resource)])
    status = found.get("status") or {}
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    return status.get("availableReplicas") if ready else None


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        calls = trace_edit(Path(folder))
    files = sorted({file for file, _ in calls})
    for file in files:
        functions = ", ".join(f"{name} {count}" for (each, name), count in calls.items() if each == file)
        print(f"{file}: {functions}")
    identities = sum(calls["kubernetes/kinds.py", name] for name in IDENTITIES)
    print(
        f"{len(files)} files, {len(calls)} functions, {calls.total()} calls; of these, {identities} make kinds and keys"
    )


if __name__ == "__main__":
    main()
