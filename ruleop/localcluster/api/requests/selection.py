"""The objects that a list, a watch or a deletecollection concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ruleop.localcluster.objects.request_selectors import field_selector, label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ruleop.core.kinds import Object
    from ruleop.localcluster.kinds.served import Served

Selection: TypeAlias = "Callable[[Object], bool]"


def parse_selection(query: Mapping[str, str], served: Served) -> Selection | None:
    """None selects all. Raises Rejected."""
    labels = label_selector(query.get("labelSelector", ""))
    fields = field_selector(
        query.get("fieldSelector", ""), served.kind, custom=served.is_custom, selectable=served.selectable
    )
    if labels is None or fields is None:
        return labels or fields
    return lambda obj: labels(obj) and fields(obj)
