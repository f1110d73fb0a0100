"""The rules as ConfigMaps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruleop.authoring.generate.manifests import (
    MOST_APPLIED,
    MOST_STORED,
    mounted_rules,
    require_storable,
    rule_files,
)
from ruleop.language.rules import ProjectErrors
from ruleop.language.rules.operator_choices import Choices
from tests.authoring.generate.projects import project

KIB = 1024
ANNOTATIONS = 256 * KIB  # of an object, in the API server


def as_mounted(files: dict[str, str]) -> dict[str, str]:
    """The files that a pod sees."""
    mounted = mounted_rules(files, Choices())
    data = {each["metadata"]["name"]: each["data"] for each in mounted.config_maps}
    volume = mounted.volume
    sources = [each["configMap"] for each in volume.get("projected", {}).get("sources", [volume])]
    return {item["path"]: data[each["name"]][item["key"]] for each in sources for item in each["items"]}


def mistakes(error: pytest.ExceptionInfo[ProjectErrors]) -> list[str]:
    return [str(each) for each in error.value.findings]


def test_crds_are_not_mounted() -> None:
    crd = {"crds/a.yaml": "# none\n"}
    assert list(rule_files(project(crd))) == ["templates/config.yaml", "watches.yaml"]


@given(st.lists(st.builds(str.__mul__, st.sampled_from('a<é\n"'), st.integers(0, 30 * KIB)), max_size=12))
def test_a_pod_sees_each_file_and_kubectl_can_apply_each_configmap(texts: list[str]) -> None:
    files = {"watches.yaml": "", **{f"templates/{number}.yaml": text for number, text in enumerate(texts)}}
    assert as_mounted(files) == files
    for each in mounted_rules(files, Choices()).config_maps:
        escaped = json.dumps(each, ensure_ascii=False)
        for character in "<>&":
            escaped = escaped.replace(character, "\\u0000")
        assert len(escaped.encode()) < ANNOTATIONS


def test_small_rules_are_one_configmap() -> None:
    mounted = mounted_rules(rule_files(project()), Choices(name="shop"))
    (only,) = mounted.config_maps
    assert only["metadata"] == {"name": "shop-rules", "namespace": "ruleop-system"}
    assert mounted.volume["configMap"]["name"] == "shop-rules"


def test_many_files_are_several_configmaps() -> None:
    files = {f"templates/{number}.yaml": "a" * (90 * KIB) for number in range(5)}
    names = [each["metadata"]["name"] for each in mounted_rules(files, Choices()).config_maps]
    assert names == ["ruleop-rules", "ruleop-rules-2", "ruleop-rules-3"]


def test_two_paths_with_one_key_are_an_error() -> None:
    files = {"templates/a__b.yaml": CONFIG_A, "templates/a/b.yaml": CONFIG_A}
    with pytest.raises(ProjectErrors) as error:
        rule_files(project(files))
    assert mistakes(error) == [
        (
            "templates/a__b.yaml: templates/a/b.yaml has the same key in a ConfigMap (templates__a__b.yaml):"
            " rename one of them"
        )
    ]


CONFIG_A = "{# a macro file #}\n"


def test_a_path_that_cannot_be_a_key_is_an_error() -> None:
    watches = "include: [rules/übung.yaml]\n"
    files = {"rules/übung.yaml": "- {group: example.com, version: v1, kind: A, children: {}}\n"}
    with pytest.raises(ProjectErrors) as error:
        rule_files(project(files, watches))
    assert mistakes(error) == [
        'rules/übung.yaml: cannot be a key of a ConfigMap: rename it with letters, digits, "-", "_" and "."'
    ]


@pytest.mark.parametrize("text", ["a" * MOST_APPLIED, "<" * (MOST_APPLIED // 6)])
def test_a_file_that_no_configmap_can_hold_is_an_error(text: str) -> None:
    with pytest.raises(ProjectErrors) as error:
        mounted_rules({"templates/a.yaml": text}, Choices())
    assert mistakes(error) == [
        (
            "templates/a.yaml: the file (200 KiB in JSON) does not fit into a ConfigMap: use --rules image"
            " (or `rules: image` in ruleop.yaml)"
        )
    ]


def test_rules_that_are_too_large_for_the_configmap_of_a_chart_are_an_error() -> None:
    files = {"templates/a.yaml": "a" * (MOST_STORED - 40), "watches.yaml": ""}
    require_storable(files)
    with pytest.raises(ProjectErrors) as error:
        require_storable({**files, "templates/b.yaml": "b" * 41})
    assert mistakes(error) == [
        (
            "templates/a.yaml: with all other files (900 KiB), it does not fit into a ConfigMap: use --rules image"
            " (or `rules: image` in ruleop.yaml)"
        )
    ]
