"""Formats plans: as text for people and as JSON for programs."""

from ruleop.authoring.report.change_summary import ChangeSummary
from ruleop.authoring.report.change_text import differing_lines
from ruleop.authoring.report.documents import as_document
from ruleop.authoring.report.dot import digraph, quoted, view_graph
from ruleop.authoring.report.explain_text import explanation_lines
from ruleop.authoring.report.history_views import PastChange, ResourceHistory, What, history_lines
from ruleop.authoring.report.mistakes import excerpt, mistake
from ruleop.authoring.report.object_problems import object_problems, pod_reason
from ruleop.authoring.report.plan_documents import plan_document, rendered_document
from ruleop.authoring.report.plan_text import plan_lines
from ruleop.authoring.report.plan_views import view_of_plan, view_without_object, wait_message, waits_of
from ruleop.authoring.report.planned import Answer, Planned, StoredField, Verdict
from ruleop.authoring.report.rollout_views import (
    RevisionView,
    RolloutView,
    WatchView,
    revision_lines,
    rollout_lines,
    rollout_views,
)
from ruleop.authoring.report.spans import Line, Place, Span, Tone, counted, sections, styled
from ruleop.authoring.report.tree import tree_lines, view_row
from ruleop.authoring.report.views import (
    EventView,
    LastWrite,
    ManagedField,
    ObjectView,
    RenderedLine,
    ResourceView,
    is_ready,
    object_view,
    view_of_objects,
)

__all__ = [
    "Answer",
    "ChangeSummary",
    "EventView",
    "LastWrite",
    "Line",
    "ManagedField",
    "ObjectView",
    "PastChange",
    "Place",
    "Planned",
    "RenderedLine",
    "ResourceHistory",
    "ResourceView",
    "RevisionView",
    "RolloutView",
    "Span",
    "StoredField",
    "Tone",
    "Verdict",
    "WatchView",
    "What",
    "as_document",
    "counted",
    "differing_lines",
    "digraph",
    "excerpt",
    "explanation_lines",
    "history_lines",
    "is_ready",
    "mistake",
    "object_problems",
    "object_view",
    "plan_document",
    "plan_lines",
    "pod_reason",
    "quoted",
    "rendered_document",
    "revision_lines",
    "rollout_lines",
    "rollout_views",
    "sections",
    "styled",
    "tree_lines",
    "view_graph",
    "view_of_objects",
    "view_of_plan",
    "view_row",
    "view_without_object",
    "wait_message",
    "waits_of",
]
