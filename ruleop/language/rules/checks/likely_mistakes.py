"""Warns of what is allowed and probably meant otherwise. In plain text, expressions without braces, and ${NAME} outside
of `vars`. Templates that nothing uses.

Children that adopt any object: the custom resource decides the name and the namespace, so adopting is a way to write to
objects that its author cannot write to. Objects with an owner are not adopted.

Jobs with ttlSecondsAfterFinished: the deleted Job is missing from the desired state, so ruleop would create it again.
Children with `when` are not checked, because the rule may remove the finished Job by it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ruleop.errors import Site
from ruleop.kubernetes.builtin.table import builtin_resource
from ruleop.language.rules.keys.model import JOBS
from ruleop.language.rules.keys.parsed import REFERENCE
from ruleop.language.rules.scopes import metadata_slots, possible_in, written
from ruleop.language.templates import Expression, RuleErrors, TextTemplate, syntax
from ruleop.language.templates.bodies.body import BodyMembers, member
from ruleop.language.templates.compile import quoted_names
from ruleop.language.templates.syntax import chain_of, find
from ruleop.reachable import reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ruleop.language.rules.findings import Findings
    from ruleop.language.rules.keys.parsed import Draft
    from ruleop.language.rules.scopes import RulePart, ScopeView
    from ruleop.language.templates import YamlNode
    from ruleop.language.templates.compile import Library


def warn_of_mistakes(draft: Draft, parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    parts = list(parts)
    _warn_of_plain_text(parts, library, findings)
    _check_kro_expressions(draft, parts, library.texts, findings)
    _warn_of_job_ttl(parts, library, findings)
    if draft.table.reach == "cluster":
        _warn_of_adoption(parts, library, findings)


def _warn_of_adoption(parts: Sequence[RulePart], library: Library, findings: Findings) -> None:
    given = [part for part in parts if part.key == "namespace"]
    for part in parts:
        child = part.child
        if not part.body or child is None or child.table.adopt != "orphans":
            continue
        is_cluster_scoped = any(
            (found := builtin_resource(kind.versionless)) is not None and not found.namespaced for kind in child.kinds
        )
        names, namespaces = (
            [slot.node for slot in metadata_slots(part, field, library)] for field in ("name", "namespace")
        )
        for tree in (tree for each in given if each.child is child for tree in written(each, library)):
            namespaces += (printed.value for printed in find(tree, syntax.Print))
        if any(map(_is_decided, names)) and (is_cluster_scoped or any(map(_is_decided, namespaces))):
            what = "name" if is_cluster_scoped else "name and the namespace"
            message = (
                f"with `adopt: orphans`, a CR that decides the {what} can take over any object of this kind that has "
                "no owner: leave `adopt` out, or make one of them constant"
            )
            findings.warning("adopts-any", message, part.site)


def _is_decided(printed: syntax.Printed) -> bool:
    """Whether a value is computed from more than `vars` and the CR's namespace."""
    path = chain_of(printed)
    path = path[1:] if path[:1] == ("cr",) else path
    return path[:1] != ("vars",) and path != ("metadata", "namespace")


_FIELD = "ttlSecondsAfterFinished"


def _warn_of_job_ttl(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    for part in parts:
        child = part.child
        if (
            not part.body
            or child is None
            or child.final
            or "when" in child.table.key_sites
            or any(kind.versionless != JOBS for kind in child.kinds)
        ):
            continue
        for site in dict.fromkeys(_ttl_sites(part, library)):
            message = (
                f"with `{_FIELD}` the finished Job is deleted, "
                "and then ruleop creates and runs it again: remove the field"
            )
            if child.run is not None:
                message = (
                    f"with `{_FIELD}` a Job that finishes and is deleted while ruleop is not running runs again: "
                    "remove the field; `history` limits the finished Jobs"
                )
            findings.warning("runs-again", message, site)


def _ttl_sites(part: RulePart, library: Library) -> Iterator[Site]:
    for body in possible_in(part, library).bodies:
        spec = member(body.document, "spec")
        if isinstance(spec, BodyMembers) and _FIELD in spec.entries:
            yield spec.entries[_FIELD].key.site


def warn_of_unused(templates: Mapping[str, str], parts: Iterable[RulePart], findings: Findings) -> None:
    """A template is used if a watch names it, or if its name is in quotes in a used template, as in file()."""
    named: set[str] = set()
    for part in parts:
        if isinstance(part.compiled, TextTemplate):
            named |= part.compiled.files
        else:
            named.update(quoted_names(" ".join(text for text, _ in part.node.texts()), templates))
    used = reached(named & templates.keys(), lambda name: quoted_names(templates[name], templates))
    for name in sorted(templates.keys() - used.keys()):
        findings.warning("unused-template", "nothing uses this template", Site(f"templates/{name}"))


_EXPRESSION_START = re.compile(r"\s*(?:not\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*(?:[\[|]|\.([A-Za-z_][A-Za-z0-9_]*))")
_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "data", "stringData", "type"})


def _warn_of_plain_text(parts: Iterable[RulePart], library: Library, findings: Findings) -> None:
    for part in parts:
        if isinstance(part.compiled, TextTemplate):
            continue
        field_paths = set(_field_paths(part.node)) if part.key == "object" else set()
        for text, site in part.node.texts():
            # In an object, ${NAME} is usually shell syntax.
            if part.key != "object" and (match := REFERENCE.search(text)):
                message = f"{match[0]} is read from the environment only in `vars`: here it is plain text"
                findings.warning("elsewhere", message, site)
            if site in field_paths:
                continue
            if not isinstance(part.compiled, Expression) and _resembles_expression(text, part.view, library, site):
                instead = f'write "{{{{ {text.strip()} }}}}" if it is one'
                message = f'"{text}" is plain text here, but looks like an expression: {instead}'
                findings.warning("looks-like-expression", message, site)


_COMMENT = re.compile(r"(?:^|\s|\{)#")
_KRO = re.compile(r"\$\{\s*([A-Za-z_]\w*)\.(spec|metadata|status|data)\b[^}\n]*\}")


def _check_kro_expressions(
    draft: Draft, parts: Iterable[RulePart], templates: Mapping[str, str], findings: Findings
) -> None:
    """Finds kro's expressions, which are plain text here. No shell has names with dots, so they have no other
    meaning."""
    for part in parts:
        compiled = part.compiled
        texts = [] if isinstance(compiled, (Expression, TextTemplate)) else list(part.node.texts())
        if isinstance(compiled, TextTemplate):
            texts = [
                (line, Site(f"templates/{name}", number, 1))
                for name in compiled.files
                for number, line in enumerate(templates[name].split("\n"), 1)
                if "${" in line
            ]
        for text, site in texts:
            for found in _KRO.finditer(text):
                name = found[1]
                is_comment = isinstance(compiled, TextTemplate) and _COMMENT.search(text, 0, found.start())
                if is_comment or (name != "schema" and name not in draft.children):
                    continue
                inner = found[0][2:-1].strip().removeprefix("schema.")
                place = (
                    site if not isinstance(compiled, TextTemplate) else Site(site.path, site.line, found.start() + 1)
                )
                message = f"{found[0]} is an expression of kro, and plain text here: write {{{{ {inner} }}}}"
                findings.error("elsewhere", message, place)


def _field_paths(node: YamlNode) -> Iterator[Site]:
    """The values of `fieldPath`, by which a container reads fields of its own Pod (spec.nodeName), and the keys of
    `matchFields`."""
    if isinstance(node.value, dict):
        for key, member in node.value.items():
            if key == "fieldPath" or (key == "key" and "operator" in node.value):
                yield member.site
            yield from _field_paths(member)
    elif isinstance(node.value, list):
        for member in node.value:
            yield from _field_paths(member)


def _resembles_expression(text: str, view: ScopeView, library: Library, site: Site) -> bool:
    match = _EXPRESSION_START.match(text)
    if match is None or match[1] not in view.names or "{{" in text or "{%" in text:
        return False
    if match[2] and match[1] in view.children | view.observed and match[2] not in _FIELDS:
        return False  # app.example.com is a host, even if a child has the id app
    try:
        return library.expression(text, site).names <= view.names
    except RuleErrors:
        return False  # a sentence that starts with a name
