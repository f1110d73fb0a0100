"""The objects of docs/operations.md that a reader applies to a cluster, and the files that its ConfigMap puts where."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.docs.messages import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DOCUMENTS: list[dict[str, Any]] = [
    document
    for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    for document in yaml.load_all(block, yaml.CSafeLoader)
]
DEPLOYMENT = next(document for document in DOCUMENTS if document.get("kind") == "Deployment")
# For --metrics-auth.
METRICS = [
    document for document in DOCUMENTS if str(document.get("metadata", {}).get("name")).startswith("ruleop-metrics")
]
# In the order of the page: the namespace comes first.
PERMISSIONS = [
    document for document in DOCUMENTS if "kind" in document and document is not DEPLOYMENT and document not in METRICS
]


def keys() -> dict[str, str]:
    """The ConfigMap's keys, and the file of the project that `kubectl create configmap` reads for each."""
    pairs = [pair.rpartition("=") for pair in re.findall(r"--from-file=(\S+)", TEXT)]
    return {key or path: path for key, _, path in pairs}


def mounted() -> dict[str, str]:
    """The files below the Deployment's mount, by path, with their content in this repository."""
    (volume,) = DEPLOYMENT["spec"]["template"]["spec"]["volumes"]
    files = keys()
    return {
        item["path"]: (ROOT / files[item["key"]]).read_text(encoding="utf-8") for item in volume["configMap"]["items"]
    }
