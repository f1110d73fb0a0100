"""The walk of a template's name through the loading of rules: the functions that take it, by module, as a picture.

A project of one child is loaded, and each call is noted that has the name among its arguments. Run as a program, it
prints the functions in the order of their first call.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from ruleop.authoring.generate.graph import Edge, GraphNode, RuleGraph, svg
from ruleop.language.rules.checking import build_with_sources

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

NAME: Final = "service.yaml.j2"
FILES: Final = {
    "watches.yaml": f"""\
- group: example.com
  version: v1
  kind: App
  schema: {{spec: {{port: integer}}}}
  children:
    web: {{template: {NAME}}}
""",
    f"templates/{NAME}": """\
apiVersion: v1
kind: Service
metadata: {name: "{{ metadata.name }}"}
spec: {ports: [{port: {{ spec.port }} }]}
""",
}
MOST_LINES: Final = 7

Function = tuple[str, str]
"""A module and the qualified name of a function in it."""


def calls() -> list[tuple[Function, Function]]:
    """Who gives the name to whom, in the order of the calls; each pair once."""
    found: dict[tuple[Function, Function], None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _is_named(frame) and _takes_the_name(frame):
            caller = frame.f_back
            while caller is not None and not _is_named(caller):
                caller = caller.f_back
            found[_function(caller) if caller is not None else ("", ""), _function(frame)] = None

    build_with_sources(FILES, root="/nowhere", environ={})  # caches that are made once are none of it
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        build_with_sources(FILES, root="/nowhere", environ={})
    finally:
        sys.setprofile(before)
    return list(found)


def _is_named(frame: FrameType) -> bool:
    """Whether it is a function with a name, of ruleop."""
    return frame.f_globals.get("__name__", "").startswith("ruleop.") and "<" not in frame.f_code.co_name


def _function(frame: FrameType) -> Function:
    return frame.f_globals["__name__"], frame.f_code.co_qualname.replace("__create_fn__.<locals>.", "")


def _takes_the_name(frame: FrameType) -> bool:
    code = frame.f_code
    given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    return any(each == NAME or (isinstance(each, list | tuple | set | frozenset) and NAME in each) for each in given)


def graph() -> RuleGraph:
    """A node for each module with its functions, an edge for each module that gives the name to another."""
    functions: dict[str, dict[str, None]] = {}
    edges: dict[tuple[str, str], None] = {}
    for (caller, _), (module, function) in calls():
        functions.setdefault(module, {})[function] = None
        if caller in functions and caller != module and (module, caller) not in edges:
            edges[caller, module] = None
    nodes = (GraphNode(module, "child", tuple(_lines(module, names))) for module, names in functions.items())
    return RuleGraph(tuple(nodes), tuple(Edge(one, other, "creates") for one, other in edges))


def _lines(module: str, names: Iterable[str]) -> list[str]:
    room, _, file = module.removeprefix("ruleop.").rpartition(".")
    shown = [name for name in names if name != "__init__"]
    more = [f"and {len(shown) - MOST_LINES} more"] if len(shown) > MOST_LINES else []
    return [f"{file}.py", room.removeprefix("core."), *shown[:MOST_LINES], *more]


def picture() -> str:
    return svg([graph()])


if __name__ == "__main__":
    for _, (module, function) in calls():
        sys.stdout.write(f"{module}: {function}\n")
