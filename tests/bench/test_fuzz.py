"""The search finds what is expensive, resumes, and reports cases that exceed a limit of their process.

Units are the cost here, and not times, so that a search with one seed always finds the same.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bench.fuzz.case import CHANGES, Case, read, size, value_of
from bench.fuzz.genes import SHAPES, Gene, Genetics, case_of
from bench.fuzz.grammar import Grammar, Writer, is_node, nodes
from bench.fuzz.limited import Limits, passes, run
from bench.fuzz.minimise import minimised
from bench.fuzz.one_pass import PREPARING, Passes, Reading, UnusableError, load
from bench.fuzz.search import Entry, Options, Search, State, over

LIMITS = Limits(seconds=30)
PLANTED = "many"  # of which every item costs


def planted(case: Case, limits: Limits, announce: Callable[[Reading], None]) -> Reading:
    """A cost that only grows with the length of one list."""
    length = len(value_of(case.spec[PLANTED])) if PLANTED in case.spec else 0
    return Reading(seconds=length / 10_000, kib=1.0, hot="planted" if length else "other", ended="no actions")


def instantly(search: Search, runs: int) -> None:
    """Runs candidates in this process."""
    for _ in range(runs):
        gene = search.candidate()
        search.take(gene, search.measure(case_of(gene), LIMITS, lambda _: None))


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a test has to be repeatable


def simple(template: str, **spec: str) -> Case:
    watch = "- {group: example.com, version: v1, kind: App, children: {c0: {template: c0.yaml.j2}}}\n"
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  {template}\n"
    return Case({"watches.yaml": watch, "templates/c0.yaml.j2": text}, spec)


# -- the search --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_planted_cost_is_found_and_grown(tmp_path: Path) -> None:
    search = Search(State(7), tmp_path / "state.json", measure=planted)
    instantly(search, 120)
    assert [name for name in search.state.findings if name.startswith("seconds")] == ["seconds in planted"]
    assert search.state.findings["seconds in planted"].reading.seconds > 1.0


@pytest.mark.slow
def test_a_search_of_one_seed_is_repeatable(tmp_path: Path) -> None:
    found = []
    for number in range(2):
        search = Search(State(3), tmp_path / f"{number}.json", measure=planted)
        instantly(search, 30)
        found.append(search.state)
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_saved_search_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    search = Search(State(5), path, measure=planted)
    search.run(Options(seconds=60, workers=2, most=6))
    resumed = State.load(path, 5)
    assert (resumed, resumed.runs) == (search.state, 6)
    Search(resumed, path, measure=planted).run(Options(seconds=60, most=2))
    assert State.load(path, 5).runs == 8
    assert State.load(path, 6).runs == 0, "each seed has its own search"


@pytest.mark.slow
def test_a_search_of_other_code_measures_first_what_it_has_found(tmp_path: Path) -> None:
    search = Search(State(5), tmp_path / "state.json", measure=planted)
    instantly(search, 20)
    genes = [each.gene for cell in search.state.cells.values() for each in cell.values()]
    search.state.code = "other"
    resumed = Search(search.state, search.path, measure=planted)
    assert not resumed.state.cells
    assert resumed.candidate() in genes
    assert Search(search.state, search.path, measure=planted).candidate() not in genes


@pytest.mark.slow
def test_a_finding_is_minimised() -> None:
    chance = Genetics(seeded(1))
    gene = next(
        each for each in iter(chance.random, None) if PLANTED in case_of(each).spec and len(each["children"]) > 1
    )
    gene["spec"][PLANTED] = ["['a'] * n", 30_000, 1]
    entry = Entry(gene, planted(case_of(gene), LIMITS, lambda _: None))
    assert over(entry.reading) == "seconds"
    small = minimised(entry, 60.0, planted)
    assert PLANTED in case_of(small.gene).spec
    assert len(case_of(small.gene).text()) < len(case_of(gene).text())
    assert len(small.gene["children"]) == 1
    assert 25_000 < small.gene["spec"][PLANTED][1] <= 50_000, "half of it would be within the bound"


# -- genes -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_genes_stay_writable_whatever_is_mutated() -> None:
    chance = Genetics(seeded(2))
    gene = chance.random()
    for _ in range(40):
        gene = chance.mutated(gene, chance.random())
        assert all(is_node(node) for _, _, node in nodes(gene))
        assert case_of(gene).text()


@pytest.mark.slow
def test_most_random_rules_are_accepted() -> None:
    chance, accepted = Genetics(seeded(4)), 0
    for _ in range(20):
        try:
            load(case_of(chance.random()))
        except UnusableError:
            continue
        accepted += 1
    assert accepted >= 8


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_is_a_value_that_grows_with_its_size(name: str) -> None:
    def bytes_of(number: int) -> list[int]:
        gene: Gene = Genetics(seeded(1)).random()
        gene["validate"] = [[["B", f"spec.{name} is defined", [], []], ["T", "'a'", [], []]]]
        sizes = []
        for shape in SHAPES[name]:
            gene["spec"][name] = [shape, number, number]
            sizes.append(size({"spec": value_of(case_of(gene).spec[name])}))
        return sizes

    assert all(small <= large for small, large in zip(bytes_of(3), bytes_of(11), strict=True))


def test_a_block_is_indented_below_its_key() -> None:
    node = ["S", "k#:\n  <Y>", [], [["Y", "- a\n- a", [], []]]]
    assert Writer().text(node) == "k1:\n  - a\n  - a"
    loop = Grammar(seeded(1)).filled("Y", "{% for @ in <L> %}\n<Y|T>\n{% endfor %}", [["l0", "L"]], 0)
    assert Writer().text(loop).startswith("{% for x1 in ")


# -- passes ------------------------------------------------------------------------------------------------------------


def test_the_passes_are_measured_and_their_actions_are_carried_out() -> None:
    case = simple('a: "{{ spec.text }}"', text="'a' * 5000")
    work = Passes(Case(**vars(case) | {"change": "half", "others": "altered", "shown": True}))
    reading = work.run()
    assert list(reading.phases) == [
        "create", "text of create", "edit", "text of edit", "drift", "text of drift", "conflict", "text of conflict",
    ]  # fmt: skip
    assert reading.ended == "1 actions"
    assert reading.kib > 4.8
    [child] = work.cluster.objects.values()
    assert child["data"]["a"] == "a" * 2500 + "~", "another client changes it, and a field conflict is not reverted"
    assert not reading.failed


def test_a_rejected_rule_and_a_resource_that_is_too_large_do_not_count() -> None:
    assert run(simple('a: "{{ nothing }}"'), LIMITS) is None
    assert run(simple('a: "{{ spec.text }}"', text="'a' * 2000000"), LIMITS) is None


def test_a_process_over_its_memory_limit_is_reported() -> None:
    def grows(case: Case, limits: Limits, announce: Callable[[Reading], None]) -> Reading:
        announce(Reading(running="edit", kib=3.0))
        found = Reading(kib=3.0)
        try:
            found.longest = len(bytearray(2**30))
        except MemoryError:
            found.failed = "memory limit"
        return found

    reading = run(simple("a: b"), Limits(mib=64), grows)
    assert reading is not None
    assert (over(reading), reading.longest, reading.kib) == ("memory limit", 0, 3.0)


def test_a_process_over_its_time_limit_is_reported_with_the_pass_that_it_was_in() -> None:
    def stops(case: Case, limits: Limits, announce: Callable[[Reading], None]) -> Reading:
        announce(Reading(running="edit", hot="", phases={"create": 0.0}))
        os.kill(os.getpid(), signal.SIGXCPU)
        return Reading()

    reading = run(simple("a: b"), LIMITS, stops)
    assert reading is not None
    assert (over(reading), reading.where) == ("CPU limit", "edit")


def test_a_case_that_takes_too_long_before_its_first_pass_does_not_count() -> None:
    def stops(case: Case, limits: Limits, announce: Callable[[Reading], None]) -> Reading:
        os.kill(os.getpid(), signal.SIGXCPU)
        return Reading()

    assert run(simple("a: b"), LIMITS, stops) is None


def test_the_time_that_other_clients_take_is_not_that_of_a_pass() -> None:
    def stops(case: Case, limits: Limits, announce: Callable[[Reading], None]) -> Reading:
        announce(Reading(running=PREPARING, seconds=0.5, phases={"create": 0.5}))
        os.kill(os.getpid(), signal.SIGXCPU)
        return Reading()

    reading = run(simple("a: b"), LIMITS, stops)
    assert reading is not None
    assert (over(reading), reading.seconds) == ("", 0.5)


def test_an_internal_error_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Passes(simple("a: b"))
    monkeypatch.setattr(work, "_plan", lambda _: {}[1])
    reading = work.run()
    assert reading.failed.startswith("KeyError")


def test_a_written_case_is_read_back_unchanged(tmp_path: Path) -> None:
    case = Case(
        files={"watches.yaml": "- a\n", "templates/a.j2": "x: 'y'\n  \n"},
        spec={"text": "'a' * 3", "many": "[str(i) for i in range(2)]"},
        change="half",
        shown=True,
        found={"seconds": 1.5},
        note="slow",
    )
    path = tmp_path / "case.yaml"
    path.write_text(case.text(), encoding="utf-8")
    assert read(path) == case
    assert case.resource()["spec"] == {"text": "aaa", "many": ["0", "1"]}
    assert case.changed(case.resource())["spec"] == {"text": "a"}


def test_a_deletion_is_measured_at_last_and_observed_objects_are_there() -> None:
    watch = """
    - group: example.com
      version: v1
      kind: App
      observe: {o0: {version: v1, kind: Pod, selector: {seen: o0}}, o1: {version: v1, kind: Pod, name: o1-0}}
      status: {count: "{{ o0 | length }}", a: "{{ o1.spec.a }}"}
      finalize:
        f0: {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ o1.spec.a }}"}}}
    """
    seen = {"o0": "[{'a': 'b'} for i in range(7)]", "o1": "[{'a': 'c'}]"}
    work = Passes(Case({"watches.yaml": watch}, seen=seen, status="{'count': 1}", deleted=True))
    assert work.resource["status"] == {"count": 1}
    reading = work.run()
    assert list(reading.phases) == ["create", "edit", "delete"]
    assert not reading.failed
    assert [key.name for key in work.cluster.objects if key.kind == "ConfigMap"] == ["c"]


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_every_change_keeps_the_type_of_a_value(name: str) -> None:
    value = {"a": [1, "b", {"c": None}], "d": "e"}
    assert isinstance(CHANGES[name](value), dict)


@pytest.mark.slow
def test_the_most_expensive_function_is_reported() -> None:
    template = "{% for a in range(9999) %}{% if a == 1 %}{% endif %}{% endfor %}\n  a: b"
    reading = run(simple(template), LIMITS, passes)
    assert reading is not None
    assert reading.seconds > 0
