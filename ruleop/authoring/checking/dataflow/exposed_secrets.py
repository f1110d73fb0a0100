"""Data of Secrets in children where more people can read it than may read Secrets: ConfigMaps, annotations and labels,
and the environment and the command lines of Pods.

Values are followed as for other checks of slots (`Sources`). A checksum exposes nothing, certificates and public keys
are meant to be read, and names of users and hosts protect nothing.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.pods import CONTAINERS, fields_of, fields_of_pod
from ruleop.language.rules.secret_reads import secret_ids
from ruleop.language.secrets.secret_values import CHECKSUMS, DATA_FIELDS, SECRET, is_secret_field
from ruleop.language.templates import SECRET_FUNCTIONS, syntax
from ruleop.language.templates.syntax import chain_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.authoring.checking.dataflow.sources import Path, Sources
    from ruleop.language.rules import Findings
    from ruleop.language.templates.bodies.body import Body, BodyField, FieldPath, Printed

_CERTIFICATE: Final = re.compile(
    r"(.*[._-])?(crt|cert|certificate|pub|public)|ca(\.pem)?|.*ca-?bundle(\.pem|\.crt)?", re.IGNORECASE
)
"""Keys of certificates and public keys: ca.crt, tls.crt, ssh-publickey.pub."""
_ADDRESS: Final = re.compile(r"(.*[._-])?(user|username|login|host|hostname|port|database|dbname)", re.IGNORECASE)
"""Keys of what is kept in a Secret beside the password."""
_CHECKSUM: Final = "use a checksum (`sha256`), or leave it out"
_CONFIG: Final = "write this part into a Secret, and mount that"


def check_exposed_secrets(sources: Sources, findings: Findings) -> None:
    secrets = secret_ids(sources.watch.draft)
    is_data = partial(_is_data, secrets)
    called = {name for part in sources.watch.parts for name, _ in part.compiled.calls}
    if not secrets and SECRET_FUNCTIONS.isdisjoint(called):
        return
    for part in sources.body_parts:
        readable = [each for body in sources.bodies(part) for each in _readable(body) if any(each[0].slots)]
        if not readable:
            continue
        places = sources.places(part, is_data, clean=CHECKSUMS, functions=SECRET_FUNCTIONS)
        for field, where, what_to_do in readable:
            for slot in field.slots:
                if slot.place in places:
                    instead = _reference(slot, secrets) if where == "env" else what_to_do
                    message = f"`{slot.place.expression}` exposes the data of a Secret in {where}: {instead}"
                    site, word = slot.place.site, slot.place.expression
                    findings.warning("exposed-secret", message, site, word=word, start=part.site)


def _is_data(secrets: Mapping[str, bool], path: Path) -> bool:
    """Whether a field of another object is data of a Secret that needs protection."""
    if path[0] != "other":
        return False
    inner = path[2:] if path[1] == "live" else path[1:]
    is_list = secrets.get(inner[0] or "") if inner else None
    if is_list is None:
        return False
    inner = inner[2:] if is_list else inner[1:]
    key = (inner[1] or "") if len(inner) > 1 else ""
    return not inner or (is_secret_field(inner) and not (_CERTIFICATE.fullmatch(key) or _ADDRESS.fullmatch(key)))


def _readable(body: Body) -> Iterator[tuple[BodyField, str, str]]:
    """The fields of a body that others than the readers of Secrets can read: what it is, and what to do instead."""
    if body.kind.versionless == SECRET:
        return
    is_config = (body.kind.group, body.kind.kind) == ("", "ConfigMap")
    for field in fields_of(body):
        names = [step for step in field.path if isinstance(step, str)]
        if is_config and names[:1] in (["data"], ["binaryData"]) and not _CERTIFICATE.fullmatch(names[-1]):
            yield field, "a ConfigMap", _CONFIG
        for what in ("annotations", "labels"):
            if ("metadata", what) in pairwise(names):
                yield field, what, _CHECKSUM
    for field, path in fields_of_pod(body):
        if path and path[0] in CONTAINERS and (found := _in_container(path[2:])):
            yield field, *found


def _in_container(path: FieldPath) -> tuple[str, str] | None:
    if path[:1] == ("env",) and path[-1] == "value":
        return "env", ""
    if "command" in path or path[:1] == ("args",):
        variable = "set an environment variable with `valueFrom.secretKeyRef`, and write `$(NAME)` here"
        return "a command line", variable
    return None


def _reference(slot: Printed, secrets: Mapping[str, bool]) -> str:
    """The way in which a Pod reads the value of a slot by itself."""
    node = slot.node
    while isinstance(node, syntax.Filter) and node.value is not None:
        node = node.value
    path = chain_of(node)
    path = path[1:] if path[:1] == ("live",) else path
    if len(path) == 3 and path[1] in DATA_FIELDS and secrets.get(str(path[0])) is False:
        name = f"{{{{ {path[0]}.metadata.name }}}}"
        return f"use `valueFrom: {{secretKeyRef: {{name: {name}, key: {path[2]}}}}}` instead of `value`"
    return "use `valueFrom.secretKeyRef` instead of `value`"
