"""Commands on a cluster: `explain`, `history` and `plan --live` read; `rollout`, `recover` and `rename` also write."""

from ruleop.authoring.live.explainer import Explainer
from ruleop.authoring.live.history import Historian
from ruleop.authoring.live.live_planner import LivePlanner, all_passes
from ruleop.authoring.live.open_cluster import (
    LiveCluster,
    Operator,
    Processes,
    UnknownKindError,
    find_operator,
    open_cluster,
)
from ruleop.authoring.live.reader import (
    LiveKinds,
    NotConnectedError,
    Reader,
    definitions_in_use,
)
from ruleop.authoring.live.recovery import Unproven, find_unproven, sign
from ruleop.authoring.live.renaming import Renaming
from ruleop.authoring.live.rollouts import (
    change_rollout,
    read_revisions,
    read_rollouts,
    revision_lines,
    rollout_documents,
    rollout_lines,
)
from ruleop.authoring.live.server_dry_run import ServerDryRun

__all__ = [
    "Explainer",
    "Historian",
    "LiveCluster",
    "LiveKinds",
    "LivePlanner",
    "NotConnectedError",
    "Operator",
    "Processes",
    "Reader",
    "Renaming",
    "ServerDryRun",
    "UnknownKindError",
    "Unproven",
    "all_passes",
    "change_rollout",
    "definitions_in_use",
    "find_operator",
    "find_unproven",
    "open_cluster",
    "read_revisions",
    "read_rollouts",
    "revision_lines",
    "rollout_documents",
    "rollout_lines",
    "sign",
]
