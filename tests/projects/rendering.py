"""The children of a CR, rendered without planning: enough to look at what a project makes, and no more.

It knows the order of the children, what they read, and what is not there yet. It knows nothing of owners, merging, pruning or deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from ruleop.errors import RenderError
from ruleop.kinds import Kind, Object, ObjectKey
from ruleop.planning.readiness import readiness
from ruleop.rules import Child, Observe, Project, Rule, Selector, load_project
from ruleop.schema.structural import default, prune
from ruleop.schema.table import builtin_resource
from ruleop.templating import (
    Absent,
    Broken,
    Fault,
    Lazy,
    NotThereYet,
    Origin,
    TemplateFunction,
    TextTemplate,
    Tree,
    Unwanted,
    Waiting,
    view,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Rendered:
    children: list[tuple[str, str, Object]] = field(default_factory=list)  # id, template, object; in apply order
    waiting: dict[str, str] = field(default_factory=dict)  # id -> what for
    status: Any = None


def render_children(
    project_dir: Path, cr_file: Path, existing: Iterable[Object] = (), *, served: Iterable[str] = ()
) -> list[tuple[str, str, Object]]:
    """`served`: group/version/kind beyond the built-in ones."""
    return render(project_dir, cr_file, existing, served=served).children


def render(
    project_dir: Path, cr_file: Path, existing: Iterable[Object] = (), *, served: Iterable[str] = (), final: bool = False
) -> Rendered:
    """The children; with `final`, those of a deletion."""
    return _Pass.of(project_dir, cr_file, existing, served, final=final).run()


def documents(file: Path) -> list[Any]:
    return [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document is not None]


def snapshot(rendered: Rendered) -> str:
    """Each child under a comment that names its id and template; then what waits."""
    parts = [f"# {child}: {template}\n{_yaml(obj)}" for child, template, obj in rendered.children]
    parts += [f"# {child} waits: {reason}\n" for child, reason in rendered.waiting.items()]
    return "---\n".join(parts)


class _Dumper(yaml.SafeDumper):
    """Text of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)
)


def _yaml(obj: Object) -> str:
    return yaml.dump(obj, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)


@dataclass
class _Pass:
    project: Project
    rule: Rule
    cr: dict[str, Any]
    existing: dict[ObjectKey, Object]
    served: frozenset[Kind]
    final: bool
    recorded: dict[str, list[ObjectKey]] = field(default_factory=dict)  # which objects were a child's in the round before
    names: dict[str, Any] = field(default_factory=dict)
    rendered: Rendered = field(default_factory=Rendered)

    @classmethod
    def of(cls, project_dir: Path, cr_file: Path, existing: Iterable[Object], served: Iterable[str], *, final: bool) -> _Pass:
        project = load_project(project_dir, environ={})
        [cr] = documents(cr_file)
        kind = Kind.of(cr)
        rule = next(rule for rule in project.rules if rule.kind == kind)
        schema = next(crd.version(kind.version) for crd in project.crds if (crd.group, crd.kind) == (kind.group, kind.kind))
        assert schema is not None
        kinds = frozenset(Kind(*text.split("/")) for text in served)
        found = {ObjectKey.of(obj): obj for obj in existing}
        return cls(project, rule, default(prune(cr, schema.schema), schema.schema), found, kinds, final)

    def run(self) -> Rendered:
        """In two rounds: which objects a child has is only known from rendering it, and `live.` asks for it before."""
        for _ in range(2):
            self.rendered = Rendered()
            self._begin()
            live = {
                child.id: [self.existing[key] for key in self.recorded.get(child.id, ()) if key in self.existing]
                for child in self._children()
            }
            self.live |= {
                child.id: view(child.id, live[child.id] if child.many else live[child.id][0], Origin.LIVE)
                for child in self._children()
                if child.many or live[child.id]
            }
            for child in self._children():
                self.names = {**self.names}  # the library knows a scope by its identity
                self._child(child, live[child.id])
        if not self.final:
            self._status()
        return self.rendered

    def _children(self) -> list[Child]:
        rule = self.rule
        return [rule.finalize[name] for name in rule.final_order] if self.final else [rule.children[name] for name in rule.order]

    # -- names ---------------------------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        status = view("status", self.cr.get("status") or {}, Origin.LATER)
        self.live: dict[str, Any] = {}
        self.ready: dict[str, Any] = {}
        self.names = {
            "cr": view("cr", {**self.cr, "status": status}),
            "metadata": view("metadata", self.cr["metadata"]),
            "spec": view("spec", self.cr.get("spec") or {}),
            "status": status,
            "vars": view("vars", dict(self.rule.vars)),
            "live": view("live", self.live, Origin.LIVE),
            "ready": view("ready", self.ready),
            "has_kind": TemplateFunction("has_kind", self._has_kind),
            "random_password": TemplateFunction("random_password", lambda length=24: "x" * length),
            "now": TemplateFunction("now", lambda: "2026-01-01T00:00:00Z"),
        }
        for name, tree in self.rule.let.items():
            self.names[name] = Lazy(name, lambda tree=tree: self._forced(lambda: tree.view(self.names)))
        for observe in self.rule.observe.values():
            self.names[observe.id] = Lazy(observe.id, lambda observe=observe: self._forced(lambda: self._observed(observe)))

    @staticmethod
    def _forced(make: Any) -> Any:
        try:
            return make()
        except Waiting as wait:
            raise NotThereYet(wait.path) from None
        except RenderError as error:
            raise Fault(error.message) from None

    def _has_kind(self, api_version: Any, kind: Any) -> bool:
        return self._is_served(Kind.parse(str(api_version), str(kind)))

    def _is_served(self, kind: Kind) -> bool:
        return builtin_resource(kind.versionless) is not None or kind in self.served

    def _observed(self, observe: Observe) -> Any:
        namespace = observe.namespace.string(self.names) if observe.namespace else self.cr["metadata"].get("namespace", "")
        if observe.name is not None:
            key = ObjectKey(observe.kind.group, observe.kind.kind, namespace, observe.name.string(self.names))
            if key not in self.existing:
                raise NotThereYet(f"{observe.id} ({key})")
            return view(observe.id, self.existing[key], Origin.LATER)
        assert observe.selector is not None
        labels = self._labels(observe.selector)
        found = [
            obj for key, obj in sorted(self.existing.items()) if key.group_kind == observe.kind.versionless and key.namespace == namespace
        ]
        return view(observe.id, [obj for obj in found if labels.items() <= obj["metadata"].get("labels", {}).items()], Origin.LATER)

    def _labels(self, selector: Selector) -> Mapping[str, Any]:
        return {name: value.evaluate(self.names) for name, value in selector.match_labels.items()}

    # -- children ------------------------------------------------------------------------------------------------------------------------

    def _child(self, child: Child, live: list[Object]) -> None:
        try:
            wanted = self._wanted(child)
        except Waiting as wait:
            self._waits(child, f"{wait.path} is not there yet", live)
            return
        self.recorded[child.id] = [ObjectKey.of(obj) for obj in wanted]
        if not wanted and not child.many:
            self.names[child.id] = self.ready[child.id] = Unwanted(child.id)
            return
        try:
            held = child.wait_for is None or child.wait_for.truth(self.names)
            reason = f"{child.wait_for.source}" if child.wait_for else ""
        except Waiting as wait:
            held, reason = False, f"{wait.path} is not there yet"
        if not held:
            self._waits(child, reason, live)
            return
        template = child.body.name if isinstance(child.body, TextTemplate) else str(child.body.site)
        self.rendered.children += [(child.id, template, obj) for obj in wanted]
        self._stands(child, wanted)

    def _waits(self, child: Child, reason: str, live: list[Object]) -> None:
        self.rendered.waiting[child.id] = reason
        missing = Broken(child.id, NotThereYet(child.id))
        self.names[child.id] = (
            view(child.id, live, Origin.LATER) if child.many else view(child.id, live[0], Origin.LATER) if live else missing
        )
        self.ready[child.id] = False

    def _stands(self, child: Child, wanted: list[Object]) -> None:
        """How the child will stand after the pass."""
        found = [self.existing.get(ObjectKey.of(obj)) for obj in wanted]
        self.ready[child.id] = all(obj is not None and readiness(obj).ready for obj in found)
        create_only = child.apply.strategy == "create-only" or all(kind.kind == "Job" for kind in child.kinds)
        after: list[Any] = [
            live if create_only and live else None if create_only else _laid_over(live or {}, obj)
            for live, obj in zip(found, wanted, strict=True)
        ]
        if child.many:
            self.names[child.id] = view(child.id, [obj for obj in after if obj], Origin.LATER)
        else:
            self.names[child.id] = view(child.id, after[0], Origin.LATER) if after[0] else Broken(child.id, NotThereYet(child.id))

    def _wanted(self, child: Child) -> list[Object]:
        if child.optional and not any(self._is_served(kind) for kind in child.kinds):
            return []
        return [obj for names in self._items(child) if child.when is None or child.when.truth(names) for obj in self._objects(child, names)]

    def _items(self, child: Child) -> Iterator[dict[str, Any]]:
        if child.for_each is None:
            yield self.names
            return
        values = child.for_each.value(self.names)
        items = [{"key": key, "value": values[key]} for key in sorted(values)] if isinstance(values, Mapping) else list(values)
        for index, item in enumerate(items):
            yield {**self.names, child.item_name: item, "index": index}

    def _objects(self, child: Child, names: dict[str, Any]) -> Iterator[Object]:
        namespace = child.namespace.string(names) if child.namespace else self.cr["metadata"].get("namespace", "")
        for obj in child.body.render(names):
            resource = builtin_resource(Kind.of(obj).versionless)
            if resource is not None and not resource.namespaced:
                yield obj
            else:
                yield {**obj, "metadata": _placed(obj["metadata"], namespace)}

    def _status(self) -> None:
        status = self.rule.status
        if isinstance(status, Tree):
            self.rendered.status = status.evaluate(self._status_names(), lenient=True)
        elif status is not None:
            self.rendered.status = next(iter(status.render(self._status_names(), lenient=True)), {})

    def _status_names(self) -> dict[str, Any]:
        absent: dict[str, Absent] = {name: Broken(name, NotThereYet(name)) for name in (*self.rule.children, *self.rule.finalize)}
        return {**absent, **{name: value for name, value in self.names.items() if name != "status"}}


def _placed(metadata: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    name = {"name": metadata["name"]} if "name" in metadata else {}
    return {**name, "namespace": namespace, **metadata}


def _laid_over(live: Any, wanted: Any) -> Any:
    """Mappings only: where a list is read, what we render is what will be there."""
    if not isinstance(live, dict) or not isinstance(wanted, dict):
        return wanted
    return live | {key: _laid_over(live.get(key), value) for key, value in wanted.items()}
