"""Fields by which a custom resource decides what a Pod runs and reaches, or what somebody may do.

Users who may write custom resources of the kind then have these powers, without the permissions that they need
otherwise. A value that the CRD bounds, by an enum, a pattern or a rule, is a decision of the CRD, and a number decides
little: both are left out, except that a number or a boolean in a securityContext matters as well. A field that is
called an image says itself what it decides, so it may become an image.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.dataflow.sources import NUMBERS
from ruleop.authoring.checking.pods import CONTAINERS, fields_of, fields_of_pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.authoring.checking.dataflow.sources import IsSource, Path, Sources
    from ruleop.language.rules import Findings
    from ruleop.language.rules.scopes import RulePart
    from ruleop.language.templates.bodies.body import Body, BodyField, FieldPath

_RBAC: Final = "rbac.authorization.k8s.io"
_HOST: Final = frozenset({"hostNetwork", "hostPID", "hostIPC", "hostUsers"})
_ACCOUNT: Final = frozenset({"serviceAccountName", "serviceAccount"})
_OWN_VOLUMES: Final = frozenset({"name", "emptyDir", "persistentVolumeClaim", "configMap", "downwardAPI", "ephemeral"})
"""Volumes that hold nothing which the namespace does not show to everybody who may read it."""
_ANY_VALUE: Final = frozenset({"securityContext", "host"})
_FIXED_IMAGE: Final = re.compile(r"[^:@]*[a-z0-9][:@].*|.*/.*[a-z0-9][:@].*", re.DOTALL)
_FLAG: Final = re.compile(r"-[^=\s]+=.*", re.DOTALL)
_POWERS: Final = {
    "image": "which program runs",
    "command": "which program runs",
    "args": "the arguments of a program",
    "volumes": "which data of the node or of Secrets a Pod reads",
    "securityContext": "what a Pod may do on its node",
    "host": "what a Pod may do on its node",
    "account": "the permissions of a Pod",
    "rules": "what somebody may do",
}


def check_sensitive_fields(sources: Sources, findings: Findings) -> None:
    for part in sources.body_parts:
        found = [(field, what) for body in sources.bodies(part) for field, what in _sensitive(body) if any(field.slots)]
        if found:
            _report(found, part, sources, findings)


def _report(found: list[tuple[BodyField, str]], part: RulePart, sources: Sources, findings: Findings) -> None:
    texts = sources.places(part, sources.free(part), clean=NUMBERS)
    named = {what for _, what in found}
    any_value = sources.places(part, sources.is_of_spec) if named & _ANY_VALUE else frozenset()
    images = sources.places(part, partial(_is_no_image, sources.free(part)), clean=NUMBERS) if texts else texts
    by_what = {"image": images, **dict.fromkeys(_ANY_VALUE, any_value)}
    for field, what in found:
        for slot in field.slots:
            if slot.place in by_what.get(what, texts):
                name = ".".join(str(step) for step in field.path if isinstance(step, str))
                message = f"`{slot.place.expression}` lets a CR decide {_POWERS[what]} ({name}): {_TO_DO}"
                findings.warning(
                    "sensitive-field",
                    message,
                    slot.place.site,
                    word=slot.place.expression,
                    start=part.site,
                    subject=sources.crd_file,
                )


_TO_DO: Final = "bound it in the CRD with an enum or a pattern, or allow it with a reason"


def _is_no_image(is_free: IsSource, path: Path) -> bool:
    return "image" not in (path[-1] or "").lower() and is_free(path)


def _sensitive(body: Body) -> Iterator[tuple[BodyField, str]]:
    if body.kind.group == _RBAC:
        for field in fields_of(body):
            if field.path[:1] in {("rules",), ("subjects",), ("roleRef",), ("aggregationRule",)} or not field.path:
                yield field, "rules"
        return
    for field, path in fields_of_pod(body):
        if what := _in_pod(field, path):
            yield field, what


def _in_pod(field: BodyField, path: FieldPath) -> str:
    """The sensitive subject that a field of a Pod's spec decides; "" if it decides none."""
    if not path:
        return "image" if field.spread else ""
    first = path[0]
    if first in _ACCOUNT:
        return "account"
    if first in _HOST:
        return "host"
    if first == "securityContext":
        return "securityContext"
    if first == "volumes":
        return "" if len(path) > 2 and path[2] in _OWN_VOLUMES else "volumes"
    return _in_container(field, path[2:]) if first in CONTAINERS else ""


def _in_container(field: BodyField, path: FieldPath) -> str:
    if not path:
        return "image"  # whole containers
    if path[0] == "securityContext":
        return "securityContext"
    literal = next((piece for piece in field.pieces if isinstance(piece, str)), "")
    begins = literal if field.pieces and isinstance(field.pieces[0], str) else ""
    if path[0] == "image":
        return "" if _FIXED_IMAGE.fullmatch(begins) else "image"
    if path[0] in ("command", "args"):
        return "" if _FLAG.fullmatch(begins) else str(path[0])
    return ""
