"""The kinds of these tests, with how their fields are tracked."""

from __future__ import annotations

from ruleop.kubernetes.builtin.builtin_types import typed_shape
from ruleop.kubernetes.crd import parse_crd
from ruleop.kubernetes.kinds import Kind
from ruleop.localcluster.objects.server_side_apply import Tracking, ignored_fields
from ruleop.localcluster.objects.typed import zero_of
from tests.cluster import everything, objects
from tests.cluster.objects import Subject

SUBJECTS = [objects.DEPLOYMENT, objects.SERVICE, objects.CONFIG_MAP, objects.INGRESS, objects.EVERYTHING]


def tracking_of(subject: Subject, subresource: str = "") -> Tracking:
    kind = Kind.parse(subject.api_version, subject.kind)
    is_custom = subject is objects.EVERYTHING
    if is_custom:
        shape = parse_crd(everything.CRD).shape(everything.VERSION)
    else:
        shape = typed_shape(kind)
    assert shape is not None
    has_status = "status" in shape.fields
    ignored = ignored_fields(kind.group, kind.kind, subresource=subresource, has_status=has_status)
    return Tracking(subject.api_version, shape, subresource, ignored, is_custom=is_custom, zero=zero_of(shape))


TRACKING = {subject.kind: tracking_of(subject) for subject in SUBJECTS}
