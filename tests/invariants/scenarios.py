"""Clusters to start with, property tests and waiting, for the tests of invariants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import Object
from tests import exploration, waiting
from tests.docs.messages import ROOT
from tests.invariants.api_server import ApiServer
from tests.projects.cluster import Cluster, Refused
from tests.projects.samples import EXAMPLES, sample
from tests.projects.test_convergence import EDITS

T = TypeVar("T")

PATIENCE = waiting.PATIENCE  # to wait for a condition; less where an invariant is broken on purpose


def property_test(number: int) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """A property test as a function without arguments, so that it can also be run with a broken invariant."""

    def decorate(holds: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            explored = settings(
                max_examples=exploration.examples(number),
                deadline=None,
                database=None,
                phases=[Phase.generate],  # shrinking would take too long
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            )
            explored(given(data=st.data())(holds))()

        test.__name__, test.__doc__, test.__module__ = holds.__name__, holds.__doc__, holds.__module__
        return test

    return decorate


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in bounded time."""

    async def bounded() -> T:
        try:
            async with asyncio.timeout(PATIENCE):
                return await coroutine
        except TimeoutError:
            raise AssertionError(f"not done in {PATIENCE} s") from None

    return asyncio.run(bounded())


async def until(what: str, holds: Callable[[], Any]) -> None:
    await waiting.until(what, holds, PATIENCE)


def serving(folder: str, *objects: Object, home: str = "default") -> ApiServer:
    """A cluster with these objects, and with the kinds of the project."""
    cluster = Cluster(ROOT / folder, home=home, namespaces=["platform", "tools", "monitoring"])
    cluster.add(*objects)
    return ApiServer(cluster)


def cluster_with_sample(life: str, spec: dict[str, Any] | None = None) -> tuple[ApiServer, str]:
    """The cluster of a sample project with its CR, and the CR's name."""
    folder, cr, home, existing = EXAMPLES[life]
    obj = sample(folder, cr)
    if spec is not None:
        obj["spec"] = spec
    return serving(folder, *existing, obj, home=home), f"{obj['kind']}/{obj['metadata']['name']}"


def apply_edit(server: ApiServer, resource: str, life: str, number: int) -> bool:
    """Applies one of the edits of a sample. False if the API server rejects it."""
    choices = EDITS[life]
    try:
        server.cluster.edit(resource, {"spec": choices[number % len(choices)]})
    except Refused:
        return False
    return True


def app(name: str, namespace: str = "default") -> dict[str, Any]:
    """A CR with two children, `<name>-d` and `<name>-s`."""
    spec = {"deployment": {"name": f"{name}-d", "image": "nginx:1", "replicas": 1}, "service": {"name": f"{name}-s"}}
    return {
        "apiVersion": "myapp.k8s.io/v1",
        "kind": "App",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def apps(*names: str, namespaces: Iterable[str] = ()) -> ApiServer:
    server = serving("", *map(app, names))
    for each in namespaces:
        server.cluster.add_namespace(each)
    return server
