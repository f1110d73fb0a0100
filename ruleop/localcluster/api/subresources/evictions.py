"""Evictions: deletions of pods through their subresource."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.api.requests.request_objects import check_namespace, read_unstored
from ruleop.localcluster.api.requests.write_options import DeleteOptions
from ruleop.localcluster.status_errors import bad_request, internal

if TYPE_CHECKING:
    from ruleop.localcluster.api.route import Route
    from ruleop.localcluster.http.message import Request
    from ruleop.localcluster.kinds.served import Served
    from ruleop.localcluster.kinds.served_resources import Registry

_EVICTION: Final = Kind("policy", "v1", "Eviction")


def eviction_options(
    request: Request, route: Route, served: Served, registry: Registry, warnings: list[str]
) -> DeleteOptions:
    """The options of the deletion. Raises Rejected."""
    eviction = read_unstored(request, _EVICTION, registry, warnings, also=("policy/v1beta1",))
    check_namespace(eviction, route.namespace, served)
    if (eviction.get("metadata") or {}).get("name") != route.name:
        raise bad_request("name in URL does not match name in Eviction object")
    given = eviction.get("deleteOptions") or {}
    asked = [request.query["dryRun"]] if "dryRun" in request.query else []
    if (dry_run := given.get("dryRun") or asked) != asked:
        raise internal(
            f"Non-matching dry-run options in request and content: {_printed(asked)} and {_printed(dry_run)}"
        )
    return replace(DeleteOptions.of({}, given), dry_run=bool(asked))


def _printed(values: list[str]) -> str:
    """As Go prints them."""
    return f"[{' '.join(values)}]"
