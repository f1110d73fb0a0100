"""The README's tour works as it is written: its commands are run in a copy of the project, and print what it shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ruleop.core.rules.language import watches_yaml as language
from ruleop.core.rules.language.tables import keys
from tests.docs.console import README, agrees, blocks, install, prepared
from tests.docs.messages import ROOT
from tests.processes.fork_server import ForkServer
from tests.waiting import PATIENCE

NETWORK = "needs the network"
MARKS = {"", "needs a cluster", "needs kubectl", NETWORK}
OFFLINE = [block for block in blocks() if block.mark not in MARKS - {""}]


@pytest.fixture
def home(tmp_path: Path, fork_server: ForkServer) -> Path:
    return prepared(tmp_path, fork_server.command())


def test_the_commands_of_the_tour_print_what_it_shows(home: Path, fork_server: ForkServer) -> None:
    """As one session: a command may use the files of one before, and `cd` holds until the block ends."""
    for block in blocks():
        if block.mark == NETWORK:  # what it installs is installed here already
            for environment in re.findall(
                r"python3 -m venv ~/(\S+)", "\n".join(command.line for command in block.commands)
            ):
                install(home / environment, fork_server.command())
        if block not in OFFLINE:
            continue
        if block.edit:
            path, old, new = block.edit
            file = home / "checkout" / path
            before = file.read_text()
            assert old in before
            file.write_text(before.replace(old, new))
        folder = "checkout"
        for command in block.commands:
            line = command.line.replace("/tmp/", f"{home}/")  # noqa: S108 - what the README writes there
            if line.startswith("cd ~/"):
                folder = line.removeprefix("cd ~/")
                continue
            run = subprocess.run(
                ["sh", "-c", line],
                cwd=home / folder,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            if command.output:
                assert agrees(command.output, run.stdout.splitlines()), f"{line}\n{run.stdout}"
            else:
                assert run.returncode == 0, f"{line}\n{run.stdout}"
        if block.edit:
            file.write_text(before)


def test_every_mark_is_understood() -> None:
    assert [block.mark for block in blocks() if block.mark not in MARKS and not block.edit] == []
    assert len(OFFLINE) >= 8


def test_the_rule_and_the_template_shown_are_in_this_repository() -> None:
    for path in ("watches.yaml", "templates/app/deployment.yaml.j2"):
        (shown,) = README.split(f"```yaml\n# {path}\n")[1].split("```")[:1]
        assert (ROOT / path).read_text().startswith(shown)


def test_the_error_at_the_top_appears_in_the_tour() -> None:
    (promised,) = re.findall(r"Errors say where, and what to do:\s+`(.+?)`", README)
    assert any(promised in line for block in OFFLINE for command in block.commands for line in command.output)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a", "b"], True),
        (["...", "b", "..."], ["b"], True),
        (["...", "a", "b"], ["a", "x", "b"], False),
        (["1 passed in ..."], ["1 passed in 0.02 s"], True),
        (["1 passed in ..."], ["2 passed in 0.02 s"], False),
    ],
)
def test_three_dots_match_any_lines(shown: list[str], printed: list[str], same: bool) -> None:
    assert agrees(shown, printed) is same


# What the README says that ruleop lacks, and the words that a key of watches.yaml would have which does it all the same
LACKED = {
    "runs no charts": r"\bcharts?\b",
    "writes Kubernetes objects only": r"\b(http|https|url|webhook)\b",
    "objects in other clusters": r"\bkubeconfig\b|\b(other|remote|target) clusters?\b",
    "APIs outside of Kubernetes": r"\b(http|https|url|webhook)\b",
    "conversion between the versions of a CRD": r"\bconver(ts?|sion)\b",
    "commands in containers": r"\b(exec|commands?)\b",
    "the deletion of a custom resource by itself": r"\b(expires?|ttl|deletes? the (CR|custom resource))\b",
}
# Claims that the README made longer than they were true
OUTDATED = {
    "leaves deletion to the garbage collector": r"\bdeletionOrder\b",
    "no fields of objects of other owners": r"\bfields of an object of others\b|\bpatch\b",
    "never adopted": r"\badopt\b",
    "no hooks": r"\bonce\b",
}


def keys_of_the_language() -> dict[str, str]:
    return {
        f"{table.__name__} {key.name}": f"{key.name}: {key.doc}" for table in language.TABLES for _, key in keys(table)
    }


@pytest.mark.parametrize(("claim", "words"), LACKED.items())
def test_a_feature_that_the_readme_calls_missing_has_no_key(claim: str, words: str) -> None:
    assert claim in " ".join(README.split())
    assert [name for name, text in keys_of_the_language().items() if re.search(words, text)] == []


@pytest.mark.parametrize(("claim", "words"), OUTDATED.items())
def test_an_outdated_claim_is_found_by_the_keys_that_contradict_it(claim: str, words: str) -> None:
    assert claim not in " ".join(README.split())
    assert any(re.search(words, text) for text in keys_of_the_language().values())


def test_every_sentence_about_what_ruleop_lacks_is_held_against_the_keys() -> None:
    (section,) = re.findall(r"## Is it for you\?\n(.+?)\n## ", README, re.DOTALL)
    sentences = re.split(r"[.;|]\s", " ".join(section.split()))
    negated = [each for each in sentences if "ruleop" in each and re.search(r"\b(no|not|never|only|without)\b", each)]
    assert negated
    assert [each for each in negated if not any(claim in each for claim in LACKED)] == []


def test_no_row_of_the_map_names_a_file_twice() -> None:
    rows = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if (named := re.findall(r"`(ruleop/[^`]+)`", row)) and len(named) > len({*named})] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_no_section_of_a_page_is_there_twice(page: Path) -> None:
    titles = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(titles) == len({*titles})
