"""A project of which files are generated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.folders import write_files

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  vars: {domain: "${DOMAIN}"}
  schema:
    spec: {size: integer | default=1 maximum=5}
  children:
    config: {template: config.yaml}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ metadata.name }}'}\n"
CHOICES = "name: site-operator\nenv: {DOMAIN: example.com}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write_files(folder, {"watches.yaml": WATCHES, "templates/config.yaml": CONFIG, "ruleop.yaml": CHOICES})
    return folder
