"""New projects: their files, written for people to edit. `ruleop init` and `ruleop generate` print or write them."""

from ruleop.authoring.scaffold.from_crd import crd_projects
from ruleop.authoring.scaffold.from_sample import DEFAULT, check_kind, empty_project, sample_project
from ruleop.authoring.scaffold.instance import instance
from ruleop.authoring.scaffold.kro.kro_project import kro_projects
from ruleop.authoring.scaffold.manifests.application import Asked, application_project
from ruleop.authoring.scaffold.naming import ScaffoldError
from ruleop.authoring.scaffold.new_project import (
    AGENTS,
    CHOICES,
    EXISTING,
    IGNORED,
    README,
    TESTS,
    WATCHES,
    ExistsError,
    NewProject,
    project_files,
    write_files,
)
from ruleop.authoring.scaffold.readme import CI
from ruleop.authoring.scaffold.yaml_layout import Noted, rules_text

__all__ = [
    "AGENTS",
    "CHOICES",
    "CI",
    "DEFAULT",
    "EXISTING",
    "IGNORED",
    "README",
    "TESTS",
    "WATCHES",
    "Asked",
    "ExistsError",
    "NewProject",
    "Noted",
    "ScaffoldError",
    "application_project",
    "check_kind",
    "crd_projects",
    "empty_project",
    "instance",
    "kro_projects",
    "project_files",
    "rules_text",
    "sample_project",
    "write_files",
]
