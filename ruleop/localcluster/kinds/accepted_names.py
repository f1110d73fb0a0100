"""The accepted names of a CRD: those that no other CRD of its group has. With all of them, it is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.localcluster.kinds.resources import CRDS
from ruleop.localcluster.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ruleop.kubernetes.kinds import Object
    from ruleop.localcluster.object_store import Store

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"  # the finalizer of a CRD
NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
_SINGLE: Final = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)
_KINDS: Final = ("kind", "listKind")


def admitted(document: dict[str, Any], store: Store) -> dict[str, Any]:
    """The definition with the status that the server gives it. It is served at once if its names are accepted."""
    spec, status = document["spec"], document.get("status") or {}
    names, problem = _accepted(document, store)
    known = {each["type"]: each for each in status.get("conditions") or []}
    accepted = _condition(known, NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
    if problem is not None:
        accepted = _condition(known, NAMES_ACCEPTED, "False", *problem)
    established = known.get(ESTABLISHED)
    if established is None or established["status"] != "True":
        established = _condition(known, ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
        if problem is None:
            message = "the initial names have been accepted"
            established = _condition(known, ESTABLISHED, "True", "InitialNamesAccepted", message)
    extra = [each for type_, each in known.items() if type_ not in (NAMES_ACCEPTED, ESTABLISHED)]
    versions = list(status.get("storedVersions") or [])
    versions += [
        name
        for each in spec.get("versions") or []
        if each.get("storage") and (name := each.get("name")) and name not in versions
    ]
    return {
        **document,
        "status": {
            **status,
            "conditions": [accepted, established, *extra],
            "acceptedNames": names,
            "storedVersions": versions,
        },
    }


def is_established(document: Object) -> bool:
    return _has(document, ESTABLISHED, "True")


def is_refused(document: Object) -> bool:
    """Whether a name is not accepted."""
    return _has(document, NAMES_ACCEPTED, "False")


def _has(document: Object, type_: str, status: str) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or []
    return any(each["type"] == type_ and each["status"] == status for each in conditions)


def _condition(known: Mapping[str, Any], type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
    before = known.get(type_) or {}
    since = before["lastTransitionTime"] if before.get("status") == status else now()
    return {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}


def _accepted(document: Object, store: Store) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """The accepted names, and the reason and the message of the last conflict."""
    requested = document["spec"].get("names") or {}
    before = (document.get("status") or {}).get("acceptedNames") or {}
    used = list(_others(document, store))
    resources = {name for each in used for name in _resource_names(each)}
    kinds = {each[field] for each in used for field in _KINDS if each.get(field)}
    found: dict[str, Any] = {"plural": "", "kind": "", **before}
    problem: tuple[str, str] | None = None
    for field, reason in _SINGLE:
        name = requested.get(field)
        if name != before.get(field) and name in (kinds if field in _KINDS else resources):
            problem = reason, f'"{name}" is already in use'
        elif name is not None:
            found[field] = name
        if field == "singular":
            problem = _short_names(requested, before, resources, found) or problem
    if "categories" in requested:
        found["categories"] = requested["categories"]
    return found, problem


def _short_names(
    requested: Mapping[str, Any], before: Mapping[str, Any], used: set[str], found: dict[str, Any]
) -> tuple[str, str] | None:
    """Accepts the short names, all of them or none."""
    names = requested.get("shortNames") or []
    conflicts = [each for each in names if each not in (before.get("shortNames") or ()) and each in used]
    if conflicts:
        messages = [f'"{each}" is already in use' for each in conflicts]
        return "ShortNamesConflict", messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    found.pop("shortNames", None)
    if names:
        found["shortNames"] = names
    return None


def _others(document: Object, store: Store) -> Iterator[Mapping[str, Any]]:
    """The accepted names of the other CRDs of the group."""
    for each in store.all(CRDS):
        is_other = each.obj["metadata"]["name"] != document["metadata"].get("name")
        if is_other and each.obj["spec"]["group"] == document["spec"].get("group"):
            yield each.obj["status"]["acceptedNames"]


def _resource_names(names: Mapping[str, Any]) -> Iterator[str]:
    yield from (names[field] for field in ("plural", "singular") if names.get(field))
    yield from names.get("shortNames") or ()
