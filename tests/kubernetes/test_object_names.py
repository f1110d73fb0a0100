"""Valid names, everywhere: in a rule, in a custom resource, in a rendered object, in a flag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.kubernetes.kinds import MAX_KEPT_LENGTH, Kind
from ruleop.kubernetes.labels import key_problems, label_value_problems
from ruleop.kubernetes.names import (
    MOST_OF_NAME,
    is_label,
    is_label_key,
    is_label_value,
    is_letter_label,
    is_object_name,
    is_subdomain,
    lease_name,
)
from ruleop.language.templates.filters.data_filters import dns_label

ROLE = ("rbac.authorization.k8s.io", "Role")
NAMES = ["a", "a-b", "a.b", "0", "a--b", "1.2.3", "x" * 253, "a." + "b" * 100]
BAD = [
    "",
    ".",
    "..",
    "a.",
    ".a",
    "-a",
    "a-",
    "a..b",
    "a.-b",
    "a-.b",
    "a_b",
    "A",
    "a/b",
    "a b",
    "a\n",
    "\u0663",
    "x" * 254,
]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_an_object(name):
    assert is_object_name(("", "ConfigMap"), name)
    assert is_object_name(ROLE, name)


@pytest.mark.parametrize("name", BAD)
def test_not_the_name_of_an_object(name):
    assert not is_object_name(("", "ConfigMap"), name)


def test_a_role_may_have_any_name_that_fits_into_a_url():
    for name in ("system:node", "A B", "a..b"):
        assert is_object_name(ROLE, name)
    for name in ("", ".", "..", "a/b", "a%b", "x" * 254):
        assert not is_object_name(ROLE, name)


@given(st.text(alphabet="aA0._-/ \n", max_size=8) | st.sampled_from(["a" * 63, "a" * 64, "a" * 253 + "/b", "a" * 254]))
def test_labels_are_those_that_the_server_in_memory_accepts(text):
    assert is_label_key(text) == (not key_problems(text))
    assert is_label_value(text) == (not any(label_value_problems(text)))


@given(st.text(alphabet="ab.-", max_size=8))
def test_a_subdomain_is_labels_with_dots_between_them(text):
    assert is_subdomain(text) == all(map(is_label, text.split(".")))


@given(st.text())
def test_a_label_with_a_letter_first_is_a_label(text):
    assert is_letter_label(text) == (is_label(text) and not text[0].isdigit())


@given(st.text(), st.text())
def test_dns_label_makes_a_name_of_anything(one, two):
    assert is_label(dns_label(one, two))


def test_long_texts_are_not_kept_as_kinds():
    """A template can render any text as the kind of an object."""
    long = "K" * (MAX_KEPT_LENGTH + 1)
    assert Kind.parse("v1", long) == Kind("", "v1", long)
    assert Kind.parse("v1", long) is not Kind.parse("v1", long)
    assert Kind.parse("apps/v1", "Deployment") is Kind.parse("apps/v1", "Deployment")


OPERATORS = st.sampled_from(["ruleop", "ruleop-1", "ruleop-team-a", "r", "x" * MOST_OF_NAME])
PROCESSES = st.builds(dict, selector=st.sampled_from(["", "team=a", "!team", "1"])) | st.builds(
    dict, ordinal=st.integers(0, 99999)
)


@pytest.mark.slow
@given(OPERATORS, OPERATORS, PROCESSES, PROCESSES)
def test_two_operators_never_share_a_lease(one, other, process, others):
    """An operator may have the name of a pod of another one."""
    name = lease_name(one, **process)
    assert is_subdomain(name)
    assert (name == lease_name(other, **others)) == ((one, process) == (other, others))
