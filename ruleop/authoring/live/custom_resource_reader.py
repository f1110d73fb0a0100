"""Reads one custom resource of a cluster, its children by their labels alone, and Events; and finds the custom resource
to which an object belongs: as its child, or as something that a child has made."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ruleop.authoring.live.reader import LiveObjects
from ruleop.authoring.report import EventView
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import GroupKind, Kind, Object, ObjectKey
from ruleop.kubernetes.names import operator_of_manager
from ruleop.kubernetes.times import now
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.planning.model.marks import PART_OF, named_owner, part_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ruleop.authoring.live.open_cluster import LiveCluster
    from ruleop.authoring.live.reader import Reader
    from ruleop.language.rules import Project

EVENT: Final = Kind("", "v1", "Event")
MAX_EVENTS: Final = 12
SINGLE: Final = 6
"""Names of objects whose Events are listed one by one."""

MAX_LEVELS: Final = 6
"""A pod belongs to a replica set, that to a deployment, and that to a custom resource."""


async def find_owner(reader: Reader, obj: Object) -> Object | None:
    """The custom resource that owns an object; None if there is none. Raises ApiError."""
    for _ in range(MAX_LEVELS):
        is_child = PART_OF in (obj["metadata"].get("labels") or {})
        found = await _owner(reader, obj)
        if found is None or is_child:
            return found
        obj = found
    return None


async def _owner(reader: Reader, obj: Object) -> Object | None:
    """The object that the controller's ownerReference names, or else the annotation of ruleop."""
    namespace = obj["metadata"].get("namespace") or ""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            kind = Kind.parse(str(reference.get("apiVersion", "")), str(reference.get("kind", "")))
            resource = reader.resource(kind)
            place = namespace if resource is not None and resource.namespaced else ""
            return await reader.get(kind, ObjectKey(kind.group, kind.kind, place, str(reference.get("name", ""))))
    if (named := named_owner(obj)) is not None:
        preferred = reader.preferred(GroupKind(named[0].group, named[0].kind))
        return await reader.get(preferred, named[0]) if preferred is not None else None
    return None


def _has_status_of_ruleop(obj: Object) -> bool:
    """Whether it is a custom resource that ruleop reconciles."""
    managed = obj["metadata"].get("managedFields") or ()
    managers = (str(each.get("manager")) for each in managed if each.get("subresource") == "status")
    return any(map(operator_of_manager, managers))


class ResourceReader:
    def __init__(self, cluster: LiveCluster, notes: Iterable[str] = ()) -> None:
        """`notes`: what is not shown, and why."""
        self.cluster, self.reader = cluster, cluster.reader
        self.notes = list(notes)
        self.now = now()

    async def find(self, kind: str, name: str, project: Project | None = None) -> Object:
        """The custom resource of this name, or that of which an object of this name is a child. Raises RuleopError."""
        rules = project.rules if project is not None else ()
        watched = {rule.kind.versionless for rule in rules} or set(self.cluster.operator.entries)
        resource = self.cluster.find_kind(kind, watched)
        live = await self.cluster.named(resource.kind, name)
        key = ObjectKey.of(live)
        if key.group_kind in watched or (not watched and _has_status_of_ruleop(live)):
            return live
        owner = await find_owner(self.reader, live)
        if owner is None and not watched:
            return live
        if owner is None:
            where = f"{key.namespace}/{key.name}" if key.namespace else key.name
            raise RuleopError(f"no rule watches {resource.title}, and {where} is not a child of a custom resource")
        owner_key = ObjectKey.of(owner)
        self.notes.append(f"{key.kind}/{key.name} belongs to {owner_key.kind}/{owner_key.name}, which is shown here")
        return owner

    async def read_children(self, live: Object) -> LiveObjects:
        """The children of the kinds in the inventory, or of all kinds of the cluster."""
        objects = LiveObjects()
        remembered = self.cluster.operator.entry(Kind.of(live).versionless).children
        kinds = [found for kind in sorted(remembered) if (found := self.reader.preferred(kind)) is not None]
        if not kinds:
            kinds = [each.kind for each in self.reader.resources() if each.kind.kind != "Event"]
        labels, namespace = f"{PART_OF}={part_of(live)}", live["metadata"].get("namespace") or ""
        lists = await asyncio.gather(*(self._read_labelled(kind, namespace, labels, objects) for kind in kinds))
        notes = {namespace: "not permitted to list in other namespaces", "": "not permitted to list"}
        for place, text in notes.items():
            unread = sorted(kind.kind for kind, at in zip(kinds, lists, strict=True) if at == place)
            if unread:
                self.notes.append(f"{text}: {', '.join(unread)}")
        return objects

    async def _read_labelled(self, kind: Kind, namespace: str, labels: str, objects: LiveObjects) -> str | None:
        """Children may be in any namespace. Where these cannot be listed, those in the namespace of the custom resource
        are read, which is returned; empty if they cannot be listed either."""
        resource = self.reader.resource(kind)
        own = [namespace] if namespace and resource is not None and resource.namespaced else []
        for place in ["", *own]:
            try:
                async for page in self.reader.pages(kind, place, labels=labels):
                    for each in page:
                        objects.add_child(each)
            except ApiError as error:
                if error.problem not in {Problem.FORBIDDEN, Problem.UNSUPPORTED, Problem.NOT_FOUND}:
                    raise
            else:
                return place or None
        return ""

    async def events(self, keys: Collection[ObjectKey], limit: int = MAX_EVENTS) -> list[EventView]:
        """The last Events about these objects, the latest first; none, with a note, if they cannot be listed. Raises
        ApiError."""
        found: list[EventView] = []
        try:
            for namespace in sorted({key.namespace or "default" for key in keys}):
                for fields in _selectors(keys, namespace):
                    async for page in self.reader.pages(EVENT, namespace, fields=fields):
                        found += [
                            event
                            for event in map(EventView.of, page)
                            if event and event.key in keys and _matters(event)
                        ]
                        found = sorted(found, key=lambda each: each.time, reverse=True)[:limit]
        except ApiError as error:
            self.note_forbidden("events", error)
            return []
        return found

    def note_forbidden(self, what: str, error: ApiError) -> None:
        """Notes that something cannot be read; raises any other error."""
        if error.problem is not Problem.FORBIDDEN:
            raise error
        note = f"not permitted to list: {what}"
        if note not in self.notes:
            self.notes.append(note)


def _selectors(keys: Collection[ObjectKey], namespace: str) -> Iterable[str]:
    """A list for each name while they are few: a namespace may have many thousand Events about other objects."""
    names = sorted({key.name for key in keys if (key.namespace or "default") == namespace and key.name})
    return [f"involvedObject.name={name}" for name in names] if len(names) <= SINGLE else [""]


def _matters(event: EventView) -> bool:
    """The normal life of a pod does not explain why it is not ready."""
    return event.type == "Warning" or event.key.kind != "Pod"
