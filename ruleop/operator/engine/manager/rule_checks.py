"""Checks rules as `ruleop check` does, before they are put in force.

The checks take a second of CPU and some tens of megabytes, and the operator must spend neither: custom resources would
wait, and Python returns little memory. So an interpreter is started for them. It is named here and not imported; it
gets the files that were loaded on stdin, prints the errors and ends. It gives itself the lowest priority and its limits
(ruleop/authoring/checking/checking_process.py).

If it does not answer, the rules are used: they have loaded, and an operator that stands still because a check was
killed would be worse than a mistake that it misses. The log and a metric report it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import TYPE_CHECKING, Final

import structlog

from ruleop.core.errors import RuleopError, Site
from ruleop.core.rules import Finding, ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ruleop.core.rules import Project
    from ruleop.operator.engine.telemetry.metrics import Metrics

    ErrorsOf = Callable[[Project], Awaitable[Sequence[Finding]]]
    """The errors of rules that load. Raises NoVerdict."""

CHECKS: Final = "ruleop.authoring.checking.checking_process"
TIMEOUT: Final = 120.0  # seconds; on a machine with nothing to spare, a second of CPU takes a while


class NoVerdict(RuleopError):  # noqa: N818 - says nothing about the rules
    """The checks were not finished."""


class RuleChecks:
    def __init__(self, errors_of: ErrorsOf, metrics: Metrics) -> None:
        self.errors_of, self.metrics = errors_of, metrics
        self.log = structlog.get_logger()

    async def errors(self, project: Project) -> Sequence[Finding]:
        try:
            errors = await self.errors_of(project)
        except NoVerdict as reason:
            self.metrics.rule_checks.labels("unavailable").inc()
            self.log.warning("rules not checked; using them", error=str(reason))
            return ()
        self.metrics.rule_checks.labels("failed" if errors else "passed").inc()
        return errors

    async def require_sound(self, project: Project) -> None:
        """Raises ProjectErrors if the rules have errors."""
        if errors := await self.errors(project):
            raise ProjectErrors(errors)

    async def report(self, checking: Awaitable[Sequence[Finding]]) -> None:
        """Logs the errors of rules that are in force whatever the checks find."""
        if errors := await checking:
            message = "the rules fail their checks; using them, because they were in force"
            self.log.error(message, errors=str(ProjectErrors(errors)))


async def no_errors(_: Project) -> Sequence[Finding]:
    """For an operator whose rules are not checked."""
    return ()


async def errors_by_process(project: Project, variables: Mapping[str, str]) -> Sequence[Finding]:
    """`variables`: those that the rules can read."""
    request = {"root": project.root, "files": dict(project.files), "variables": dict(variables)}
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", CHECKS),  # -P: nothing is imported from the current folder, that of the rules
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # an interrupt at a terminal is for the operator
        )
    except OSError as error:
        raise NoVerdict(f"cannot be started: {error.strerror}") from None
    try:
        async with asyncio.timeout(TIMEOUT):
            answer, complaint = await process.communicate(json.dumps(request).encode())
    except TimeoutError:
        raise NoVerdict(f"not finished after {TIMEOUT:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise NoVerdict(_reason(process.returncode, complaint))
    return [
        Finding(Site(each["path"], each["line"], each["column"]), each["message"], "error", each["code"])
        for each in json.loads(answer)
    ]


def _reason(status: int, complaint: bytes) -> str:
    """Without the texts of exceptions, which may quote the rules."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2].partition(":")[0]
    return f"exit status {status}: {last}" if last else f"exit status {status}"
