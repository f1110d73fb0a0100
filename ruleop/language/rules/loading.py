"""Loads rules from the files of a project: they are parsed, and then built.

Between the two steps `rules.checking` checks them. A process does both for the operator, at its start and when files
change; results are compared by their digest, which covers every file and every environment variable that was read.

The digest of a rule is of everything that its plans depend on, and nothing else. Sites are not part of it, so a line
inserted before a watch changes nothing. The text of a template counts together with all templates that it can use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ruleop.errors import Site
from ruleop.kubernetes.kinds import CHANGED_BY_WRITES, Kind
from ruleop.language.rules.findings import Findings, ProjectErrors
from ruleop.language.rules.keys.model import (
    Apply,
    Child,
    Condition,
    Deletion,
    Given,
    Ignore,
    Inputs,
    ItemEnd,
    Loop,
    Observe,
    Once,
    Order,
    Ordinary,
    OwnedBy,
    Pace,
    Patched,
    PolicyRule,
    Project,
    Reach,
    Requirement,
    Rollout,
    Rotation,
    Rule,
    Scheduled,
    Selection,
    Selector,
    StatusRule,
    Validation,
)
from ruleop.language.rules.keys.parsed import Constants, Draft, EnvVars, Shared, chain_of, join, read_file
from ruleop.language.rules.keys.value_types import FileReading
from ruleop.language.rules.order import ChildReads, deleted_after, ids_read, metadata_only_ids, order, reads
from ruleop.language.rules.project_files import (
    WATCHES,
    RuleFiles,
    digest_of,
    digest_of_files,
    has_wildcards,
    is_inside,
    matches,
    normalise_pattern,
)
from ruleop.language.rules.scopes import RulePart, parts
from ruleop.language.rules.secret_reads import secrecy_of
from ruleop.language.templates import (
    JINJA_NAMES,
    NONDETERMINISTIC,
    SCOPE_FUNCTIONS,
    TIME_FUNCTIONS,
    Expression,
    StringTemplate,
    TextTemplate,
    Tree,
    read_yaml,
)
from ruleop.language.templates.compile import Library, quoted_names
from ruleop.language.templates.tree.templates import FOLDER
from ruleop.nearest import did_you_mean_quoted
from ruleop.reachable import reached
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ruleop.kubernetes.crd import CustomResourceDefinition
    from ruleop.kubernetes.kinds import GroupKind
    from ruleop.language.rules.keys.model import Form
    from ruleop.language.rules.keys.parsed import ChildDraft
    from ruleop.language.rules.keys.value_types import NamedEntry, Templated, Word
    from ruleop.language.rules.keys.watches_yaml import (
        ConditionTable,
        FileTable,
        FullSelectorTable,
        ObserveTable,
        PatchTable,
        PolicyRuleTable,
        RolloutTable,
    )
    from ruleop.language.secrets.secrecy import Secrecy
    from ruleop.language.templates import Reference
    from ruleop.language.templates.compiled import Path
    from ruleop.language.templates.tree.templates import Instrument


# -- rules of parsed watches -------------------------------------------------------------------------------------------
#
# Only rules that were parsed without mistakes are built, so all required values are present. Mistakes between several
# values are found by checks; here, only those that leave no rule to build.

T = TypeVar("T")
_STEADY = (JINJA_NAMES - TIME_FUNCTIONS - SCOPE_FUNCTIONS - NONDETERMINISTIC) | {"cr", "metadata", "spec", "vars"}
C = TypeVar("C", Expression, StringTemplate, TextTemplate, Tree)


def build_rule(draft: Draft, parts: Iterable[RulePart], library: Library) -> Rule:
    table = draft.table
    parts = list(parts)
    read, partial, secrecy = reads(draft, parts), metadata_only_ids(draft, parts), secrecy_of(draft, parts, library)
    after = deleted_after(draft, read)

    def built(child: ChildDraft) -> Child:
        texts = [part.compiled for part in parts if part.child is child]
        ids = tuple(sorted(ids_read(draft, texts) - {child.id}))
        return _child(child, read[child.id], ids, secrecy[child.id], after.get(child.id, frozenset()), draft)

    children = {name: built(child) for name, child in draft.children.items()}
    ordered, final_order = order(draft.children, read), order(draft.final, read)
    if len(ordered) + len(final_order) < len(children) + len(draft.final):
        raise ProjectErrors.of("cycle", "children that read or depend on each other have no order", table.site)
    return Rule(
        kind=draft.kind,
        name=table.name.text if table.name else "",
        site=table.site,
        children=children,
        observe={name: _observe(entry, draft, metadata_only=name in partial) for name, entry in draft.observed.items()},
        status=StatusRule(
            managed=table.manage_status and not draft.is_builtin,
            body=table.status.compiled if table.status is not None else None,
            conditions=tuple(_condition(draft, condition) for condition in table.conditions),
        ),
        validate=tuple(
            Validation(_required(validate.rule).compiled, _required(validate.message).compiled, validate.site)
            for validate in table.validate
        ),
        vars=draft.vars,
        let={entry.name: _required(entry.value).compiled for entry in draft.let},
        finalize={name: built(child) for name, child in draft.final.items()},
        selection=Selection(_selector(table.selector), _texts(table.namespaces or ())),
        pace=Pace(table.reconcile_period, table.max_concurrent),
        reach=Reach(table.reach == "cluster", _compiled(table.write_as), tuple(map(_policy_rule, table.rbac))),
        order=Order(ordered, final_order, table.deletion_order),
        expire=_compiled(table.expire.after) if table.expire is not None else None,
        rollout=_rollout(table.rollout) if table.rollout is not None else None,
        reads_time=any(not TIME_FUNCTIONS.isdisjoint(part.compiled.names) for part in parts)
        or any(isinstance(child.form, Scheduled) or child.rotation is not None for child in children.values())
        or table.expire is not None,
        reads_status=any(_is_of_status(each) for part in parts for each in part.compiled.references),
    )


def _is_of_status(reference: Reference) -> bool:
    """Whether a chain of fields is below the CR's status, or may be."""
    return reference.name == "status" or (reference.name == "cr" and reference.path[1:2] in {(), (None,), ("status",)})


def _required(value: T | None) -> T:
    """A value that is required by its table."""
    assert value is not None, "a project with mistakes is never built"
    return value


def _compiled(value: Templated[C] | None) -> C | None:
    return value.compiled if value is not None else None


def _child(
    child: ChildDraft, read: ChildReads, ids: tuple[str, ...], secrecy: Secrecy, after: frozenset[str], draft: Draft
) -> Child:
    table = child.table
    holds_objects = draft.table.deletion_order == "reverse" and Kind("", "v1", "Namespace") in child.kinds
    ended_by = tuple(each.id for each in draft.final.values() if each is not child and draft.looped(each) is child)
    assert child.body is not None, "a project with mistakes is never built"
    body, rotation = child.body.compiled, Rotation(table.rotate_every, table.renew_before)
    return Child(
        id=child.id,
        site=child.site,
        form=_form(child, ended_by),
        body=body,
        kinds=child.kinds,
        many=child.many,
        final=child.final,
        when=_compiled(table.when),
        wait_for=_compiled(table.wait_for),
        for_each=tuple(Loop(each.name, _required(each.value).compiled) for each in child.loops),
        rotation=rotation if rotation != Rotation(None, None) else None,
        depends_on=_texts(table.depends_on),
        ready_when=_compiled(table.ready_when),
        apply=Apply(
            strategy=child.strategy,
            ignore=tuple(Ignore(_required(ignored.path), _compiled(ignored.when)) for ignored in child.ignore),
            own=tuple(owned.path for owned in child.own),
            on_immutable=_compiled(child.on_immutable),
            on_immutable_explicit=table.apply is not None and table.apply.on_immutable is not None,
            adopt=table.adopt,
        ),
        deletion=Deletion(
            policy=_compiled(table.deletion),
            after=after,
            in_order=not child.final and table.patch is None and (bool(after) or holds_objects or bool(ended_by)),
        ),
        namespace=_compiled(table.namespace),
        optional=table.optional,
        inputs=Inputs(
            mentions=read.mentions,
            ids=ids,
            steady=not (child.loops or table.for_each_of or table.patch or ended_by) and _is_steady(child, body, draft),
        ),
        secrecy=secrecy,
    )


def _form(child: ChildDraft, ended_by: tuple[str, ...]) -> Form:
    table = child.table
    if table.objects is not None:
        return Given("extra-privileges" in table.allow)
    if table.patch is not None:
        return _patched(child, table.patch)
    if table.once is not None:
        return Once(table.once.compiled, table.history)
    if table.schedule is not None:
        zone = _compiled(table.time_zone)
        return Scheduled(table.schedule.compiled, zone, table.starting_deadline, table.history)
    return ItemEnd(table.for_each_of.text) if table.for_each_of is not None else Ordinary(ended_by)


def _patched(child: ChildDraft, table: PatchTable) -> Patched:
    target = Observe(
        id=child.id,
        site=child.site,
        kind=table.object_kind,
        name=_compiled(table.name),
        selector=_selector(table.selector),
        namespace=_compiled(table.namespace),
        all_namespaces=table.namespaces is not None,
        many=table.selector is not None,
        patched=True,
    )
    return Patched(target, table.force)


def _is_steady(child: ChildDraft, body: TextTemplate | Tree, draft: Draft) -> bool:
    table = child.table
    others = [
        _compiled(table.deletion),
        _compiled(table.namespace),
        _compiled(child.on_immutable),
        *(_compiled(ignored.when) for ignored in child.ignore),
    ]
    lets = {entry.name: entry.value.compiled for entry in draft.let if entry.value is not None}
    read = [each for each in (body, *others) if each is not None]
    named = reached(
        frozenset().union(*(each.names for each in read)) & lets.keys(), lambda let: lets[let].names & lets.keys()
    )
    read += [lets[each] for each in named]
    paths = (reference.path for each in read for reference in each.references)
    return all(each.names <= _STEADY | lets.keys() for each in read) and not any(map(_may_change_with_writes, paths))


def _may_change_with_writes(path: Path) -> bool:
    """Whether a chain of fields from a name may lead to what the API server or ruleop writes in the CR."""
    if path[0] == "cr" and path[1:2] not in (("apiVersion",), ("kind",), ("spec",)):
        path = path[1:]
        if path[:1] != ("metadata",):
            return True
    return path[0] == "metadata" and (len(path) == 1 or path[1] is None or path[1] in CHANGED_BY_WRITES)


def _observe(entry: NamedEntry[ObserveTable], draft: Draft, *, metadata_only: bool) -> Observe:
    table = _required(entry.value)
    return Observe(
        id=entry.name,
        site=entry.site,
        kind=table.object_kind,
        name=_compiled(table.name),
        for_each=_compiled(table.for_each),
        item_name=table.item,
        selector=_selector(table.selector) or (Selector() if table.selected else None),
        namespace=_compiled(table.namespace),
        all_namespaces=table.namespaces is not None,
        owned_by=_owned_by(entry, table, draft),
        where=_compiled(table.where),
        many=table.many,
        metadata_only=metadata_only,
    )


def _owned_by(entry: NamedEntry[ObserveTable], table: ObserveTable, draft: Draft) -> OwnedBy | None:
    if table.owned_by is None:
        return None
    child = draft.children.get(table.owned_by.text)
    if child is None:
        raise ProjectErrors.of("unknown-id", f'no child has the id "{table.owned_by.text}"', table.owned_by.site)
    chains: dict[GroupKind, tuple[Observe, ...]] = {}
    for kind in child.kinds:
        between = chain_of(table, kind) or ()
        chains[kind.versionless] = tuple(
            Observe(f"{entry.name} ({each.kind})", entry.site, each, many=True, metadata_only=True) for each in between
        )
    return OwnedBy(child.id, chains)


def _condition(draft: Draft, table: ConditionTable) -> Condition:
    status = _required(table.status).compiled
    return Condition(
        type=_required(table.type).text,
        site=table.site,
        status=status,
        reads=tuple(sorted(ids_read(draft, [status]))),
        reason=_compiled(table.reason),
        message=_compiled(table.message),
    )


def _policy_rule(table: PolicyRuleTable) -> PolicyRule:
    groups, resources, verbs = (_texts(_required(each)) for each in (table.groups, table.resources, table.verbs))
    return PolicyRule(groups, resources, verbs, _texts(table.names), table.site)


def _rollout(table: RolloutTable) -> Rollout:
    return Rollout(
        max_unavailable=table.max_unavailable,
        pause_after=table.pause_after,
        failure_threshold=table.failure_threshold,
        order=table.order,
        label=table.label.text if table.label is not None else "",
        deadline=table.progress_deadline,
    )


def _texts(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def _selector(table: FullSelectorTable | None) -> Selector | None:
    if table is None:
        return None
    return Selector(
        match_labels={label.name: _required(label.value).compiled for label in table.match_labels},
        match_expressions=tuple(
            Requirement(
                _required(one.label).text, _required(one.operator), tuple(value.compiled for value in one.values)
            )
            for one in table.match_expressions
        ),
        given=_compiled(table.given),
    )


# -- from files --------------------------------------------------------------------------------------------------------

_COMPUTED = re.compile(r"""\bfile\s*\(\s*(?!(['"])[A-Za-z0-9._/-]+\1\s*\))""")
"""A call of `file` with a computed name, which can read every file."""
_IGNORED_FIELDS = frozenset({"site", "digest", "slots", "words", "rbac", "rollout", "revision"})


def digest(rule: Rule, templates: Mapping[str, str]) -> str:
    content = list(_content(rule))
    names = sorted(_used_templates((text for text in content if isinstance(text, str)), templates))
    parts = [repr(each) for each in content] + [repr((name, templates[name])) for name in names]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _content(value: Any) -> Iterator[Any]:
    """The content of a value in order: names, texts, numbers, and sizes of containers."""
    match value:
        case Expression() | StringTemplate():
            yield from (type(value).__name__, value.source)
        case TextTemplate():
            yield from ("TextTemplate", f"'{value.name}'", *(f"'{name}'" for name in sorted(value.files)))
        case Tree():
            yield "Tree"
            yield from _content(value.node.data())
        case frozenset():
            yield (len(value), *sorted(value))
        case tuple() | list():
            yield (type(value).__name__, len(value))
            for item in value:
                yield from _content(item)
        case _ if hasattr(value, "items"):
            yield ("mapping", len(value))
            for key, member in value.items():
                yield key
                yield from _content(member)
        case _ if dataclasses.is_dataclass(value):
            yield type(value).__name__
            for field in dataclasses.fields(value):
                if field.name not in _IGNORED_FIELDS:
                    yield from _content(getattr(value, field.name))
        case _:
            yield value


def _used_templates(texts: Iterable[str], templates: Mapping[str, str]) -> set[str]:
    """The templates whose names are in quotes in these texts, or in templates that are used."""
    texts = list(texts)
    named = (name for text in texts for name in quoted_names(text, templates))
    used = reached(named, lambda name: quoted_names(templates[name], templates))
    is_computed = any(map(_COMPUTED.search, (*texts, *(templates[name] for name in used))))
    return set(templates if is_computed else used)


@dataclass(frozen=True, slots=True)
class Watch:
    """A rule and what it was made from."""

    rule: Rule
    draft: Draft
    parts: tuple[RulePart, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A project and what it was made from."""

    project: Project
    watches: tuple[Watch, ...]
    files: Mapping[str, str]  # the texts of all files, by their relative paths
    library: Library
    allow: Mapping[str, str]  # the checks that are off, by their ids, with the reasons
    variables: Mapping[str, str | None]  # that the rules read, with their defaults: None without one, "" for several

    def for_operator(self) -> Project:
        """The rules, with all that a render may need, and without the CRDs: those of the API server count."""
        self.library.prepare()
        return replace(self.project, crds=(), definitions=())


def build_unchecked(files: RuleFiles, *, environ: Mapping[str, str]) -> Project:
    """The rules of these files, without their CRDs. Raises ProjectErrors with the mistakes that make it impossible to
    build them; `rules.checking` finds all."""
    loading = Loading.of(files, environ)
    loaded = loading.built(loading.parsed())
    project = loaded.for_operator()
    loaded.library.forget_bodies()
    return project


@dataclass(frozen=True, slots=True)
class Loading:
    """Two steps, between which rules can be checked: they are parsed, and then built."""

    files: RuleFiles
    reading: FileReading
    constants: Constants
    allow: dict[str, str] = field(default_factory=dict)  # of watches.yaml

    @classmethod
    def of(
        cls,
        files: RuleFiles,
        environ: Mapping[str, str],
        *,
        probe: Instrument | None = None,
    ) -> Loading:
        texts, findings = files.texts, files.findings()
        templates = {path.removeprefix(FOLDER): text for path, text in texts.items() if path.startswith(FOLDER)}
        reading = FileReading(Library(templates, probe=probe), findings)
        return cls(files, reading, Constants(EnvVars(environ), findings))

    @property
    def findings(self) -> Findings:
        return self.reading.findings

    def parsed(self) -> list[tuple[Draft, list[RulePart]]]:
        """Each watch with its expressions. Mistakes are among the findings."""
        drafts = list(self._drafts())
        if not drafts and not self.findings.failed:
            self._report_no_watches()
        return [(draft, list(parts(draft))) for draft in drafts]

    def built(
        self, parsed: Iterable[tuple[Draft, list[RulePart]]], crds: tuple[CustomResourceDefinition, ...] = ()
    ) -> Loaded:
        """Raises ProjectErrors if there are mistakes."""
        found = self.findings.sorted()
        if self.findings.failed:
            raise ProjectErrors(found)
        watches = tuple(
            Watch(
                self._with_digests(build_rule(draft, draft_parts, self.reading.library), draft),
                draft,
                tuple(draft_parts),
            )
            for draft, draft_parts in parsed
        )
        project = Project(
            self.files.root,
            tuple(watch.rule for watch in watches),
            crds,
            self.reading.library.texts,
            self._digest(),
            digest_of_files(self.files.texts),
            self.files.texts,
            bool(self.constants.environment.read),
            found,
        )
        return Loaded(
            project, watches, self.files.texts, self.reading.library, self.allow, self.constants.environment.defaults
        )

    def _with_digests(self, rule: Rule, draft: Draft) -> Rule:
        found = digest(rule, self.reading.library.texts)
        if not draft.from_environment:
            return replace(rule, digest=found, revision=found)
        public = digest(replace(rule, vars=draft.public_vars), self.reading.library.texts)
        return replace(rule, digest=found, revision=public)

    def _report_no_watches(self) -> None:
        documents, _ = read_yaml(self.files.texts[WATCHES], WATCHES)
        key_sites = documents[0].value if documents else None
        if isinstance(key_sites, dict) and "watches" in key_sites and "include" not in key_sites:
            # Explicit: this is how an operator releases all its CRs before it is uninstalled.
            message = "the project has no watches: no custom resources are managed"
            self.findings.warning("missing-key", message, key_sites["watches"].site)
        else:
            # Probably the files are just being written.
            message = "the project has no watches; write `watches: []` if that is intended"
            self.findings.mistake("missing-key", message, Site(WATCHES))

    def _drafts(self) -> Iterator[Draft]:
        """The watches in order: those of watches.yaml first, then those of each included file."""
        top = self._file(WATCHES)
        if top is None:
            return
        self.allow.update({entry.name: entry.value.text for entry in top.allow if entry.value is not None})
        outer = Shared().within(top, self.constants)
        tables = [(watch, outer) for watch in top.watches]
        for path in included(top.include, self.files.texts, self.findings):
            inner = self._file(path)
            if inner is None:
                continue
            if inner.include:
                message = "only watches.yaml may include files: name them there"
                self.findings.mistake("conflict", message, inner.key_sites["include"])
            if inner.allow:
                message = "only watches.yaml may allow checks: move this there, or write comments"
                self.findings.mistake("conflict", message, inner.key_sites["allow"])
            if not inner.watches and "watches" not in inner.key_sites:
                self.findings.mistake("missing-key", "the file has no watches", Site(path))
            shared = outer.within(inner, self.constants)
            tables += [(watch, shared) for watch in inner.watches]
        for watch, shared in tables:
            if (found := join(watch, shared, self.constants)) is not None:
                yield found

    def _file(self, path: str) -> FileTable | None:
        if path not in self.files.texts:
            self.findings.mistake("missing-file", "no such file: it contains the rules of a project", Site(path))
            return None
        documents, mistakes = read_yaml(self.files.texts[path], path)
        self.findings.take(mistakes, "yaml")
        if len(documents) > 1:
            message = "a second document: a file of watches is one list or one mapping"
            self.findings.mistake("wrong-type", message, documents[1].site)
        if not documents:
            if not mistakes:
                self.findings.mistake("missing-key", "the file has no watches", Site(path))
            return None
        return read_file(documents[0], self.reading)

    def _digest(self) -> str:
        """The digest of every file and every variable that was read."""
        read = self.constants.environment.read
        return digest_of(
            [*sorted(self.files.texts.items()), *sorted((f"${name}", value) for name, value in read.items())]
        )


def included(words: Iterable[Word], files: Iterable[str], findings: Findings) -> Iterator[str]:
    """The included files in the order of the patterns, each once, without watches.yaml itself."""
    known = sorted(set(files) - {WATCHES})
    taken: set[str] = set()
    for word in words:
        if not is_inside(word.text):
            message = f'"{word.text}" is outside of the project: included files must be inside'
            findings.mistake("missing-file", message, word.site)
            continue
        pattern = normalise_pattern(word.text)
        found = [path for path in known if matches(path, pattern)]
        if pattern == WATCHES:
            findings.mistake("conflict", f"{WATCHES} cannot include itself: remove it from the list", word.site)
        elif not found and has_wildcards(pattern):
            findings.warning("missing-file", f'no file matches "{word.text}"', word.site)
        elif not found:
            others = [path for path in known if not path.startswith(("templates/", "crds/"))]
            message = f'the file "{word.text}" does not exist{did_you_mean_quoted(word.text, others)}'
            findings.mistake("missing-file", message, word.site)
        yield from (path for path in found if path not in taken)
        taken.update(found)
