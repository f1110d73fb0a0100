"""Runs the commands that read a cluster, and reports when it cannot be read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from ruleop.authoring.live import NotConnectedError, UnknownKindError, open_cluster
from ruleop.cli.options import operator_name
from ruleop.cli.program import UsageError
from ruleop.operator.wire.cluster_flags import AccessFlags

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from ruleop.authoring.live import LiveCluster

T = TypeVar("T")


def on_cluster(folder: str, flags: Mapping[str, Any], work: Callable[[LiveCluster], Awaitable[T]]) -> T:
    """Works on the cluster that the `cluster_options` name, with the operator of the project in a folder. Raises
    ProjectErrors if ruleop.yaml is invalid: the command could work on another operator."""
    given = {name: flags[name] for name in ("kubeconfig", "context", "namespace", "operator_namespace")}
    access = AccessFlags(**given, name=operator_name(folder, flags["name"]))

    async def run() -> T:
        async with open_cluster(access) as cluster:
            return await work(cluster)

    return run_reading(run())


def run_reading(reading: Coroutine[Any, Any, T]) -> T:
    """Runs it, with wrong names and a cluster that cannot be used as wrong usage."""
    try:
        return asyncio.run(reading)
    except (NotConnectedError, UnknownKindError) as error:
        raise UsageError(str(error)) from None


def read_target(names: tuple[str, ...], missing: str) -> tuple[str, str]:
    """The kind and the name of one object. `missing`: the message if nothing is given."""
    if not names:
        raise UsageError(missing)
    kind, name = split_target(names)
    if not name:
        raise UsageError(f"expected KIND/NAME, not {kind}")
    return kind, name


def split_target(names: tuple[str, ...]) -> tuple[str, str]:
    """The kind and the name of `KIND/NAME` or `KIND NAME`; no name for a kind alone."""
    kind, slash, name = names[0].partition("/")
    if len(names) > 2 or (slash and len(names) > 1):
        raise UsageError(f"expected KIND/NAME, not {' '.join(names)}")
    if not kind or (slash and not name):
        raise UsageError(f"expected KIND/NAME, not {names[0]}")
    return kind, name or "".join(names[1:])
