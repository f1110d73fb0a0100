"""The files of a new project, from the parts of its one rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ruleop.scaffold.definition import definition
from ruleop.scaffold.expectations import expected
from ruleop.scaffold.naming import kebab
from ruleop.scaffold.schemas import TESTS, WATCHES, schema_comment
from ruleop.scaffold.yaml_layout import Expr, Noted, rules_text, template_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.kinds import Kind
    from ruleop.schema.openapi import Schema

SCHEMAS: Final = "schemas"
EXISTING: Final = "existing"
README: Final = "README.md"
IGNORED: Final = ".gitignore"
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

    @property
    def file(self) -> str:
        return f"{kebab(self.id)}.yaml.j2"


@dataclass(frozen=True, slots=True)
class StatusField:
    """A field of the status: a number, 0 while nothing exists."""

    code: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class NewProject:
    """A project with one kind and one rule, or the part of one kind of a larger project."""

    kind: Kind
    samples: tuple[Mapping[str, Any], ...]  # custom resources
    fields: Mapping[str, Schema]  # of the custom resource, beside metadata and status
    required: tuple[str, ...]
    children: tuple[NewChild, ...]
    longest_name: int
    let: Mapping[str, Any] = field(default_factory=dict)
    observe: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, StatusField] = field(default_factory=dict)
    existing: tuple[Mapping[str, Any], ...] = ()  # objects that users make, as placeholders
    notes: tuple[str, ...] = ()  # for the person who makes the project
    lifted: tuple[tuple[str, str], ...] = ()  # fields of the spec, and what they came from
    credentials: tuple[tuple[str, str], ...] = ()  # what took the place of each, and where it was
    definition: Mapping[str, Any] | None = None  # where the kind exists; else it is made of the fields
    left: tuple[tuple[str, str], ...] = ()  # names of objects in text that stayed, and where they are

    @property
    def folder(self) -> str:
        return kebab(self.kind.kind)


def project_files(first: NewProject, schemas: Mapping[str, str], more: Sequence[NewProject] = ()) -> dict[str, str]:
    """The text of each file, by its path in the project. `schemas` are for editors, by the names of their files."""
    projects = (first, *more)
    watches = rules_text([_watch(each) for each in projects])
    files = {"watches.yaml": f"{schema_comment(f'{SCHEMAS}/{WATCHES}')}\n{watches}"}
    for project in projects:
        files |= _files_of_kind(project)
    files |= {f"{SCHEMAS}/{name}": text for name, text in schemas.items()}
    files[README] = _readme(first)
    files[IGNORED] = "*.kubeconfig\n.venv/\n"
    return files


def _files_of_kind(project: NewProject) -> dict[str, str]:
    folder = project.folder
    crd = project.definition or definition(
        project.kind,
        project.fields,
        required=list(project.required),
        status={name: each.schema for name, each in project.status.items()},
        longest=project.longest_name,
    )
    files = {f"templates/{folder}/{child.file}": template_text(child.template) for child in project.children}
    files[f"crds/{_name(crd)}.yaml"] = rules_text(crd)
    for sample in project.samples:
        files[f"examples/{_name(sample)}.yaml"] = rules_text(sample)
    for existing in project.existing:
        files[f"{EXISTING}/{_name(existing)}.yaml"] = rules_text(existing)
    cases = rules_text([_test(project, sample) for sample in project.samples])
    files[f"tests/{folder}.test.yaml"] = f"{schema_comment(f'../{SCHEMAS}/{TESTS}')}\n{cases}"
    return files


def _watch(project: NewProject) -> dict[str, Any]:
    kind = project.kind
    watch: dict[str, Any] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    if any(child.namespace for child in project.children):
        watch["reach"] = "cluster"
    if project.let:
        watch["let"] = project.let
    if project.observe:
        watch["observe"] = project.observe
    watch["children"] = {child.id: _child(project, child) for child in project.children}
    if project.status:
        watch["status"] = {name: Expr(each.code) for name, each in project.status.items()}
    return watch


def _child(project: NewProject, child: NewChild) -> dict[str, Any]:
    found: dict[str, Any] = {"template": f"{project.folder}/{child.file}"}
    if child.create_only:
        # A generated value is kept with the data that it opens.
        found |= {"apply": {"strategy": "create-only"}, "adopt": "orphans", "deletion": "orphan"}
    if child.optional:
        found["optional"] = True
    if child.namespace:
        found["namespace"] = child.namespace
    return found


def _test(project: NewProject, sample: Mapping[str, Any]) -> dict[str, Any]:
    name, kind = _name(sample), project.kind.kind
    case: dict[str, Any] = {"name": f"a new {kind} ({name})", "resource": f"../examples/{name}.yaml"}
    if project.existing:
        case["existing"] = [f"../{EXISTING}/{_name(each)}.yaml" for each in project.existing]
    children = {child.id: expected(child.template, sample) for child in project.children}
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


def _readme(project: NewProject) -> str:
    kind = project.kind
    first = f"examples/{_name(project.samples[0])}.yaml"
    apply = f"--apply {EXISTING}/ --apply examples/" if project.existing else "--apply examples/"
    return f"""\
# {kind.kind}

An operator for {kind.kind} ({kind.group}/{kind.version}), made with ruleop. `watches.yaml` maps each {kind.kind} to its
children, `templates/` has the children, `crds/` the CustomResourceDefinition.

```console
$ ruleop check                      # find mistakes without a cluster
$ ruleop render -f {first}
$ ruleop test                       # the cases of tests/
$ ruleop dev {apply}
```
"""
