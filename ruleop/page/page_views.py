"""One function for each page: from a URL to HTML.

Everything is escaped by Jinja, a name that a template misspells is an error, and characters that would change what a
reader sees are printed as escapes. The only markup that is not of the templates is the graph, which escapes its texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ruleop.messages import shortened
from ruleop.page.source import STATES, Filter, resource_url
from ruleop.printable import json_document, printable_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ruleop.authoring.report.views import LastWrite, ObjectView
    from ruleop.kubernetes.kinds import ObjectKey
    from ruleop.page.source import Source

HERE: Final = Path(__file__).parent
MAX_DOCUMENT: Final = 20_000  # characters of an object of the plan
MAX_QUERY: Final = 2000  # characters of a value in a URL


@dataclass(frozen=True, slots=True)
class Page:
    """The content of one URL. `about`: the custom resource whose changes alone change it; None: any change does."""

    title: str
    template: str
    data: Mapping[str, Any]
    about: ObjectKey | None = None
    label: str = ""  # of its children


def problem(status: int, message: str) -> Page:
    return Page(str(status), "problem.html", {"status": status, "message": message})


async def kinds(source: Source, _query: Mapping[str, str]) -> Page:
    return Page("Kinds", "kinds.html", {"kinds": await source.kinds()})


async def resources(source: Source, query: Mapping[str, str]) -> Page:
    page = query.get("page", "")
    number = int(page) if page.isascii() and page.isdecimal() and len(page) < 7 else 1
    texts = {name: query.get(name, "")[:MAX_QUERY] for name in ("kind", "namespace", "reason", "state", "text")}
    return Page("Custom resources", "resources.html", await source.resources(Filter(**texts, page=number)))


async def resource(source: Source, query: Mapping[str, str]) -> Page:
    title, namespace, name = (query.get(each, "")[:MAX_QUERY] for each in ("kind", "namespace", "name"))
    found = await source.resource(title, namespace, name, query.get("node", "")[:MAX_QUERY])
    data = {**found, "graph": Markup(found["graph"]), "node_url": _node_url(found["key"])}  # noqa: S704 - see above
    return Page(f"{found['key'].kind} {name}", "resource.html", data, found["key"], found["label"])


async def rollouts(source: Source, _query: Mapping[str, str]) -> Page:
    return Page("Rollouts", "rollouts.html", {"rollouts": await source.rollouts()})


async def operator(source: Source, _query: Mapping[str, str]) -> Page:
    return Page("Operator", "operator.html", source.operator())


PAGES: Final[Mapping[str, Callable[[Source, Mapping[str, str]], Awaitable[Page]]]] = {
    "/": kinds,
    "/resources": resources,
    "/resource": resource,
    "/rollouts": rollouts,
    "/operator": operator,
}


def _node_url(key: ObjectKey) -> Callable[[str], str]:
    return lambda child: resource_url(key, node=child) + "#node"


def _shown(value: Any) -> Any:
    """A value as it is printed: markup as it is, text without characters that hide or reorder what follows."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable_lines(value)


def _document(value: Any) -> str:
    return shortened(json_document(value).strip(), MAX_DOCUMENT)


def _writes(found: ObjectView) -> list[LastWrite]:
    """The last write of each client that owns fields of an object, the latest first."""
    writes = [*(one for each in found.fields for one in each.managers), *filter(None, [found.last_change])]
    writes.sort(key=lambda each: each.time)
    latest = {(each.manager, each.operation): each for each in writes}
    return sorted(latest.values(), key=lambda each: each.time, reverse=True)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["document"] = _document
    made.filters["writes"] = _writes
    made.globals["states"] = STATES
    return made


class Templates:
    def __init__(self, name: str) -> None:
        """`name` of the operator."""
        self._environment, self._name = _environment(), name

    def fragment(self, page: Page) -> str:
        """The part of the page that changes."""
        return self._environment.get_template(page.template).render(page.data)

    def whole(self, page: Page, url: str) -> str:
        """`url` of the page, from which its changes come."""
        names = {"title": page.title, "operator": self._name, "url": url, "path": url.partition("?")[0]}
        body = Markup(self.fragment(page))  # noqa: S704 - a template's
        return self._environment.get_template("layout.html").render(**names, body=body)
