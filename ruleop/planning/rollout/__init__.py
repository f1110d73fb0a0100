"""Rollouts: an edit of the rules reaches the custom resources in waves. State machines without I/O and without a clock;
the operator and the command `ruleop rollout` drive them."""

from ruleop.planning.rollout.rollout_record import (
    SHORT,
    RecordError,
    Refused,
    RolloutRecord,
    RolloutRevision,
    begun,
    decode,
    encode,
    member_of,
    paused,
    resumed,
    reverted,
)
from ruleop.planning.rollout.waves import WaveView, advance, condition_of, in_order, size_of_wave

__all__ = [
    "SHORT",
    "RecordError",
    "Refused",
    "RolloutRecord",
    "RolloutRevision",
    "WaveView",
    "advance",
    "begun",
    "condition_of",
    "decode",
    "encode",
    "in_order",
    "member_of",
    "paused",
    "resumed",
    "reverted",
    "size_of_wave",
]
