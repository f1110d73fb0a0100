"""Commands on a cluster: `explain`, `history` and `plan --live` read; `rollout`, `recover` and `rename` also write."""

from ruleop.authoring.live.explainer import Explainer
from ruleop.authoring.live.historian import Historian
from ruleop.authoring.live.live_planner import LivePlanner, all_passes
from ruleop.authoring.live.live_rollouts import change_rollout, read_revisions, read_rollouts
from ruleop.authoring.live.operator import Operator, find_operator, missing_processes
from ruleop.authoring.live.reading.open_cluster import LiveCluster, UnknownKindError, open_cluster
from ruleop.authoring.live.reading.read_only_connection import NotConnectedError, ReadingClient, ReadOnlyConnection
from ruleop.authoring.live.reading.reader import Reader
from ruleop.authoring.live.reading.served_kinds import LiveKinds, definitions_in_use
from ruleop.authoring.live.recovery import Unproven, find_unproven, sign
from ruleop.authoring.live.renaming import Renaming
from ruleop.authoring.live.server_dry_run import ServerDryRun

__all__ = [
    "Explainer",
    "Historian",
    "LiveCluster",
    "LiveKinds",
    "LivePlanner",
    "NotConnectedError",
    "Operator",
    "ReadOnlyConnection",
    "Reader",
    "ReadingClient",
    "Renaming",
    "ServerDryRun",
    "UnknownKindError",
    "Unproven",
    "all_passes",
    "change_rollout",
    "definitions_in_use",
    "find_operator",
    "find_unproven",
    "missing_processes",
    "open_cluster",
    "read_revisions",
    "read_rollouts",
    "sign",
]
