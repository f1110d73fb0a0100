"""A template renders the same as a tree and as text that is laid out and parsed after each render."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.ruletests.cases import find_files, parse_file
from ruleop.authoring.ruletests.projects import Projects
from ruleop.authoring.ruletests.running.runner import Runner
from ruleop.authoring.ruletests.snapshots import Snapshots
from ruleop.core.templating import Library, TextTemplate, view
from ruleop.core.templating.template_tree.templates import Templates
from tests.docs.messages import ROOT
from tests.exploration import others_slow

WATCHES = [
    *(ROOT / "examples").glob("*/watches.yaml"),
    *(ROOT / "examples/cookbook").glob("*/watches.yaml"),
    *(ROOT / "tests/projects").glob("*/watches.yaml"),
]
FILES = re.compile(r"template: \S")
PROJECTS = sorted(each.parent for each in WATCHES if find_files(each.parent) and FILES.search(each.read_text("utf-8")))


@pytest.mark.parametrize("project", others_slow(PROJECTS, ROOT / "examples/crontab"), ids=lambda each: each.name)
def test_every_render_of_the_tests_of_a_project_is_the_same(project, monkeypatch):
    libraries: dict[int, tuple[Library, TextTemplate]] = {}
    trees: dict[int, Templates] = {}
    seen, busy = [], []
    text, render = Library.text, TextTemplate.render

    def load(library, name):
        found = text(library, name)
        libraries[id(found)] = (library, found)
        return found

    def both(template, scope, *, lenient=False):
        expected = render(template, scope, lenient=lenient)
        if not busy and id(template) in libraries:
            busy.append(True)
            library, _ = libraries[id(template)]
            tree = trees.setdefault(id(library), Templates(library))
            found = tree.render(template.name, scope, lenient=lenient)
            if render(template, scope, lenient=lenient) == expected:  # it has no random values
                assert found == expected, template.name
                seen.append(template.name)
            busy.clear()
        return expected

    monkeypatch.setattr(Library, "text", load)
    monkeypatch.setattr(TextTemplate, "render", both)
    runner = Runner(Projects(project, {}), Snapshots())
    for path in find_files(project):
        for case in parse_file(path, str(path), path.read_text("utf-8")).cases:
            runner.run(case)
    assert seen


# -- random templates --------------------------------------------------------------------------------------------------

SPEC = {
    "yes": True,
    "no": False,
    "text": "some: text",
    "number": 7,
    "map": {"m1": "v", "m2": {"deep": [1]}},
    "list": ["i", 2, {"n": "o"}],
    "empty": {},
    "none": [],
    "null": None,
}
VALUES = [
    "1",
    "true",
    "plain",
    "'quoted {{ spec.text }}'",
    "{{ spec.number }}",
    "{{ spec.text }}",
    "{{ spec.map }}",
    "{{ spec.list }}",
    "{{ spec.null }}",
    "{{ omit }}",
    "a-{{ spec.number }}-{{ spec.text }}",
    "{% if spec.yes %}one{% else %}{{ spec.number }}{% endif %}",
    "x{% if spec.no %}-no{% endif %}-{{ x | default('none') }}",
    "[1, {{ spec.number }}]",
    "{a: {{ spec.text }}}",
]
TEXTS = ["line {{ spec.text }}", "  deeper", "", "{{ spec.number }}", "# no comment"]
TESTS = ["spec.yes", "spec.no", "spec.list", "x is defined"]
LOOPS = ["spec.list", "spec.map", "spec.none", "[1, 2]"]


@st.composite
def entries(draw, indent: int, depth: int, prefix: str) -> list[str]:
    space, lines = " " * indent, []
    for number in range(draw(st.integers(1, 3))):
        key = f"{prefix}{number}"
        kinds = ["value", "text", "spread"] + (["map", "list", "if", "for", "with"] if depth else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "value":
            lines.append(f"{space}{key}: {draw(st.sampled_from(VALUES))}")
        elif kind == "spread":
            lines += [
                f"{space}{key}:",
                f"{space}  {draw(st.sampled_from(['{{ spec.map }}', '{{ spec.list }}', '{{ spec.empty }}', '{{ spec.null }}']))}",
            ]
        elif kind == "text":
            lines.append(f"{space}{key}: {draw(st.sampled_from(['|', '|-', '|+', '>', '>-']))}")
            lines.append(f"{space}  first")
            lines += draw(text_lines(indent + 2))
        elif kind == "map":
            lines += [f"{space}{key}:", *draw(entries(indent + 2, depth - 1, key))]
        elif kind == "list":
            lines += [f"{space}{key}:", *draw(items(indent + draw(st.sampled_from([0, 2])), depth - 1, key))]
        elif kind == "if":
            lines += [f"{space}{{% if {draw(st.sampled_from(TESTS))} %}}", *draw(entries(indent, depth - 1, key + "a"))]
            if draw(st.booleans()):
                lines += [f"{space}{{% else %}}", *draw(entries(indent, depth - 1, key + "b"))]
            lines.append(f"{space}{{% endif %}}")
        elif kind == "with":
            lines += ["{% with x = spec.number %}", *draw(entries(indent, depth - 1, key + "w")), "{% endwith %}"]
        else:
            lines.append(f"{space}{{% for x in {draw(st.sampled_from(LOOPS))} %}}")
            inner = draw(items(indent + 4, depth - 1, key))
            lines += [f"{space}{key}l{{{{ loop.index }}}}:", *inner, f"{space}{{% endfor %}}"]
    return lines


@st.composite
def items(draw, indent: int, depth: int, prefix: str) -> list[str]:
    space, lines = " " * indent, []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["value", "map", "spread"] + (["if", "for", "set"] if depth else [])))
        if kind == "value":
            lines.append(f"{space}- {draw(st.sampled_from(VALUES))}")
        elif kind == "map":
            first, *others = draw(entries(indent + 2, max(depth - 1, 0), f"{prefix}i"))
            if "{%" in first.split(":")[0]:
                lines += [f"{space}- {prefix}h: 1", first, *others]
            else:
                lines += [f"{space}- {first.strip()}", *others]
        elif kind == "spread":
            lines += [f"{space}- first", f"{space}{draw(st.sampled_from(['{{ spec.list }}', '{{ spec.none }}']))}"]
        elif kind == "set":
            lines += [f"{space}{{% set x = {number} %}}", f"{space}- {{{{ x }}}}"]
        elif kind == "if":
            lines += [f"{space}{{% if {draw(st.sampled_from(TESTS))} %}}", *draw(items(indent, depth - 1, prefix))]
            lines.append(f"{space}{{% endif %}}")
        else:
            lines += [
                f"{space}{{% for x in {draw(st.sampled_from(LOOPS))} %}}",
                *draw(items(indent, depth - 1, prefix)),
            ]
            lines.append(f"{space}{{% endfor %}}")
    return lines


@st.composite
def text_lines(draw, indent: int) -> list[str]:
    space, lines = " " * indent, []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["line", "line", "if", "for", "stripped"]))
        text = draw(st.sampled_from(TEXTS))
        if kind == "line":
            lines.append(f"{space}{text}")
        elif kind == "if":
            lines += [f"{space}{{% if {draw(st.sampled_from(TESTS))} %}}", f"{space}in {text}", f"{space}{{% endif %}}"]
        elif kind == "stripped":
            lines += [
                f"{space}{{%- if {draw(st.sampled_from(TESTS))} %}}",
                f"{space}in {text}",
                f"{space}{{%- endif %}}",
            ]
        else:
            lines += [f"{space}{{% for x in [1, 2] %}}", f"{space}- {{{{ x }}}}", f"{space}{{% endfor %}}"]
    return lines


def outcome(render):
    """The documents; or None, and the error."""
    try:
        return render(), None
    except Exception as error:  # noqa: BLE001 - both may refuse the template
        return None, error


@given(entries(0, 3, "k"))
def test_a_random_template_renders_the_same(lines):
    source, scope = "\n".join(lines) + "\n", {"spec": view("spec", SPEC)}
    library = Library({"main": source})
    expected, error = outcome(lambda: library.text_mapping("main").render(scope))
    found, refused = outcome(lambda: Templates(library).render("main", scope))
    if error is None:
        assert refused is None, f"{source}\n{refused}"
        assert found == expected, source
