"""How many random mutations of the examples' templates `ruleop check` and the examples' own tests find.

    make mutations        or        python -m bench.mutations --count 200 --seed 1

A mutation is a small edit of one line: a line less, another number or word, another field, a condition the other way
round. One that changes nothing that is rendered for any of many custom resources (the samples, and variants of them by
the CRD's schema) is not counted. The survivors are printed.
"""

from __future__ import annotations

import argparse
import copy
import random
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from ruleop.authoring.checking import check_project
from ruleop.authoring.offline import prepare
from ruleop.authoring.ruletests.case_cluster import CaseKinds
from ruleop.authoring.ruletests.cases import Case, find_files, parse_file
from ruleop.authoring.ruletests.plan_mode import Admission, PlanMode
from ruleop.authoring.ruletests.runner import Projects, Runner, Snapshots
from ruleop.errors import RuleopError
from ruleop.kubernetes.kinds import Kind
from ruleop.language.rules import Project, ProjectErrors
from ruleop.language.rules.checking import load_project, load_with_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = ("", "crontab", "memcached-v1", "myapp", "postgres", "wordpress")
VARIANTS: Final = 12  # of each sample
GOAL: Final = 0.95


# -- mutations ---------------------------------------------------------------------------------------------------------


def without(_line: str, _rng: random.Random) -> str | None:
    return None


def other_number(line: str, rng: random.Random) -> str | None:
    found = [*re.finditer(r"(?<![\w.])\d+(?![\w.])", line)]
    if not found:
        return line
    at = rng.choice(found)
    return f"{line[: at.start()]}{int(at[0]) + rng.choice([1, 10])}{line[at.end() :]}"


def other_word(line: str, rng: random.Random) -> str | None:
    """A word of plain text changes."""
    found = list(re.finditer(r"[A-Za-z][\w-]+", re.sub(r"\{[{%].*?[%}]\}", lambda m: " " * len(m[0]), line)))
    if not found:
        return line
    at = rng.choice(found)
    return f"{line[: at.start()]}{at[0]}x{line[at.end() :]}"


def other_field(line: str, rng: random.Random) -> str | None:
    """A field that an expression reads changes."""
    found = [*re.finditer(r"\b(spec|metadata|vars)\.(\w+)", line)]
    if not found:
        return line
    at = rng.choice(found)
    return f"{line[: at.start()]}metadata.{rng.choice(['name', 'namespace'])}{line[at.end() :]}"


def constant(line: str, rng: random.Random) -> str | None:
    """An expression becomes a constant."""
    found = [*re.finditer(r"\{\{.*?\}\}", line)]
    if not found:
        return line
    at = rng.choice(found)
    return f"{line[: at.start()]}{rng.choice(['fixed', '1', 'true'])}{line[at.end() :]}"


def other_way(line: str, _rng: random.Random) -> str | None:
    """A condition is negated."""
    if found := re.search(r"\{% if (.*?) %\}", line):
        return line.replace(found[0], f"{{% if not ({found[1]}) %}}")
    return re.sub(r" if (.*?) else ", r" if not (\1) else ", line)


def without_filter(line: str, rng: random.Random) -> str | None:
    found = [*re.finditer(r" \| \w+(\([^()]*\))?(?=[^{]*\}\})", line)]
    if not found:
        return line
    at = rng.choice(found)
    return line[: at.start()] + line[at.end() :]


def other_indentation(line: str, rng: random.Random) -> str | None:
    return f"  {line}" if rng.random() < 0.5 or not line.startswith("  ") else line[2:]


MUTATIONS: Final[tuple[Callable[[str, random.Random], str | None], ...]] = (
    without,
    other_number,
    other_word,
    other_field,
    constant,
    other_way,
    without_filter,
    other_indentation,
)


@dataclass(frozen=True)
class Mutation:
    template: str  # its path in the project
    line: int
    before: str
    after: str | None

    def __str__(self) -> str:
        after = "(removed)" if self.after is None else self.after.strip()
        return f"{self.template}:{self.line}: {self.before.strip()}  ->  {after}"


def mutation(root: Path, rng: random.Random, *, rules: bool) -> Mutation:
    """A random mutation of a template that changes its text; with `rules`, of watches.yaml."""
    while True:
        template = root / "watches.yaml" if rules else rng.choice(sorted((root / "templates").rglob("*.j2")))
        lines = template.read_text("utf-8").split("\n")
        number = rng.randrange(len(lines))
        line = lines[number]
        if not line.strip() or line.strip().startswith("#"):
            continue
        after = rng.choice(MUTATIONS)(line, rng)
        if after != line:
            return Mutation(template.relative_to(root).as_posix(), number + 1, line, after)


# -- custom resources --------------------------------------------------------------------------------------------------


def variant(value: Any, schema: dict[str, Any], rng: random.Random) -> Any:
    """The value with some fields changed, as the schema permits."""
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        result = {name: variant(each, known.get(name, {}), rng) for name, each in value.items()}
        for name, inner in known.items():
            if name in result and name not in schema.get("required", ()) and rng.random() < 0.15:
                del result[name]
            elif name not in result and rng.random() < 0.3:
                made = sample(inner, rng)
                if made is not None:
                    result[name] = made
        return result
    if isinstance(value, list):
        return [variant(each, schema.get("items") or {}, rng) for each in value if rng.random() < 0.8]
    return sample(schema, rng) if rng.random() < 0.4 and sample(schema, rng) is not None else value


def sample(schema: dict[str, Any], rng: random.Random) -> Any:
    """A value of the schema; None where that is not easy."""
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            return rng.randint(schema.get("minimum", 0), min(schema.get("maximum", 20), 200))
        case "string" if "pattern" not in schema:
            return rng.choice(["one", "two", "three"])
        case "object" if schema.get("properties") and not schema.get("required"):
            return {}
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return {"a": "b"}
    return None


def resources(project: Project, samples: Sequence[Path], rng: random.Random) -> list[dict[str, Any]]:
    """The samples and their variants, as far as the CRD accepts them."""
    found = []
    for file in samples:
        base = yaml.safe_load(file.read_text("utf-8"))
        kind = Kind.of(base)
        crd = next(each for each in project.crds if (each.group, each.kind) == (kind.group, kind.kind))
        version = crd.version(kind.version)
        assert version is not None
        spec = version.schema["properties"]["spec"]
        for number in range(VARIANTS + 1):
            changed = copy.deepcopy(base)
            if number:
                changed["spec"] = variant(changed["spec"], dict(spec), rng)
            if not prepare(project, changed)[1]:
                found.append(changed)
    return found


def rendered(project: Project, resource: dict[str, Any], existing: Sequence[dict[str, Any]]) -> object:
    """Everything that exists once all children are ready, and what is wrong."""
    world = PlanMode(project, CaseKinds(project), Admission(project))
    for obj in existing:
        world.add(obj)
    world.create(resource)
    world.reconcile(ready=True)
    after = world.after()
    objects = {key: _without_versions(obj) for key, obj in after.objects.items()}
    return objects, after.waits, [error.message for error in after.errors]


def _without_versions(obj: Any) -> Any:
    metadata = {name: each for name, each in obj["metadata"].items() if name not in {"resourceVersion", "annotations"}}
    metadata["annotations"] = {
        name: each for name, each in (obj["metadata"].get("annotations") or {}).items() if "ruleop.dev" not in name
    }
    return {**obj, "metadata": metadata}


# -- one project -------------------------------------------------------------------------------------------------------


@dataclass
class Example:
    """A copy of an example that can be mutated."""

    name: str
    root: Path
    files: list[Path]
    resources: list[dict[str, Any]]
    existing: list[dict[str, Any]]
    before: list[object]

    @classmethod
    def at(cls, name: str, folder: Path, rng: random.Random) -> Example:
        source, root = (ROOT / "examples" / name if name else ROOT), folder / (name or "root")
        for part in ("watches.yaml", "templates", "crds", "examples", "existing", "tests"):
            if (source / part).is_dir():
                ignored = shutil.ignore_patterns("*.py", *(EXAMPLES[1:] if not name else ()))
                shutil.copytree(source / part, root / part, ignore=ignored if part != "templates" else None)
            elif (source / part).exists():
                root.mkdir(parents=True, exist_ok=True)
                shutil.copy(source / part, root / part)
        project = load_project(root, environ={})
        existing = [
            each
            for file in sorted((root / "existing").glob("*.yaml"))
            for each in yaml.safe_load_all(file.read_text("utf-8"))
        ]
        found = resources(project, sorted((root / "examples").glob("*.yaml")), rng)
        before = [rendered(project, each, existing) for each in found]
        return cls(name or "the repository itself", root, find_files(root), found, existing, before)

    def finds(self, change: Mutation) -> str | None:
        """What finds the mutation: "check" or "tests"; "" for a survivor, None if it changes nothing."""
        file = self.root / change.template
        original = file.read_text("utf-8")
        lines = original.split("\n")
        lines[change.line - 1 : change.line] = [] if change.after is None else [change.after]
        file.write_text("\n".join(lines), "utf-8")
        try:
            return self._finds()
        finally:
            file.write_text(original, "utf-8")

    def _finds(self) -> str | None:
        try:
            loaded = load_with_sources(self.root, environ={})
        except ProjectErrors:
            return "check"
        project = loaded.project
        if all(
            rendered(project, each, self.existing) == was for each, was in zip(self.resources, self.before, strict=True)
        ):
            return None
        if check_project(loaded):  # of the examples as they are it finds nothing
            return "check"
        runner = Runner(Projects(self.root, {}), Snapshots(ci=True))
        try:
            return "tests" if any(not runner.run(case).passed for case in self.cases()) else ""
        except RuleopError:
            return "tests"

    def cases(self) -> Iterator[Case]:
        for path in self.files:
            yield from parse_file(path, path.name, path.read_text("utf-8")).cases


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="mutations that change what is rendered")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", action="store_true", help="mutations of watches.yaml instead of templates")
    options = parser.parse_args(arguments)
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="ruleop-mutations-") as folder:
        examples = [Example.at(name, Path(folder), rng) for name in EXAMPLES]
        found = {"check": 0, "tests": 0, "": 0}
        same, survivors, seen = 0, [], set()
        while sum(found.values()) < options.count:
            example = rng.choice(examples)
            change = mutation(example.root, rng, rules=options.rules)
            if (example.name, change) in seen:
                continue
            seen.add((example.name, change))
            by = example.finds(change)
            if by is None:
                same += 1
                continue
            found[by] += 1
            if not by:
                survivors.append(f"{example.name}: {change}")
    share = 1 - found[""] / options.count
    resources_tried = sum(len(each.resources) for each in examples)
    print(f"{options.count} mutations change what is rendered for one of {resources_tried} CRs; {same} others do not")
    print(f"found by check: {found['check']}, by tests: {found['tests']}, together {share:.1%} (goal {GOAL:.0%})")
    for each in survivors:
        print(f"survives: {each}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
