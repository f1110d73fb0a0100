"""Plans the custom resources in examples/, as a cluster would: those that fail are findings at their place.

Other objects in examples/ exist already, as with `ruleop plan --with`. Subfolders and tests of rules are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.checking.desired_objects import with_violations
from ruleop.authoring.offline import (
    EPOCH,
    SUFFIXES,
    OfflineKinds,
    as_live,
    documents_in,
    dropped,
    identified,
    prepare,
    undecided,
)
from ruleop.errors import Site
from ruleop.files import read_inside, why_unreadable
from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules import MAX_CRD_BYTES
from ruleop.planning import FixedObjects, Observed, choose_rule, plan
from ruleop.planning.model.actions import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ruleop.authoring.offline import Document
    from ruleop.language.rules import Findings
    from ruleop.language.rules.loading import Loaded

FOLDER: Final = "examples"
_TEST: Final = ".test.yaml"


def read_examples(root: Path, findings: Findings) -> dict[str, str]:
    """The texts of the files in examples/ by their paths. A file that cannot be read is empty."""
    folder = root / FOLDER
    if not folder.is_dir():
        return {}
    names = sorted(entry.name for entry in folder.iterdir() if entry.suffix in SUFFIXES and not entry.is_dir())
    return {
        f"{FOLDER}/{name}": _text(root, f"{FOLDER}/{name}", findings)
        for name in names
        if not name.startswith(".") and not name.endswith(_TEST)
    }


def _text(root: Path, path: str, findings: Findings) -> str:
    try:
        return read_inside(root / path, root, MAX_CRD_BYTES).decode("utf-8-sig")
    except OSError as error:
        findings.mistake("unreadable", why_unreadable(error), Site(path))
    except UnicodeDecodeError:
        findings.mistake("unreadable", "is not valid UTF-8", Site(path))
    return ""


def check_examples(loaded: Loaded, texts: Mapping[str, str], findings: Findings) -> None:
    documents: list[Document] = []
    for path, text in texts.items():
        found, mistakes = documents_in(text, path)
        findings.take(mistakes, "example")
        documents += found
    kinds = OfflineKinds(loaded.project)
    watched = {rule.kind for rule in loaded.project.rules}
    versions = {rule.kind.versionless: rule.kind for rule in loaded.project.rules}
    for each in documents:
        kind = Kind.of(each.data)
        if kind.versionless in versions and kind not in watched:
            message = f"{kind.kind} is watched in {versions[kind.versionless].api_version}, not in {kind.api_version}"
            findings.mistake("example", message, each.site(("apiVersion",)))
    others = [each.data for each in documents if Kind.of(each.data) not in watched and _has_name(each.data)]
    live = as_live(others, kinds)
    stored = [
        (each, _stored(each, live, kinds, loaded, findings)) for each in documents if Kind.of(each.data) in watched
    ]
    taken = [(document, resource) for document, resource in stored if resource is not None]
    objects = FixedObjects([*live, *(resource for _, resource in taken)])
    observed = Observed(objects, kinds, now=EPOCH, seed=b"")
    for document, resource in taken:
        _plan(document, resource, observed, loaded, findings)


def _has_name(obj: Any) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _stored(
    document: Document, live: list[dict[str, Any]], kinds: OfflineKinds, loaded: Loaded, findings: Findings
) -> Any:
    """The custom resource as the API server would store it; None if it would refuse it."""
    resource, refused = prepare(loaded.project, identified(document.data, live, kinds))
    for finding in refused:
        findings.mistake("example", str(finding), document.site(finding.path))
    for finding in dropped(loaded.project, document.data) if _has_name(document.data) else ():
        findings.mistake("example", str(finding), document.site(finding.path))
    for finding in undecided(loaded.project, resource):
        findings.warning("example", str(finding), document.site(finding.path))
    return None if refused else resource


def _plan(document: Document, resource: dict[str, Any], observed: Observed, loaded: Loaded, findings: Findings) -> None:
    rule = choose_rule(loaded.project.rules, resource)
    if rule is None:
        message = "no rule selects this custom resource (see selector and namespaces)"
        findings.mistake("example", message, document.node.site)
        return
    example = Site(document.node.site.path, document.node.site.line)
    for problem in distinct(with_violations(plan(rule, resource, observed), rule, loaded.project).problems):
        message = f"{problem.child}: {problem.message} (with {example})"
        findings.mistake("example", message, problem.site or document.node.site)
