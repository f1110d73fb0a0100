"""Rollouts of edits of the rules: the record on the API server, which rules a custom resource has by it, and the loop
of the leader that releases the next ones."""

from ruleop.operator.rollouts.rollout_driver import OWN_LABEL, RolloutDriver, watch_of_record
from ruleop.operator.rollouts.rollouts import (
    Rollouts,
    RolloutStore,
    decode_records,
    kind_of,
    prefix_of,
    rollouts_key,
    watch_key,
)

__all__ = [
    "OWN_LABEL",
    "RolloutDriver",
    "RolloutStore",
    "Rollouts",
    "decode_records",
    "kind_of",
    "prefix_of",
    "rollouts_key",
    "watch_key",
    "watch_of_record",
]
