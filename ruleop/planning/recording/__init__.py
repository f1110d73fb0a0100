"""The recording of passes, and their replay: what `ruleop run --record` writes, without values of Secrets."""

from ruleop.planning.recording.recording import Recorder, Replay, read_document

__all__ = [
    "Recorder",
    "Replay",
    "read_document",
]
