"""Counts the custom resources that no process of the operator reconciles.

No process watches them. They are listed in pages, without spec and status, and with the narrowest selector there is, by
one of the processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from ruleop.kubernetes.kinds import ObjectKey
from ruleop.operator.telemetry import Check
from ruleop.operator.wire.client.client import reading
from ruleop.operator.wire.client.requests import ObjectSource, list_page
from ruleop.operator.wire.client.server_errors import ApiError
from ruleop.planning import choose_rule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.operator.controllers import ControllerSet
    from ruleop.operator.telemetry import Metrics
    from ruleop.operator.wire.client.client import Client

PAGE: Final = 500
EXAMPLES: Final = 3

log = structlog.get_logger(__name__)


class UnownedResources:
    """Those found by this process; none while another one looks for them."""

    def __init__(self, client: Client, metrics: Metrics) -> None:
        self.client, self.metrics = client, metrics
        self.count = 0
        self._examples: list[str] = []
        self._problem = ""

    def checks(self) -> Iterator[Check]:
        if self.count:
            yield Check("unowned resources", False, f"{self.count} without a process", counts=False)

    def clear(self) -> None:
        self._set(0, [])

    async def find(
        self,
        controller_set: ControllerSet,
        is_unowned: Callable[[Object], bool],
        *,
        labels: str = "",
        hashes: tuple[int, int] | None = None,
    ) -> bool:
        """Counts those that a rule matches; False if they cannot be listed. The selector and the range of hashes of
        their uids must include all of them."""
        count, examples = 0, []
        try:
            async for resource in self._listed(controller_set, labels, hashes):
                if is_unowned(resource):
                    count += 1
                    if count <= EXAMPLES:
                        examples.append(str(ObjectKey.of(resource)))
        except ApiError as error:
            if self._problem != str(error):
                log.warning("custom resources without a process cannot be counted; will retry", error=str(error))
            self._problem = str(error)
            return False
        self._problem = ""
        self._set(count, examples)
        return True

    def _set(self, count: int, examples: list[str]) -> None:
        if count and (count, examples) != (self.count, self._examples):
            log.warning("no process reconciles some custom resources", count=count, examples=examples)
        self.count, self._examples = count, examples
        self.metrics.unowned_resources.set(count)

    async def _listed(
        self, controller_set: ControllerSet, labels: str, hashes: tuple[int, int] | None
    ) -> AsyncIterator[Object]:
        """Their metadata and kind."""
        for controller in tuple(controller_set.controllers):
            resource = controller_set.discovery.resource(controller.kind)
            if resource is None or not controller.rules:
                continue
            kind = {"apiVersion": controller.kind.api_version, "kind": controller.kind.kind}
            for namespace in controller_set.informers.namespaces if resource.namespaced else ("",):
                source = ObjectSource(resource, namespace, labels, metadata_only=True, hashes=hashes)
                async for metadata in self._pages(source):
                    found = {**kind, "metadata": metadata}
                    if choose_rule(controller.rules, found) is not None:
                        yield found

    async def _pages(self, source: ObjectSource) -> AsyncIterator[Mapping[str, Any]]:
        token: str | None = ""
        while token is not None:
            request = list_page(source, limit=PAGE, token=token)
            page = await self.client.send(request)
            with reading(request):
                found = [each["metadata"] for each in page["items"] or ()]  # null, if there are none
                token = (page.get("metadata") or {}).get("continue") or None
            for metadata in found:
                yield metadata
