import re
from typing import get_args

from ruleop.language.rules.check_ids import BY_ID, CHECKS, Code


def test_each_code_belongs_to_one_check():
    assert [check.code for check in CHECKS] == list(get_args(Code))


def test_ids_are_unique_and_in_order():
    assert list(BY_ID) == sorted({check.id for check in CHECKS})
    assert all(re.fullmatch(r"RO[1-8]\d\d", id_) for id_ in BY_ID)


def test_a_title_is_one_short_line():
    assert [check.title for check in CHECKS if len(check.title) > 72 or check.title.endswith(".")] == []
