"""A new project from several renderings of one chart, and the values of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ruleop.authoring.scaffold.from_sample import check_kind
from ruleop.authoring.scaffold.manifests.application import Application, is_observed
from ruleop.authoring.scaffold.manifests.application_names import shared_name
from ruleop.authoring.scaffold.manifests.chart_values import MISSING, merged
from ruleop.authoring.scaffold.manifests.cleaning import Manifest, clean
from ruleop.authoring.scaffold.manifests.extraction import extract, origins_of, without_credentials
from ruleop.authoring.scaffold.manifests.lifting import Lifted
from ruleop.authoring.scaffold.manifests.object_references import references
from ruleop.authoring.scaffold.manifests.renderings import Comparison
from ruleop.authoring.scaffold.manifests.text_alignment import with_checksums
from ruleop.authoring.scaffold.naming import kebab, pascal, words
from ruleop.authoring.scaffold.unusable_input import ScaffoldError
from ruleop.core.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ruleop.authoring.offline.documents import Document
    from ruleop.authoring.scaffold.manifests.application import Asked
    from ruleop.authoring.scaffold.manifests.application_names import SharedName
    from ruleop.authoring.scaffold.new_project import NewChild, NewProject


@dataclass(frozen=True, slots=True)
class Rendering:
    """The objects that `helm template` printed, and the values that it was given. `name` is that of their file."""

    documents: Sequence[Document]
    values: Mapping[str, Any]
    name: str

    @property
    def objects(self) -> list[Mapping[str, Any]]:
        return [each.data for each in self.documents]


def compared_project(renderings: Sequence[Rendering], asked: Asked) -> NewProject:
    """The project whose custom resources make what each rendering has. The values of the later ones are over those of
    the first, which are the defaults."""
    found: list[list[Manifest]] = []
    moved: list[tuple[str, str]] = []
    all_notes: list[str] = []
    cleaned = [clean(each.objects, each.documents) for each in renderings]
    own = [each for manifests, _ in cleaned for each in manifests if not is_observed(each)]
    first = cleaned[0][0]
    shared = shared_name(own or first, first[0].namespace or asked.folder)
    values = []
    for rendering, (manifests, notes) in zip(renderings, cleaned, strict=True):
        more = rendering.values if rendering is not renderings[0] else {}
        origins = origins_of(manifests, rendering.objects)
        values.append(without_credentials(merged(renderings[0].values, more), origins))
        extracted = extract(manifests, rendering.objects, f"{shared.text}-credentials")
        found.append(extracted.manifests)
        moved += extracted.moved
        all_notes += notes
    kind = Kind(asked.group, asked.version, asked.kind or pascal(shared.text))
    check_kind(kind)
    compared = _Compared(found, shared=shared, kind=kind, notes=all_notes, values=values)
    return compared.project(renderings, moved)


class _Compared:
    def __init__(
        self,
        found: list[list[Manifest]],
        *,
        shared: SharedName,
        kind: Kind,
        notes: list[str],
        values: list[dict[str, Any]],
    ) -> None:
        self.found = [{str(each): each for each in manifests} for manifests in found]
        everything: dict[str, Manifest] = {}
        for manifests in self.found:
            for name, each in manifests.items():
                everything[name] = _with_keys(everything[name], each) if name in everything else each
        if not set(self.found[0]).intersection(*self.found[1:]):
            raise ScaffoldError("the renderings have no object in common: render each under the same release name")
        conditional = {name for name in everything if not all(name in each for each in self.found)}
        self.comparison = Comparison(values)
        shared = replace(shared, given=self._given(shared))
        self.applications = [
            Application(
                [manifests.get(name, each) for name, each in everything.items()],
                shared,
                kind,
                list(notes) if not number else [],
                conditional=conditional,
                missing={name for name in everything if name not in manifests},
                of_helm=True,
            )
            for number, manifests in enumerate(self.found)
        ]

    def _given(self, shared: SharedName) -> dict[str, str]:
        """The values that are names of objects, where a chart lets them be chosen."""
        found: dict[str, str] = {}
        for number, manifests in enumerate(self.found):
            for manifest in manifests.values():
                code = "" if shared.has(manifest.name) else self.comparison.name(manifest.name, number, str(manifest))
                if code:
                    found[manifest.name] = code
        return found

    def project(self, renderings: Sequence[Rendering], moved: list[tuple[str, str]]) -> NewProject:
        first, *_ = applications = self.applications
        children = [each.templates(Lifted(), None) for each in applications]
        names = _names(first.name, renderings)
        made = [self._child([each[number] for each in children], number, names) for number in range(len(children[0]))]
        lifted = Lifted()
        _fill(lifted, self.comparison)
        first.names = first.secret_names(lifted)
        values = {*self.comparison.spec(0)}
        secrets = {name: each for name, each in lifted.spec.items() if name not in values}
        project = first.assembled(lifted, made)
        samples = [first.sample(name, {**self.comparison.spec(number), **secrets}) for number, name in enumerate(names)]
        notes = dict.fromkeys(each for application in applications for each in application.notes)
        invented = [
            f"spec.{name} was made for a difference that no value explains." for (name,) in self.comparison.invented
        ]
        lifted_rows = [*self.comparison.shown, *lifted.shown]
        return replace(
            project,
            samples=tuple(samples),
            notes=(*notes, *project.notes[len(first.notes) :], *invented, *dict.fromkeys(self.comparison.doubts)),
            lifted=tuple(sorted(lifted_rows, key=lambda each: [row[0] for row in lifted_rows].index(each[0]))),
            credentials=tuple(dict.fromkeys(moved)),
        )

    def _child(self, children: list[NewChild], number: int, names: Sequence[str]) -> NewChild:
        manifests = [application.children[number] for application in self.applications]
        title = str(manifests[0])
        rest = self.applications[0].shared.rest(manifests[0].name)
        bodies = [
            child.template if title in found else MISSING for child, found in zip(children, self.found, strict=True)
        ]
        template, condition = self.comparison.child(title, bodies, (rest, *words(manifests[0].kind.kind)))
        template = with_checksums(template, self._files_of(manifests[0]))
        settings = {"when": condition} if condition else {}
        return replace(
            children[0],
            template=template,
            settings={**children[0].settings, **settings},
            missing_in=frozenset(name for name, found in zip(names, self.found, strict=True) if title not in found),
        )

    def _files_of(self, manifest: Manifest) -> list[str]:
        """The ids of the ConfigMaps and Secrets that an object refers to, which each custom resource has."""
        first = self.applications[0]
        names = dict.fromkeys(f"{each.kind}/{each.name}" for each in references(manifest.body))
        own = {str(each) for each in first.children} - set(first.conditional)
        return [first.ids[each] for each in names if each in own and each.partition("/")[0] in ("ConfigMap", "Secret")]


def _with_keys(known: Manifest, other: Manifest) -> Manifest:
    """A Secret with the keys that it has in any rendering; the first one of any other object."""
    if known.kind.kind != "Secret":
        return known
    members: dict[str, Any] = {
        name: {**(other.body.get(name) or {}), **(known.body.get(name) or {})}
        for name in ("data", "stringData")
        if name in known.body or name in other.body
    }
    return replace(known, body={**known.body, **members})


def _fill(lifted: Lifted, comparison: Comparison) -> None:
    sample = comparison.spec(0)
    for path, schema in comparison.schemas():
        inside = sample
        for name in path[:-1]:
            inside = inside[name]
        lifted.add(path, inside[path[-1]], schema, required=False)


def _names(name: str, renderings: Sequence[Rendering]) -> list[str]:
    """The names of the samples: the application's, and for another rendering with that of its values file."""
    found = [name]
    for number, each in enumerate(renderings[1:], 2):
        wished = f"{name}-{kebab(each.name)}"
        found.append(wished if wished not in found else f"{wished}-{number}")
    return found
