"""The operator and a cluster in memory in one process, for `ruleop dev`."""

from ruleop.authoring.dev.dev_session import DevSession, DevSettings, DevView, SessionPage, read_here

__all__ = [
    "DevSession",
    "DevSettings",
    "DevView",
    "SessionPage",
    "read_here",
]
