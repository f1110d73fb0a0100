"""Whether an object has the name and the namespace of the path of its request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ruleop.localcluster.status_errors import bad_request

if TYPE_CHECKING:
    from ruleop.core.kinds import Object
    from ruleop.localcluster.kinds.served import Served


def check_name(obj: Object, name: str) -> None:
    """Raises Rejected if an object has another name than its path."""
    given = (obj.get("metadata") or {}).get("name", "")
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_namespace(obj: Object, namespace: str, served: Served) -> None:
    """Raises Rejected if an object is of another namespace than its path."""
    given = (obj.get("metadata") or {}).get("namespace")
    if served.namespaced and given and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
