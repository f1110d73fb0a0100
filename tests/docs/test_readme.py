"""The README is short, and what it claims is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ruleop.language.rules.keys import watches_yaml as language
from ruleop.language.rules.keys.tables import keys
from tests.docs import console
from tests.docs.messages import ROOT

README = console.README.read_text(encoding="utf-8")


def test_the_readme_has_at_most_500_words() -> None:
    """In all, as `wc -w` counts them."""
    assert len(README.split()) <= 500


def test_the_rule_and_the_template_shown_are_in_this_repository() -> None:
    for path in ("watches.yaml", "templates/app/service.yaml.j2"):
        (shown,) = README.split(f"```yaml\n# {path}\n")[1].split("```")[:1]
        assert (ROOT / path).read_text().startswith(shown)


def test_the_commands_of_the_readme_are_those_of_the_first_page() -> None:
    """Where they are run."""
    network = "needs the network"
    assert [block for block in console.blocks(console.README) if block.mark == network] == [
        block for block in console.blocks(console.START) if block.mark == network
    ][:1]


# What the README says that ruleop lacks, and the words that a key of watches.yaml would have which does it all the same
LACKED = {
    "runs no charts": r"\bcharts?\b",
    "writes Kubernetes objects only": r"\b(http|https|url|webhook)\b",
    "objects in other clusters": r"\bkubeconfig\b|\b(other|remote|target) clusters?\b",
    "APIs outside of Kubernetes": r"\b(http|https|url|webhook)\b",
    "conversion between the versions of a CRD": r"\bconver(ts?|sion)\b",
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
