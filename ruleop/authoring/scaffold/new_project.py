"""The files of a new project, from the parts of its one rule, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.scaffold.inferred_schema import schema_entry
from ruleop.authoring.scaffold.naming import kebab
from ruleop.authoring.scaffold.readme import agents_page, readme
from ruleop.authoring.scaffold.yaml_layout import Noted, WrittenExpr, WrittenText, rules_text, template_text, value_at
from ruleop.errors import RuleopError
from ruleop.kubernetes.crd import schema_at
from ruleop.kubernetes.names import MOST_OF_NAME
from ruleop.language.rules import operator_choices
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from ruleop.kubernetes.kinds import Kind
    from ruleop.kubernetes.schema import Schema


WATCHES: Final = "watches.schema.json"
TESTS: Final = "tests.schema.json"
CHOICES: Final = "ruleop.schema.json"
"""Files with JSON Schemas for editors."""
_EXPECTED: Final = re.compile(r"(spec|metadata)(\.[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)
_MERGED: Final = frozenset({"containers", "initContainers", "env", "ports"})
"""Lists that the API merges by keys, so that some items are enough."""
_LEFT_OUT: Final = frozenset({"labels", "matchLabels", "selector", "stringData"})


def expected(template: Any, sample: Mapping[str, Any]) -> Any:
    """The fields of the template that have values of the sample; None without any."""
    if isinstance(template, (WrittenExpr, WrittenText)):
        return _value(template, sample)
    if not isinstance(template, Mapping):
        return None
    found: dict[str, Any] = {}
    for name, member in template.items():
        if name in _LEFT_OUT:
            continue
        if isinstance(member, list):
            part: Any = [_item(item, sample) for item in member] if name in _MERGED else []
            part = [item for item in part if item is not None] or None
        else:
            part = expected(member, sample)
        if part is not None:
            found[name] = part
    return found or None


def _item(item: Any, sample: Mapping[str, Any]) -> dict[str, Any] | None:
    """The part of an item, with its plain fields: the keys are among them."""
    part = expected(item, sample)
    if part is None or not isinstance(item, Mapping):
        return None
    plain = {name: value for name, value in item.items() if isinstance(value, (str, int))}
    return {name: part.get(name, plain.get(name)) for name in item if name in part or name in plain}


def _value(template: WrittenExpr | WrittenText, sample: Mapping[str, Any]) -> Any:
    if isinstance(template, WrittenExpr):
        return value_at(sample, tuple(template.code.split("."))) if _EXPECTED.fullmatch(template.code) else None
    parts = [part if isinstance(part, str) else _value(part, sample) for part in template.parts]
    return "".join(map(str, parts)) if all(isinstance(part, (str, int)) for part in parts) else None


SCHEMAS: Final = "schemas"
EXISTING: Final = "existing"
README: Final = "README.md"
AGENTS: Final = "AGENTS.md"
IGNORED: Final = ".gitignore"
INCOMPLETE: Final = ".incomplete"
"""The end of the name of an example that no command reads, because the API server would refuse it."""
READY_REPLICAS: Final = "readyReplicas"
_FIELD: Final = re.compile(r"spec(\.[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)
_LONGEST_OPERATOR: Final = MOST_OF_NAME - len("-system")
_ABOUT_CHILDREN: Final = (
    "Fields that come from the custom resource, of the children that ruleop init made. If you replace such a child,\n"
    "change its entry, or delete it; a snapshot (ruleop test --update) renews itself."
)


@dataclass(frozen=True, slots=True)
class NewChild:
    """A child of the rule. `template` is its object, in which expressions are those of `yaml_layout`."""

    id: str
    template: Any
    create_only: bool = False
    optional: bool = False  # its kind may be missing in a cluster
    namespace: str = ""  # of a child of a cluster-scoped custom resource
    settings: Mapping[str, Any] = field(default_factory=dict)  # other keys of the child
    condition: str = ""  # of an `if` of Jinja around the document
    tested: bool = True  # whether a new custom resource has it at once

    @property
    def file(self) -> str:
        return f"{kebab(self.id)}.yaml.j2"


@dataclass(frozen=True, slots=True)
class NewProject:
    """A project with one kind and one rule, or the part of one kind of a larger project."""

    kind: Kind
    samples: tuple[Mapping[str, Any], ...]  # custom resources
    spec: Schema
    children: tuple[NewChild, ...]
    longest_name: int
    let: Mapping[str, Any] = field(default_factory=dict)
    observe: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, str] = field(default_factory=dict)  # expressions for numbers, 0 while nothing exists
    existing: tuple[Mapping[str, Any], ...] = ()  # objects that users make, as placeholders
    notes: tuple[str, ...] = ()  # for the person who makes the project
    lifted: tuple[tuple[str, str], ...] = ()  # fields of the spec, and what they came from
    credentials: tuple[tuple[str, str], ...] = ()  # what took the place of each, and where it was
    definition: Mapping[str, Any] | None = None  # where the kind exists; else `schema` describes it
    left: tuple[tuple[str, str], ...] = ()  # names of objects in text that stayed, and where they are
    required_status: Mapping[str, Any] = field(default_factory=dict)  # values to replace, without which none is written
    incomplete: bool = False  # the schema does not accept the samples: they have no test
    with_group: bool = False  # another kind of the project has the same name
    prefix: str = ""  # of the files of examples, if those of another kind have the same names
    watch: Mapping[str, Any] = field(default_factory=dict)  # keys of the watch that are known already

    @property
    def folder(self) -> str:
        return kebab(f"{self.kind.kind}-{self.kind.group}" if self.with_group else self.kind.kind)

    def example(self, sample: Mapping[str, Any]) -> str:
        """The name of the file."""
        return f"{self.prefix}{_name(sample)}{INCOMPLETE if self.incomplete else '.yaml'}"

    def completion(self, findings: Iterable[object]) -> str:
        """The note about an example that the schema does not accept."""
        file = self.example(self.samples[0])
        why = "; ".join(map(str, findings))
        return f"examples/{file} has to be completed, then renamed to .yaml, and has no test until then: {why}."


def schema_comment(path: str) -> str:
    """The comment by which editors with the YAML language server find the schema of a file."""
    return f"# yaml-language-server: $schema={path}"


def project_files(first: NewProject, schemas: Mapping[str, str], more: Sequence[NewProject] = ()) -> dict[str, str]:
    """The text of each file, by its path in the project. `schemas` are for editors, by the names of their files."""
    projects = (first, *more)
    watches = rules_text([_watch(each) for each in projects])
    files = {"watches.yaml": f"{schema_comment(f'{SCHEMAS}/{WATCHES}')}\n{watches}"}
    for project in projects:
        files |= _files_of_kind(project)
    files |= {f"{SCHEMAS}/{name}": text for name, text in schemas.items()}
    name = kebab(first.kind.kind)[:_LONGEST_OPERATOR]
    choices = rules_text({"name": name, "namespace": f"{name}-system", "version": "0.1.0"})
    files[operator_choices.FILE] = f"{schema_comment(f'{SCHEMAS}/{CHOICES}')}\n{choices}"
    files[README] = readme(first.kind, name, _name(first.samples[0]), has_existing=bool(first.existing))
    files[AGENTS] = agents_page()
    files[IGNORED] = "*.kubeconfig\n.venv/\n"
    return files


def _files_of_kind(project: NewProject) -> dict[str, str]:
    folder = project.folder
    files = {f"templates/{folder}/{child.file}": _template(child) for child in project.children}
    if project.definition is not None:
        files[f"crds/{_name(project.definition)}.yaml"] = rules_text(project.definition)
    for sample in project.samples:
        files[f"examples/{project.example(sample)}"] = rules_text(sample)
    for existing in project.existing:
        files[f"{EXISTING}/{_name(existing)}.yaml"] = rules_text(existing)
    if not project.incomplete:
        cases = rules_text([_test(project, sample) for sample in project.samples])
        files[f"tests/{folder}.test.yaml"] = f"{schema_comment(f'../{SCHEMAS}/{TESTS}')}\n{cases}"
    return files


def _template(child: NewChild) -> str:
    text = template_text(child.template)
    return f"{{% if {child.condition} %}}\n{text}{{% endif %}}\n" if child.condition else text


def _watch(project: NewProject) -> dict[str, Any]:
    kind = project.kind
    watch: dict[str, Any] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    if project.definition is None and "schema" not in project.watch:
        watch["schema"] = _schema(project)
    watch |= {name: each for name, each in project.watch.items() if name != "status"}
    if any(child.namespace for child in project.children):
        watch["reach"] = "cluster"
    if project.let:
        watch["let"] = project.let
    if project.observe:
        watch["observe"] = project.observe
    watch["children"] = {child.id: _child(project, child) for child in project.children}
    if project.status or project.required_status:
        computed = {name: WrittenExpr(code) for name, code in project.status.items()}
        watch["status"] = {**project.required_status, **computed}
    if "status" in project.watch:
        watch["status"] = project.watch["status"]
    return watch


def _schema(project: NewProject) -> dict[str, Any]:
    name = {
        "description": "Names of other objects are made of it.",
        "type": "string",
        "maxLength": project.longest_name,
        "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }
    found = schema_entry(project.spec, name=name)
    columns = [{"name": f"{each[0].upper()}{each[1:]}", "jsonPath": f".status.{each}"} for each in project.status]
    scale = _scale(project)
    return {**found, **({"columns": columns} if columns else {}), **({"scale": scale} if scale else {})}


def _scale(project: NewProject) -> dict[str, str]:
    """The field that `kubectl scale` sets: the replicas of the main workload, if the spec has their number."""
    for child in project.children:
        replicas = value_at(child.template, ("spec", "replicas"))
        counted = project.status.get(READY_REPLICAS, "").startswith(f"{child.id}.")
        if not counted or not isinstance(replicas, WrittenExpr) or not _FIELD.fullmatch(replicas.code):
            continue
        found = schema_at(project.spec, tuple(replicas.code.split(".")[1:]))
        if found is not None and found.get("type") == "integer":
            return {"replicas": f".{replicas.code}", "status": f".status.{READY_REPLICAS}"}
    return {}


def _child(project: NewProject, child: NewChild) -> dict[str, Any]:
    found: dict[str, Any] = {"template": f"{project.folder}/{child.file}"}
    if child.create_only:
        # A generated value is kept with the data that it opens.
        found |= {"apply": {"strategy": "create-only"}, "adopt": "orphans", "deletion": "orphan"}
    if child.optional:
        found["optional"] = True
    if child.namespace:
        found["namespace"] = child.namespace
    return {**found, **child.settings}


def _test(project: NewProject, sample: Mapping[str, Any]) -> dict[str, Any]:
    name, kind = _name(sample), project.kind.kind
    case: dict[str, Any] = {"name": f"a new {kind} ({name})", "resource": f"../examples/{project.example(sample)}"}
    if project.existing:
        case["existing"] = [f"../{EXISTING}/{_name(each)}.yaml" for each in project.existing]
    children = {child.id: expected(child.template, sample) for child in project.children if child.tested}
    if project.watch:
        given = {name: each for name, each in children.items() if each is not None}
        fields = {"children": Noted(_ABOUT_CHILDREN, given)} if given else {}
        return {**case, "expect": {**fields, "conditions": {"Stalled": "False"}}}
    expect: dict[str, Any] = {"children": Noted(_ABOUT_CHILDREN, children)}
    if project.status:
        expect["status"] = dict.fromkeys(project.status, 0)
    in_place = {
        "name": "its children become ready",
        "existing": [{"ready": True}],
        "expect": {"actions": [], "conditions": {"Ready": "True"}},
    }
    return {**case, "expect": expect, "then": [in_place]}


def _name(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])


# -- writing the files -------------------------------------------------------------------------------------------------
# Writes the files of a new project. Nothing is overwritten: if a file of the rules exists, none is written.
#
# There is no `--force`: a project is made once, and the files that exist are somebody's work.


class ExistsError(RuleopError):
    """Files of the new project exist, or their folder cannot be used."""


def write_files(root: Path, files: Mapping[str, str], optional: Collection[str] = ()) -> list[str]:
    """Writes all files, or none. Of the `optional` ones, those that exist are left as they are, and returned."""
    if root.exists() and not root.is_dir():
        raise ExistsError(f"{root} is a file: name a folder")
    present = [path for path in files if (root / path).exists() or (root / path).is_symlink()]
    existing = [path for path in present if path not in optional]
    if existing:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise ExistsError(
            f"{(root / existing[0]).as_posix()} exists{more}: nothing was written; move it away, or name another folder"
        )
    try:
        for path, text in files.items():
            if path in present:
                continue
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        raise ExistsError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return present
