"""Names that watches.yaml defines and nothing reads are reported."""

import pytest

from tests.authoring.checking.projects import said, said_of
from tests.language.rules.projects import HEAD

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ metadata.name }}'}\n"


def unused(body: str, config: str = CONFIG) -> list[str]:
    return [each for each in said_of(f"{body}\nchildren: {{a: {{template: a.yaml}}}}", a=config) if "RO306" in each]


def test_a_value_of_let_that_nothing_reads_is_reported_at_its_name():
    assert unused("let:\n  used: 1\n  spare: 2\nstatus: {a: '{{ used }}'}") == [
        'RO306 watches.yaml:6:5: warning: nothing reads the value of let "spare": remove it'
    ]


def test_an_observed_resource_that_nothing_reads_is_reported():
    assert unused("observe:\n  pods: {version: v1, kind: Pod, selector: {a: b}}") == [
        'RO306 watches.yaml:5:5: warning: nothing reads the observed resource "pods": remove it'
    ]


@pytest.mark.parametrize(
    "reads",
    [
        "status: {a: '{{ x.data.a }}'}",
        "conditions:\n  - {type: A, status: x.data is defined}",
        "let: {z: '{{ x.data.a }}'}\nstatus: {a: '{{ z }}'}",
        "validate:\n  - {rule: x is defined, message: text}",
    ],
)
def test_a_value_read_anywhere_in_a_rule_is_used(reads):
    assert unused(f"observe:\n  x: {{version: v1, kind: ConfigMap, name: a}}\n{reads}") == []


def test_a_child_need_not_be_read():
    assert unused("") == []


def test_a_shared_value_is_used_if_one_watch_uses_it():
    second = HEAD.replace("App", "Other").replace("\n", "\n  ").rstrip()
    watches = (
        "let: {shared: 1, spare: 2}\nwatches:\n  "
        + HEAD.replace("\n", "\n  ")
        + f"  status: {{a: '{{{{ shared }}}}'}}\n  {second}\n"
    )
    assert [each for each in said(watches) if "RO306" in each] == [
        'RO306 watches.yaml:1:18: warning: nothing reads the value of let "spare": remove it'
    ]


def test_a_short_name_of_another_kind_is_reported():
    found = said(f"{HEAD}  schema: {{spec: {{}}, shortNames: [ap, pv]}}\n  children: {{}}\n", {"crds/apps.yaml": ""})
    assert [each for each in found if "RO301" in each] == [
        'RO301 watches.yaml:4:39: warning: kubectl takes "pv" for PersistentVolume: choose another short name'
    ]
