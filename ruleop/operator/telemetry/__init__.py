"""Logs, metrics and probes of a running operator. Imports nothing from the rest of the engine."""

from ruleop.operator.telemetry import logging
from ruleop.operator.telemetry.http_server import (
    ServerCertificate,
    is_loopback,
    is_on,
    not_listening,
    resolve,
    split_address,
)
from ruleop.operator.telemetry.metrics import ControllerMetrics, Metrics
from ruleop.operator.telemetry.probes import Check, LoopWatchdog, Probes, call_on_loop, reviewed_by

__all__ = [
    "Check",
    "ControllerMetrics",
    "LoopWatchdog",
    "Metrics",
    "Probes",
    "ServerCertificate",
    "call_on_loop",
    "is_loopback",
    "is_on",
    "logging",
    "not_listening",
    "resolve",
    "reviewed_by",
    "split_address",
]
