"""Small projects in memory, and what `ruleop check` says about them."""

from __future__ import annotations

from ruleop.authoring.checking import check_project
from ruleop.language.rules import Finding
from ruleop.language.rules.check_ids import id_of
from ruleop.language.rules.checking import build_with_sources
from tests.definitions import definition
from tests.language.rules.projects import watch

SPEC = "{type: object, x-kubernetes-preserve-unknown-fields: true}"


def findings(watches: str, files: dict[str, str] | None = None) -> tuple[Finding, ...]:
    """The findings of a project of this watches.yaml and App's CRD."""
    everything = {"watches.yaml": watches, "crds/apps.yaml": definition(spec=SPEC), **(files or {})}
    return check_project(build_with_sources(everything, root="/project", environ={}))


def said(watches: str, files: dict[str, str] | None = None) -> list[str]:
    return [f"{id_of(finding.code)} {finding}" for finding in findings(watches, files)]


def said_of(body: str, **templates: str) -> list[str]:
    """The findings of one watch, whose body begins on line 4, two columns in; `a` is templates/a.yaml."""
    return said(watch(body), {f"templates/{name}.yaml": text for name, text in templates.items()})
