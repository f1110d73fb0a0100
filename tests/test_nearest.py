"""A good suggestion helps, and a bad one is worse than none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.nearest import did_you_mean, distance, nearest

POD_FIELDS = [
    "activeDeadlineSeconds", "affinity", "containers", "dnsPolicy", "hostIPC", "hostNetwork", "hostPID", "imagePullSecrets", "initContainers",
    "nodeName", "nodeSelector", "os", "priority", "restartPolicy", "serviceAccount", "serviceAccountName", "tolerations", "volumes",
]  # fmt: skip
CHILD_KEYS = ["adopt", "apply", "as", "deletion", "dependsOn", "forEach", "namespace", "object", "optional", "readyWhen", "template", "waitFor", "when"]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "candidates", "meant"),
    [
        ("serivce", ["service", "server", "size"], "service"),
        ("conatiners", POD_FIELDS, "containers"),
        ("container", POD_FIELDS, "containers"),
        ("nodeselector", POD_FIELDS, "nodeSelector"),
        ("node_selector", POD_FIELDS, "nodeSelector"),
        ("image-pull-secrets", POD_FIELDS, "imagePullSecrets"),
        ("imagePullSecret", POD_FIELDS, "imagePullSecrets"),
        ("toleration", POD_FIELDS, "tolerations"),
        ("volume", POD_FIELDS, "volumes"),
        ("serviceAcountName", POD_FIELDS, "serviceAccountName"),
        ("depends_on", CHILD_KEYS, "dependsOn"),
        ("foreach", CHILD_KEYS, "forEach"),
        ("templte", CHILD_KEYS, "template"),
        ("whem", CHILD_KEYS, "when"),
        ("env", ["envVars", "image"], "envVars"),
        ("portNumber", ["port", "image"], "port"),
        ("int", ["integer", "string"], "integer"),
        ("affinty", POD_FIELDS, "affinity"),
        ("hostPid", POD_FIELDS, "hostPID"),
        ("cat", ["bat", "car"], "bat"),
        ("volmus", ["volume", "size"], "volume"),
        ("imge", ["image", "size"], "image"),
        ("simage", ["image", "size"], "image"),
        ("validations", ["validate", "vars", "watches"], "validate"),
        ("conditioning", ["conditions", "children"], "conditions"),
    ],
)
def test_a_misspelled_name_has_a_suggestion(written: str, candidates: list[str], meant: str):
    assert nearest(written, candidates) == meant


@pytest.mark.parametrize(
    ("written", "candidates"),
    [
        ("cpu", ["ip", "os", "up"]),
        ("id", ["ip", "as"]),
        ("password", POD_FIELDS),
        ("host", POD_FIELDS),
        ("name", ["node"]),
        ("x", ["y", "xy"]),
        ("", ["a", ""]),
        ("--", ["a"]),
        ("anything", []),
        ("service", ["service"]),
        ("template", ["when", "forEach"]),
        ("validations", ["validate", "validated"]),
        ("serviceMonitor", POD_FIELDS),
        ("hostAliases", POD_FIELDS),
    ],
)
def test_without_a_similar_name_nothing_is_suggested(written: str, candidates: list[str]):
    assert nearest(written, candidates) is None


def test_the_suggestion_ends_a_message():
    assert did_you_mean("sice", ["size"]) == " (did you mean size?)"
    assert did_you_mean("sice", ["other"]) == ""


WORDS = st.text("abc", max_size=6)


@given(WORDS, WORDS)
def test_the_edit_distance_is_a_metric(a: str, b: str):
    assert (distance(a, b) == 0) is (a == b)
    assert distance(a, b) == distance(b, a)
    assert abs(len(a) - len(b)) <= distance(a, b) <= max(len(a), len(b))


@given(WORDS, st.integers(0, 5))
def test_each_edit_costs_one(word: str, at: int):
    head, tail = word[:at], word[at:]
    assert distance(word, f"{head}x{tail}") == 1
    if tail:
        assert distance(word, f"{head}x{tail[1:]}") == 1
    if len(tail) > 1 and tail[0] != tail[1]:
        assert distance(word, head + tail[1] + tail[0] + tail[2:]) == 1


@given(st.lists(st.text("abcd", min_size=1, max_size=8)), st.text("abcd", max_size=8))
def test_the_suggestion_is_a_candidate_and_independent_of_their_order(candidates: list[str], written: str):
    guess = nearest(written, candidates)
    assert guess is None or guess in candidates
    assert nearest(written, reversed(candidates)) == guess
