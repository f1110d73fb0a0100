"""Checks of a project beyond loading, for its authors.

A project that loads may still be wrong: these checks find what would fail, or never happen, in a cluster. For the
operator, `ruleop.authoring.rules_process` runs them. Each check is a function that adds findings.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ruleop.authoring.checking.allowances import silenced
from ruleop.authoring.checking.dataflow.exposed_secrets import check_exposed_secrets
from ruleop.authoring.checking.dataflow.sensitive_fields import check_sensitive_fields
from ruleop.authoring.checking.dataflow.sources import Sources
from ruleop.authoring.checking.examples import check_examples, read_examples
from ruleop.authoring.checking.immutable_changes import check_immutable_changes
from ruleop.authoring.checking.ineffective_entries import check_apply_paths, check_short_names, check_unused_names
from ruleop.authoring.checking.inferred_definitions import checked_definitions
from ruleop.authoring.checking.known_names import KnownNames
from ruleop.authoring.checking.object_names import check_object_names
from ruleop.authoring.checking.references import check_references
from ruleop.authoring.checking.refused_objects import check_refused_objects
from ruleop.authoring.checking.roles.missing_permissions import Roles, check_permissions
from ruleop.authoring.checking.scaled_replicas import check_scaled_replicas
from ruleop.authoring.checking.selectors import check_selectors
from ruleop.authoring.checking.typing.bodies.typed_watches import check_types
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.checking import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.language.rules import Finding, Project, RuleFiles
    from ruleop.language.rules.loading import Loaded


def check_project(loaded: Loaded, *, roles: Roles | None = None) -> tuple[Finding, ...]:
    """The findings of loading and the findings of all checks that are not silenced, in the order of their places.
    `roles`: those of the operator."""
    unread = Findings({})
    examples = read_examples(Path(loaded.project.root), unread)
    return _check(loaded, examples, unread, roles)


def rule_errors(loaded: Loaded) -> tuple[Finding, ...]:
    """The errors for which the operator refuses the rules: what it does not read, such as examples/ and crds/, cannot
    cause one."""
    return errors_of_rules(_check(loaded, {}, Findings({}), None), loaded)


def errors_of_files(
    files: RuleFiles, *, environ: Mapping[str, str], usable: Callable[[Project], None] = lambda _: None
) -> tuple[Finding, ...]:
    """The errors for which the operator refuses the rules of these files, including those for which it cannot use them.
    `usable` is called with rules that it can use, before they are checked further."""
    try:
        loaded = checked(files, environ=environ)
    except ProjectErrors as errors:
        return errors.errors
    usable(loaded.for_operator())
    return rule_errors(loaded)


def errors_of_rules(found: Iterable[Finding], loaded: Loaded) -> tuple[Finding, ...]:
    """Those of the findings that are errors of the rules."""
    read = {path for path in loaded.files if not path.startswith("crds/")}
    return tuple(each for each in found if each.severity == "error" and each.site.path in read)


def _check(loaded: Loaded, examples: Mapping[str, str], unread: Findings, roles: Roles | None) -> tuple[Finding, ...]:
    loaded = replace(loaded, files={**loaded.files, **examples})
    findings = Findings(loaded.files)
    loaded = checked_definitions(loaded, findings)
    check_types(loaded, findings)
    check_unused_names(loaded, findings)
    check_apply_paths(loaded, findings)
    check_short_names(loaded, findings)
    every_source = [Sources(watch, loaded) for watch in loaded.watches]
    all_names = [KnownNames(sources) for sources in every_source]
    check_references(all_names, findings)
    check_selectors(all_names, findings)
    for names in all_names:
        check_scaled_replicas(names, findings)
    for sources in every_source:
        check_object_names(sources, findings)
        check_refused_objects(sources, findings)
        check_immutable_changes(sources, findings)
        check_sensitive_fields(sources, findings)
        check_exposed_secrets(sources, findings)
    if roles is not None and every_source:
        check_permissions(every_source, roles, findings)
    found = {*loaded.project.findings, *unread.sorted(), *findings.sorted()}
    kept = silenced({*found, *_of_examples(loaded, examples, found)}, loaded)
    return tuple(sorted(kept, key=lambda finding: finding.order))


def _of_examples(loaded: Loaded, examples: Mapping[str, str], others: set[Finding]) -> Iterator[Finding]:
    """The findings of the examples, except on lines that have another error, which is the cause."""
    findings = Findings(loaded.files)
    check_examples(loaded, examples, findings)
    lines = {(each.site.path, each.site.line) for each in others if each.severity == "error"}
    return (each for each in findings.sorted() if (each.site.path, each.site.line) not in lines)
