"""A small project for the generators."""

from __future__ import annotations

from ruleop.language.rules.checking import build_with_sources
from ruleop.language.rules.loading import Loaded

WATCHES = """\
- group: example.com
  version: v1
  kind: Site
  vars: {domain: "${DOMAIN:-example.com}"}
  schema:
    spec: {page: string | required=true}
  validate:
    - {rule: "'<b>' not in spec.page", message: "no templates in a page of {{ metadata.name }}"}
  children:
    config: {template: config.yaml}
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ metadata.name }}"}
data: {page: "{{ spec.page }}"}
"""


REQUIRED = WATCHES.replace(":-example.com", "")
"""The variable has no default."""


def project(files: dict[str, str] | None = None, watches: str = WATCHES) -> Loaded:
    """With more files, and with DOMAIN in the environment."""
    texts = {"watches.yaml": watches, "templates/config.yaml": CONFIG, **(files or {})}
    return build_with_sources(texts, root="", environ={"DOMAIN": "of this machine"})
