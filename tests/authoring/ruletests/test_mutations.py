"""The tests of the examples find random mutations of their templates and rules: `make mutations` tries more."""

from __future__ import annotations

import pytest

from bench import mutations


@pytest.mark.slow
@pytest.mark.parametrize("rules", [False, True], ids=["templates", "rules"])
def test_the_tests_of_the_examples_find_mutations(rules: bool) -> None:
    assert mutations.main(["--count", "40", *(["--rules"] if rules else [])]) == 0
