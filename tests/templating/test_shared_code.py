"""Libraries of the same process share the code of templates that are the same."""

from __future__ import annotations

import gc
import weakref

from ruleop.core.errors import Site
from ruleop.core.templating.compile.compiled import Expression
from ruleop.core.templating.compile.library import Library

SITE = Site("watches.yaml", 3)


def expression(source: str, site: Site = SITE) -> Expression:
    return Library({}).expression(source, site)


def test_a_template_that_is_loaded_again_is_not_compiled_again() -> None:
    first, second = expression("spec.size + 1"), expression("spec.size + 1")
    assert first.compiled.generated is second.compiled.generated
    assert [each.evaluate({"spec": {"size": 2}}) for each in (first, second)] == [3, 3]


def test_a_template_that_changes_is_compiled() -> None:
    first = expression("spec.size + 1")
    assert expression("spec.size + 2").evaluate({"spec": {"size": 2}}) == 4
    assert first.evaluate({"spec": {"size": 2}}) == 3


def test_the_same_text_in_another_place_has_code_with_its_own_place() -> None:
    first, second = expression("spec.size"), expression("spec.size", Site("watches.yaml", 4))
    assert first.compiled.generated is not second.compiled.generated


def test_code_is_dropped_with_its_last_template() -> None:
    generated = weakref.ref(expression("spec.size + 3").compiled.generated)
    gc.collect()
    assert generated() is None
