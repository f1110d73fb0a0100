"""The examples of a documentation page: files and commands in code blocks, each marked by an HTML comment on the line
before it.

<!-- example NAME: PATH -->             the block is the file PATH of the project NAME
<!-- example NAME: watch -->            the block holds the keys of one watch of Site.example.com, version v1;
                                        watches.yaml is made of it
<!-- example NAME: run -->              the block is a terminal: each line `$ ruleop ...` is run in the project, and
                                        what follows is its output
<!-- example NAME from OTHER: ... -->   NAME begins as a copy of OTHER at this point
<!-- example NAME from OTHER of PAGE: ... -->   the same, where OTHER is of a page in the same folder
<!-- live NAME cr.yaml PATH: {"Kind/name": {...}, ...} -->   (without a block) writes to PATH what the project would
                                        create for cr.yaml, as a cluster has it, with what is given here laid over it;
                                        null removes an object; what is not made is added
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from ruleop.cli.program import program
from tests.definitions import ANYTHING, crd, fields, version
from tests.folders import write_files

_MARK = re.compile(
    r"<!-- (?P<what>example|live) (?P<name>[a-z-]+)(?: from (?P<other>[a-z-]+)(?: of (?P<page>[a-z.-]+))?)?(?P<rest>.*?) -->\s*$"
)
WATCH = "group: example.com\nversion: v1\nkind: Site\n"


@dataclass
class Step:
    line: int
    what: str  # file, run or live
    path: str = ""
    text: str = ""


@dataclass
class Example:
    name: str
    steps: list[Step] = field(default_factory=list)

    @property
    def files(self) -> dict[str, str]:
        return {step.path: step.text for step in self.steps if step.what == "file"}


def examples(page: Path) -> dict[str, Example]:
    found: dict[str, Example] = {}
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        mark = _MARK.match(line.strip())
        if mark is None:
            continue
        name, other, rest = mark["name"], mark["other"], mark["rest"].strip()
        example = found.get(name)
        if example is None:
            origin = examples(page.with_name(mark["page"])) if mark["page"] else found
            example = found[name] = Example(
                name, [step for step in origin[other].steps if step.what == "file"] if other else []
            )
        if mark["what"] == "live":
            cr, _, rest = rest.partition(" ")
            path, _, over = rest.partition(": ")
            example.steps.append(
                Step(number + 1, "live", path, json.dumps({"cr": cr, "over": json.loads(over or "{}")}))
            )
            continue
        path = rest.removeprefix(": ")
        if path == "run":
            example.steps.append(Step(number + 2, "run", text=_block(lines, number + 1)))
        elif path == "watch":
            body = "".join(
                f"  {each}\n" if each else "\n" for each in (WATCH + _block(lines, number + 1)).rstrip("\n").split("\n")
            )
            example.steps.append(Step(number + 2, "file", "watches.yaml", "- " + body[2:]))
        else:
            example.steps.append(Step(number + 2, "file", path, _block(lines, number + 1)))
    return found


def _block(lines: list[str], number: int) -> str:
    fence = re.match(r"(`{3,})\w*", lines[number])
    assert fence, f"line {number + 1}: a code block is expected after the mark of an example"
    end = lines.index(fence[1], number + 1)
    return "".join(f"{line}\n" for line in lines[number + 1 : end])


def blocks(page: Path) -> dict[int, str]:
    """All code blocks of a page, by line, and the line before each."""
    lines = page.read_text(encoding="utf-8").split("\n")
    fences = [number for number, line in enumerate(lines) if line.startswith("```")]
    return {number + 1: lines[number - 1] for number in fences[::2]}


def write(root: Path, step: Step) -> None:
    write_files(root, {step.path: step.text})


def define(root: Path) -> None:
    """A CRD of each watched kind that allows all fields, if the example has none."""
    for watch in _watches(root):
        kind, group = watch["kind"], watch.get("group", "")
        file = root / "crds" / f"{kind.lower()}.yaml"
        if "." not in group or "schema" in watch or file.exists():
            continue
        schema = fields(spec=ANYTHING, status=ANYTHING)
        stored = version(watch["version"], schema, subresources={"status": {}})
        made = crd(kind, group, stored, scope="Cluster" if kind == "Tenant" else "Namespaced")
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(made), encoding="utf-8")


def _watches(root: Path) -> Iterator[Any]:
    for file in [root / "watches.yaml", *root.glob("rules/*.yaml")]:
        found = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        yield from found if isinstance(found, list) else found.get("watches", [])


def make_live(root: Path, step: Step) -> None:
    data = json.loads(step.text)
    plan = json.loads(ruleop(root, ["plan", "-f", data["cr"], "-o", "json"]))["plans"][0]
    objects = {
        f"{action['object']['kind']}/{action['object']['metadata']['name']}": action["object"]
        for action in plan["actions"]
        if "object" in action
    }
    for name, over in data["over"].items():
        if over is None:
            del objects[name]
        else:
            objects[name] = _laid_over(objects.get(name, {}), over)
    (root / step.path).write_text("\n---\n".join(map(json.dumps, objects.values())), encoding="utf-8")


def _laid_over(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
    return above


def transcript(root: Path, text: str) -> str:
    """The terminal as it would be now."""
    commands = [line for line in text.split("\n") if line.startswith("$ ruleop ")]
    return "".join(f"{command}\n{ruleop(root, command.removeprefix('$ ruleop ').split())}" for command in commands)


def ruleop(root: Path, arguments: list[str]) -> str:
    result = CliRunner().invoke(program, arguments, prog_name="ruleop")
    assert isinstance(result.exception, SystemExit | None), result.output
    assert "bug of ruleop" not in result.output
    return re.sub(r" in \d+\.\d\ds$", " in 0.02s", result.output, flags=re.MULTILINE)
