"""The files that `ruleop generate` makes from a project, as text. The same project gives the same bytes."""

from ruleop.authoring.generate.bundle import bundle_files
from ruleop.authoring.generate.chart_files import chart_files
from ruleop.authoring.generate.crds import (
    CONFIG_MAP,
    MARK,
    argocd_text,
    breaking_changes,
    crd_files,
    health_kinds,
    installed_crds,
    yaml_stream,
)
from ruleop.authoring.generate.graph import GraphNode, RuleGraph, dot, figure, mermaid, rule_graph, svg
from ruleop.authoring.generate.kind_docs import PAGE_MARK, kind_docs, samples
from ruleop.authoring.generate.manifests import image_files, install_yaml, installation, kustomize_base
from ruleop.authoring.generate.monitoring import alerting_rules, metrics_job, monitoring_files
from ruleop.authoring.generate.operator_roles import (
    operator_roles,
    role_objects,
    service_account,
    user_roles,
    wide_permissions,
)
from ruleop.authoring.generate.policies import policies, policy_text

__all__ = [
    "CONFIG_MAP",
    "MARK",
    "PAGE_MARK",
    "GraphNode",
    "RuleGraph",
    "alerting_rules",
    "argocd_text",
    "breaking_changes",
    "bundle_files",
    "chart_files",
    "crd_files",
    "dot",
    "figure",
    "health_kinds",
    "image_files",
    "install_yaml",
    "installation",
    "installed_crds",
    "kind_docs",
    "kustomize_base",
    "mermaid",
    "metrics_job",
    "monitoring_files",
    "operator_roles",
    "policies",
    "policy_text",
    "role_objects",
    "rule_graph",
    "samples",
    "service_account",
    "svg",
    "user_roles",
    "wide_permissions",
    "yaml_stream",
]
