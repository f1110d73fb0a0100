"""Information about a kind of a cluster, from discovery, its CRD, the packaged table or the published schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.kubernetes.builtin.table import builtin_shape
from ruleop.kubernetes.schema.shape import UNKNOWN, Shape
from ruleop.planning import KindInfo, Served

if TYPE_CHECKING:
    from ruleop.kubernetes.builtin.table import ResourceInfo
    from ruleop.kubernetes.crd.crds import CustomResourceDefinition
    from ruleop.kubernetes.kinds import Kind


class Published(NamedTuple):
    """The schema that the API server publishes, for kinds whose CRD cannot be read."""

    shape: Shape | None = None
    schema: Mapping[str, Any] | None = None


UNPUBLISHED: Final = Published()


def kind_info(
    kind: Kind,
    resource: ResourceInfo | None,
    definition: CustomResourceDefinition | None,
    published: Published = UNPUBLISHED,
    *,
    state: Served,
    places: Mapping[str, Served] | None = None,
) -> KindInfo:
    """`resource`: how the cluster serves the kind; None if it does not."""
    version = definition.version(kind.version) if definition is not None else None
    shape = builtin_shape(kind) or published.shape
    if shape is None:
        shape = (definition.shape(kind.version) if definition is not None else None) or UNKNOWN
    return KindInfo(
        kind,
        namespaced=resource.namespaced if resource is not None else True,
        state=state,
        shape=shape,
        status_schema=_mapping(version.schema) if version is not None else published.schema,
        status_subresource=resource.status_subresource if resource is not None else True,
        places=places,
        served=resource is not None,
        resource=resource.title if resource is not None else "",
    )


def _mapping(schema: Any) -> Mapping[str, Any] | None:
    return schema if isinstance(schema, Mapping) and schema else None
