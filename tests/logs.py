"""What is logged, as tests read it: text on a stream, set up as `ruleop run` does."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import structlog
from structlog._config import BoundLoggerLazyProxy

LOGGING = "ruleop.operator.telemetry.logging"


@contextmanager
def captured_stderr() -> Iterator[io.StringIO]:
    """What a logger that is set up in this block writes to stderr."""
    text = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with patch(f"{LOGGING}.sys", SimpleNamespace(stderr=text, exc_info=sys.exc_info)):
        yield text
    root.handlers[:] = handlers
    root.setLevel(level)


def forget_set_up() -> None:
    """Reverts `set_up`, and what loggers of modules have kept of it: another test reads their lines in its own way."""
    structlog.reset_defaults()
    for name, module in list(sys.modules.items()):
        log = getattr(module, "log", None) if name.startswith("ruleop.") else None
        if isinstance(log, BoundLoggerLazyProxy):
            vars(log).pop("bind", None)
