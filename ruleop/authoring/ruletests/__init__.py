"""Rule tests: cases in YAML that plan a custom resource and compare the result with what is expected."""

from ruleop.authoring.ruletests import coverage
from ruleop.authoring.ruletests.cases import SUFFIX, find_files, read_test_file
from ruleop.authoring.ruletests.format import test_schema
from ruleop.authoring.ruletests.pytest_items import RuleTestFile, RuleTests, RunSettings, keyword
from ruleop.authoring.ruletests.running.case_cluster import CaseKinds
from ruleop.authoring.ruletests.running.plan_mode import RESTLESS, Admission, PlanMode

__all__ = [
    "RESTLESS",
    "SUFFIX",
    "Admission",
    "CaseKinds",
    "PlanMode",
    "RuleTestFile",
    "RuleTests",
    "RunSettings",
    "coverage",
    "find_files",
    "keyword",
    "read_test_file",
    "test_schema",
]
