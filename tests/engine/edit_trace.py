"""The way of one edit through the operator: the functions that it calls between a change of `spec.deployment.replicas`
and the status that reports the new pods. The server in memory runs in a thread of its own, which is not traced.

    python -m tests.engine.edit_trace        the files, each with its functions and their calls
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
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import structlog
import yaml
from structlog.testing import capture_logs

from ruleop.core.rules import load_project
from ruleop.localcluster import LocalCluster
from ruleop.operator.engine.manager.flags import Options
from ruleop.operator.engine.manager.manager import Manager
from tests.waiting import until

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = f"{ROOT / 'ruleop'}/"
EDITS: Final = 5
BACKGROUND: Final = frozenset(
    {"inventory_gc", "loop_watchdog", "remarking", "follow_discovery", "follow_schemas", "test"}
)
"""Tasks of the manager that have a time of their own, and that of the test, which waits for a quiet operator."""

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
    cast("asyncio.Task[Calls]", asyncio.current_task()).set_name("test")
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
    await until("a quiet operator", lambda: holds() and all(each.is_quiet() for each in manager.controllers))


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
        sys.stdout.write(f"{file}: {functions}\n")
    sys.stdout.write(f"{len(files)} files, {len(calls)} functions, {calls.total()} calls\n")


if __name__ == "__main__":
    main()
