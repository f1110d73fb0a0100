"""The objects of docs/operations.md that a reader applies to a cluster."""

from __future__ import annotations

import re
from typing import Any

import yaml
from click.testing import CliRunner

from ruleop.cli.program import program
from tests.docs.messages import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DOCUMENTS: list[dict[str, Any]] = [
    document
    for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    for document in yaml.load_all(block, yaml.CSafeLoader)
]
# For --metrics-auth.
METRICS = [
    document for document in DOCUMENTS if str(document.get("metadata", {}).get("name")).startswith("ruleop-metrics")
]
GENERATED = CliRunner().invoke(program, ["generate", "rbac", "-C", str(ROOT)], catch_exceptions=False).stdout
