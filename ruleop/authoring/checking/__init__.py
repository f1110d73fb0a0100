"""Checks of a project beyond loading, for its authors.

A project that loads may still be wrong: these checks find what would fail, or never happen, in a cluster. For the
operator, `ruleop.authoring.rules_process` runs them. Each check is a function that adds findings.
"""

from __future__ import annotations

import importlib.resources
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ruleop.authoring.checking.dataflow import Sources, check_exposed_secrets, check_sensitive_fields
from ruleop.authoring.checking.immutable_changes import check_immutable_changes
from ruleop.authoring.checking.ineffective_entries import check_apply_paths, check_short_names, check_unused_names
from ruleop.authoring.checking.inferred_definitions import checked_definitions
from ruleop.authoring.checking.known_names import KnownNames
from ruleop.authoring.checking.missing_permissions import Roles, check_permissions
from ruleop.authoring.checking.object_names import check_object_names
from ruleop.authoring.checking.references import Provided, check_references, check_scaled_replicas, check_selectors
from ruleop.authoring.checking.refused_objects import check_examples, check_refused_objects, read_examples
from ruleop.authoring.checking.typing.watches import check_types
from ruleop.errors import Site
from ruleop.kubernetes.builtin.builtin_types import typed_schema
from ruleop.kubernetes.crd import definition_of
from ruleop.language.rules import Findings, ProjectErrors
from ruleop.language.rules.check_ids import id_of, refusal
from ruleop.language.rules.checking import checked
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ruleop.kubernetes.kinds import Kind
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
    provided = [Provided.by(KnownNames(Sources(watch, loaded))) for watch in loaded.watches]
    for watch, own in zip(loaded.watches, provided, strict=True):
        sources = Sources(watch, loaded)
        names = KnownNames(sources)
        check_references(names, own, provided, findings)
        check_selectors(names, own, provided, findings)
        check_scaled_replicas(names, findings)
        check_object_names(sources, findings)
        check_refused_objects(sources, findings)
        check_immutable_changes(sources, findings)
        check_sensitive_fields(sources, findings)
        check_exposed_secrets(sources, findings)
    if roles is not None and loaded.watches:
        check_permissions([Sources(watch, loaded) for watch in loaded.watches], roles, findings)
    found = {*loaded.project.findings, *unread.sorted(), *findings.sorted()}
    kept = silenced({*found, *_of_examples(loaded, examples, found)}, loaded)
    return tuple(sorted(kept, key=lambda finding: finding.order))


def _of_examples(loaded: Loaded, examples: Mapping[str, str], others: set[Finding]) -> Iterator[Finding]:
    """The findings of the examples, except on lines that have another error, which is the cause."""
    findings = Findings(loaded.files)
    check_examples(loaded, examples, findings)
    lines = {(each.site.path, each.site.line) for each in others if each.severity == "error"}
    return (each for each in findings.sorted() if (each.site.path, each.site.line) not in lines)


def unchecked_kinds(loaded: Loaded) -> tuple[Kind, ...]:
    kinds = {kind for watch in loaded.watches for child in watch.draft.everyone for kind in child.kinds}
    return tuple(sorted(kind for kind in kinds if not _has_schema(kind, loaded.project)))


def _has_schema(kind: Kind, project: Project) -> bool:
    crd = definition_of(kind, project.crds)
    return typed_schema(kind) is not None or (crd is not None and crd.version(kind.version) is not None)


# -- accepted findings -------------------------------------------------------------------------------------------------
# `{# ruleop: allow RO703 REASON #}` in a template and `# ruleop: allow RO703 REASON` in YAML hold for their own line.
# On a line of its own, a comment holds for the next line that is none; in the first line, also for the file as a whole,
# and in that of a CRD for what rules do with the fields of its kind. `allow` of watches.yaml holds for the whole
# project. Mistakes that keep a project from loading cannot be accepted.

_COMMENT = re.compile(r"(?:^|(?<=[\s{]))#[-+]?[ \t]*ruleop:[ \t]*allow\b(?P<rest>.*?)(?:[-+]?#\}|$)")
_ALONE = re.compile(r"\s*(?:#.*|\{#.*#\}\s*)")
_NAMES = re.compile(r"\s*((?:[A-Za-z][\w-]*\s*,\s*)*(?:RO\d+|[a-z]+-[a-z-]+)\b),?\s*(.*)", re.ASCII)
_FORM = "write `ruleop: allow ID REASON`, like `ruleop: allow RO703 the platform team sets the image`"


@dataclass(frozen=True, slots=True)
class AllowedCheck:
    """One id of a comment."""

    id: str
    site: Site  # of the comment
    lines: tuple[int, ...]  # the lines it holds for; 0 is the file as a whole


def silenced(found: Iterable[Finding], loaded: Loaded) -> tuple[Finding, ...]:
    """The findings that are not accepted, and those about the comments themselves."""
    about = Findings(loaded.files)
    allowances = [each for path, text in loaded.files.items() for each in _allowances(path, text, about)]
    by_place = {(each.site.path, each.id, line): each for each in allowances for line in each.lines}
    kept, used = [], set()
    for finding in found:
        id_ = id_of(finding.code)
        allowance = by_place.get((finding.site.path, id_, finding.site.line)) or by_place.get((finding.subject, id_, 0))
        used.add(allowance)
        if allowance is None and id_ not in loaded.allow:
            kept.append(finding)
    for allowance in allowances:
        if allowance not in used:
            message = f"{allowance.id} is allowed here, and line {max(allowance.lines)} has no such finding: remove it"
            about.warning("unused-allow", message, allowance.site)
    kept += (finding for finding in about.sorted() if id_of(finding.code) not in loaded.allow)
    return tuple(kept)


def _allowances(path: str, text: str, about: Findings) -> Iterator[AllowedCheck]:
    if "ruleop:" not in text:
        return
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for match in _COMMENT.finditer(line):
            site = Site(path, number, match.start() + 1)
            for name in _names(match["rest"], site, about):
                yield AllowedCheck(name, site, _lines_for(lines, number))


def _names(rest: str, site: Site, about: Findings) -> Iterator[str]:
    match = _NAMES.fullmatch(rest.rstrip())
    if match is None:
        about.warning("wrong-allow", f"not an id of a check: {_FORM}", site)
        return
    for name in (each.strip() for each in match[1].split(",")):
        if (mistake := refusal(name)) is not None:
            about.warning("wrong-allow", mistake, site)
        elif not re.search(r"\w", match[2]):
            about.warning("wrong-allow", f"{name} is allowed without a reason: {_FORM}", site)
        else:
            yield name


def _lines_for(lines: list[str], number: int) -> tuple[int, ...]:
    whole = (0,) if number == 1 else ()
    if _ALONE.fullmatch(lines[number - 1]):
        for below, line in enumerate(lines[number:], number + 1):
            if line.strip() and not _ALONE.fullmatch(line):
                return (*whole, below)
    return (*whole, number)


# -- explanations ------------------------------------------------------------------------------------------------------

_HIDDEN: Final = re.compile(r"<!-- .*? -->\n")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def explanation(id_: str) -> str:
    """The section of a check, from checks.md beside this module, as text for a terminal: code is indented."""
    page = importlib.resources.files(__package__).joinpath("checks.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {id_} ")[2].partition("\n## ")[0]
    lines, is_code = [f"{id_} {section.partition(chr(10))[0]}"], False
    for line in _HIDDEN.sub("", section).split("\n")[1:]:
        if line.startswith("```"):
            is_code = not is_code
        else:
            lines.append(f"    {line}".rstrip() if is_code else _LINK.sub(r"\1", line).replace("**", ""))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
