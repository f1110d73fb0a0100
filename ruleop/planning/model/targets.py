"""The objects that an `observe` refers to, for one custom resource. A pass reads them, and their events trigger a
reconcile. Both use this module: otherwise a resource could read an object whose changes do not reconcile it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ruleop.errors import RenderError
from ruleop.kubernetes.kinds import GroupKind, ObjectKey
from ruleop.kubernetes.labels import Requirement, meets
from ruleop.kubernetes.names import KEY_IN_WORDS, VALUE_IN_WORDS, is_label_key, is_label_value
from ruleop.language.templates import loop_items
from ruleop.messages import shortened
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruleop.errors import Site
    from ruleop.language.rules import Observe, Selector
    from ruleop.language.templates import Expression, Tree


# -- selectors ---------------------------------------------------------------------------------------------------------
#
# Evaluates label selectors.
#
# A custom resource may give values of a selector, or a whole one. Whatever it gives, the constant part of the selector
# has to match as well. An invalid selector, and an empty one, which would select all objects of the kind, are errors.


Matcher = Callable[[Mapping[str, str]], bool]

MAX_TERMS: Final = 50  # labels and requirements of a selector: each object is compared with all of them
MAX_VALUES: Final = 500  # of all requirements that a custom resource gives

_KEYS: Final = frozenset({"matchLabels", "matchExpressions"})
_FORM: Final = "a selector is a mapping of labels, or has matchLabels and matchExpressions"
_COMPARING: Final = frozenset({"In", "NotIn"})
_OPERATORS: Final = _COMPARING | {"Exists", "DoesNotExist"}


class Terms(NamedTuple):
    """The labels with one value each, and the requirements, that a selector compares."""

    labels: tuple[tuple[str, str], ...]
    requirements: tuple[Requirement, ...]

    def match(self, found: Mapping[str, str]) -> bool:
        return all(found.get(key) == value for key, value in self.labels) and meets(found, self.requirements)


def compile_selector(selector: Selector, names: Mapping[str, Any]) -> Matcher:
    """A function that tests labels against the selector, whose strings are evaluated once."""
    return terms_of(selector, names).match


def terms_of(selector: Selector, names: Mapping[str, Any]) -> Terms:
    """The terms of a selector. Raises RenderError."""
    labels = [(key, _value(key, each.string(names), each.site)) for key, each in selector.match_labels.items()]
    requirements: list[Requirement] = [
        (each.key, each.operator, frozenset(_value(each.key, value.string(names), value.site) for value in each.values))
        for each in selector.match_expressions
    ]
    if (given := selector.given) is not None:
        found = _given(given, names)
        labels += found.labels
        requirements += found.requirements
        if not (labels or requirements):
            raise RenderError("the selector is empty, and would match all objects of the kind", given.site)
    return Terms(tuple(labels), tuple(requirements))


def _given(given: Tree, names: Mapping[str, Any]) -> Terms:
    """The terms that a template renders to, in the forms in which a selector can be written."""
    found, site = given.evaluate(names), given.site
    if not isinstance(found, dict):
        raise RenderError(_FORM, site)
    if _KEYS.isdisjoint(found) and not any(isinstance(each, (dict, list)) for each in found.values()):
        found = {"matchLabels": found}
    labels, requirements = found.get("matchLabels") or {}, found.get("matchExpressions") or []
    if not (found.keys() <= _KEYS and isinstance(labels, dict) and isinstance(requirements, list)):
        raise RenderError(_FORM, site)
    if len(labels) + len(requirements) > MAX_TERMS:
        raise RenderError(f"the selector has more than {MAX_TERMS} labels and requirements", site)
    terms = Terms(
        tuple((_key(key, site), _value(key, value, site)) for key, value in labels.items()),
        tuple(_requirement(each, site) for each in requirements),
    )
    values = sum(len(each) for _, _, each in terms.requirements)
    if values > MAX_VALUES:
        raise RenderError(f"the requirements of the selector have more than {MAX_VALUES} values", site)
    return terms


def _requirement(found: Any, site: Site) -> Requirement:
    if not isinstance(found, dict) or not found.keys() <= {"key", "operator", "values"}:
        raise RenderError("a requirement of a selector has key, operator and values", site)
    key, operator = _key(found.get("key"), site), found.get("operator")
    if not isinstance(operator, str) or operator not in _OPERATORS:
        raise RenderError(f"the operator of a requirement is {', '.join(sorted(_OPERATORS))}", site)
    values = found.get("values") or []
    if not isinstance(values, list) or bool(values) is not (operator in _COMPARING):
        needed = "needs a list of values" if operator in _COMPARING else "must not have values"
        raise RenderError(f"a requirement with the operator {operator} {needed}", site)
    return key, operator, frozenset(_values(key, values, site))


def _values(key: str, values: list[Any], site: Site) -> Iterator[str]:
    for each in values:
        yield _value(key, each, site)


def _key(key: Any, site: Site) -> str:
    if isinstance(key, str) and is_label_key(key):
        return key
    raise _invalid("the key of a label", shortened(str(key), 80), KEY_IN_WORDS, site)


def _value(key: str, value: Any, site: Site) -> str:
    if isinstance(value, str) and is_label_value(value):
        return value
    what = f"the value of the label {shortened(key, 80)}"
    if not isinstance(value, str):
        message = "must be text: put it in quotes, or use `| string`"
        raise RenderError(f"{what} {message}", site, redacted=f"the value of a label {message}")
    raise _invalid(what, shortened(value, 80), VALUE_IN_WORDS, site)


def _invalid(what: str, found: str, form: str, site: Site) -> RenderError:
    """A message that quotes what a custom resource gives, which may come from a Secret."""
    return RenderError(
        f"{what} in a selector, {found!r}, is not valid: use {form}",
        site,
        redacted=(f"a key or a value of a label in a selector is not valid: use {form}"),
    )


# -- targets -----------------------------------------------------------------------------------------------------------


MAX_OWNED = 1000  # objects of an `ownedBy`, and owners in between
MAX_OBSERVED = 500  # items of `forEach` in an `observe`


@dataclass(frozen=True, slots=True)
class Target:
    """One object by name, or the objects of a kind by labels or by the uid of an owner."""

    kind: GroupKind
    namespace: str | None  # '' of a cluster-scoped object; None: all
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    owner: str = ""

    @property
    def key(self) -> ObjectKey | None:
        """The key of the object; None for a target by labels or owner."""
        return (
            None if self.name is None else ObjectKey(self.kind.group, self.kind.kind, self.namespace or "", self.name)
        )

    def matches(self, found: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(found.get(key) == value for key, value in self.labels) and meets(found, self.requirements)


def resolve_targets(observe: Observe, names: Mapping[str, Any], *, namespaced: bool, home: str) -> list[Target]:
    """The targets of an `observe`: one, or one for each item. Raises RenderError. `home`: the custom resource's
    namespace, which is used if the rule's namespace is missing or empty."""
    kind = observe.kind.versionless
    scopes = [names] if observe.for_each is None else _names_of_items(observe, observe.for_each, names)
    found = []
    for inner in scopes:
        namespace = ""
        if namespaced and not observe.all_namespaces:
            namespace = (observe.namespace.string(inner) if observe.namespace is not None else "") or home
            if not namespace:
                message = f"{observe.title} needs a namespace because its CR is cluster-scoped: set `namespace`"
                raise RenderError(message, observe.site)
        if observe.name is not None:
            found.append(Target(kind, namespace, observe.name.string(inner)))
            continue
        assert observe.selector is not None
        found.append(Target(kind, namespace or None, None, *terms_of(observe.selector, inner)))
    return found


def _names_of_items(observe: Observe, for_each: Expression, names: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    what, items = observe.title, loop_items(for_each.value(names))
    if items is None:
        raise RenderError(f"{what} needs a list or a mapping in forEach", for_each.site)
    for index, (_, item) in enumerate(items):
        if index == MAX_OBSERVED:
            raise RenderError(f"{what} has more than {MAX_OBSERVED} items in forEach", for_each.site)
        yield {**names, observe.item_name: item, "index": index}
