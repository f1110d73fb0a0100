"""Names of an application: the name that its objects share, and those of its parts.

The shared name becomes the custom resource's: with objects `blog`, `blog-db` and `redis`, a custom resource `blog` has
children `blog`, `blog-db` and `blog-redis`, and one named `news` has `news`, `news-db` and `news-redis`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ruleop.authoring.scaffold.naming import camel, free_id, kebab, words
from ruleop.authoring.scaffold.yaml_layout import WrittenExpr, WrittenText, value_at
from ruleop.kubernetes.names import MAX_LABEL, MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ruleop.authoring.scaffold.manifests.cleaning import Manifest

INSTANCE: Final = "app.kubernetes.io/instance"
NAME: Final = WrittenExpr("metadata.name")
_GENERATED_SUFFIX: Final = 11
_LONGEST: Final = {
    **dict.fromkeys(("Service", "Deployment", "DaemonSet", "ReplicaSet", "Job"), MAX_LABEL),
    # Labels of their pods, and names of their Jobs, have eleven characters more.
    **dict.fromkeys(("StatefulSet", "CronJob"), MAX_LABEL - _GENERATED_SUFFIX),
}

_SHORT: Final = {"Deployment": ["deploy"], "Service": ["svc"], "StatefulSet": ["sts"], "PersistentVolumeClaim": ["pvc"]}


@dataclass(frozen=True, slots=True)
class SharedName:
    """The name that is replaced by that of the custom resource."""

    text: str

    def rest(self, name: str) -> str:
        """The part of a name besides the shared one: `db` of `blog-db`; the whole name where it does not have it."""
        if name == self.text:
            return ""
        return name.removeprefix(f"{self.text}-")

    def has(self, name: str) -> bool:
        return name == self.text or name.startswith(f"{self.text}-")

    def template(self, name: str) -> WrittenExpr | WrittenText:
        """The name of the child."""
        rest = self.rest(name)
        return WrittenText((NAME, f"-{rest}")) if rest else NAME

    def rendered(self, name: str, resource: str) -> str:
        """The name of the child of a custom resource."""
        rest = self.rest(name)
        return f"{resource}-{rest}" if rest else resource


def shared_name(manifests: Sequence[Manifest], fallback: str) -> SharedName:
    """The longest beginning, up to a dash, of the names of more than half of the objects; or else the fallback. A
    label for the instance decides where names begin with it."""
    for manifest in manifests:
        name = SharedName(str(value_at(manifest.body, ("metadata", "labels", INSTANCE))))
        if 2 * sum(name.has(each.name) for each in manifests) > len(manifests):
            return name
    counts: Counter[str] = Counter()
    for manifest in manifests:
        parts = manifest.name.split("-")
        counts.update("-".join(parts[:length]) for length in range(1, len(parts) + 1))
    frequent = [name for name, count in counts.items() if 2 * count > len(manifests)]
    best = max(frequent, key=lambda name: (counts[name], len(name)), default="")
    return SharedName(best or kebab(fallback))


def group(manifest: Manifest, shared: SharedName) -> tuple[str, ...]:
    """The mapping of the spec for the fields of an object: by what its name adds to the shared one, unless that is its
    kind."""
    rest, kind = shared.rest(manifest.name), manifest.kind.kind
    return () if not rest or words(rest) in (words(kind), [kind.lower()], _SHORT.get(kind)) else (camel(rest),)


def longest_name(manifests: Sequence[Manifest], shared: SharedName) -> int:
    """The maximum length of a custom resource's name with which all names and labels made of it are valid."""
    limits = [MAX_LABEL]
    for manifest in manifests:
        suffix = len(shared.rendered(manifest.name, ""))
        limits.append(_LONGEST.get(manifest.kind.kind, MAX_NAME) - suffix)
        limits.append(MAX_LABEL - suffix if shared.has(manifest.name) else MAX_LABEL)
    return max(1, min(limits))


def ids(manifests: Sequence[Manifest], shared: SharedName) -> dict[str, str]:
    """An id for each object: its kind, and what its name adds where there are several of a kind."""
    kinds = Counter(manifest.kind.kind for manifest in manifests)
    found: dict[str, str] = {}
    for manifest in manifests:
        kind = manifest.kind.kind
        name = camel(kind) if kinds[kind] == 1 else camel(shared.rest(manifest.name), kind)
        found[str(manifest)] = free_id(name, found.values())
    return found
