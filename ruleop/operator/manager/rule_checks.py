"""Checks rules as `ruleop check` does, before they are put in force.

The checks take a second of CPU and some tens of megabytes, and the operator must spend neither: custom resources would
wait, and Python returns little memory. So an interpreter is started for them. It is named here and not imported; it
gets the files of the rules on stdin, prints the errors and ends. It gives itself the lowest priority and its limits
(ruleop/authoring/checking/checking_process.py).

If it does not answer, the operator itself searches for mistakes that make rules unusable, and uses rules without any:
an operator that stands still because a check was killed would be worse than an error that it misses. The log and a
metric report it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
from typing import TYPE_CHECKING, Final

import structlog

from ruleop.errors import RuleopError, Site
from ruleop.language.rules import Finding, ProjectErrors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ruleop.language.rules import RuleFiles
    from ruleop.operator.telemetry.metrics import Metrics

    ErrorsOf = Callable[[RuleFiles], Awaitable[Sequence[Finding]]]
    """The errors of rules, including the mistakes for which they cannot be loaded. Raises NoVerdict."""

CHECKS: Final = "ruleop.authoring.checking.checking_process"
TIMEOUT: Final = 120.0  # seconds; on a machine with nothing to spare, a second of CPU takes a while


class NoVerdict(RuleopError):  # noqa: N818 - says nothing about the rules
    """The checks were not finished."""


class RuleChecks:
    def __init__(self, errors_of: ErrorsOf, metrics: Metrics, *, variables: Mapping[str, str]) -> None:
        """`variables`: those that the rules can read."""
        self.errors_of, self.metrics, self.variables = errors_of, metrics, variables
        self.log = structlog.get_logger()

    async def errors(self, files: RuleFiles) -> Sequence[Finding]:
        """Raises NoVerdict."""
        try:
            errors = await self.errors_of(files)
        except NoVerdict:
            self.metrics.rule_checks.labels("unavailable").inc()
            raise
        self.metrics.rule_checks.labels("failed" if errors else "passed").inc()
        return errors

    async def require_sound(self, files: RuleFiles, checking: Awaitable[Sequence[Finding]] | None = None) -> None:
        """Raises ProjectErrors if the rules have errors. `checking`: their check, if it has begun."""
        try:
            errors = await (self.errors(files) if checking is None else checking)
        except NoVerdict as reason:
            errors = await asyncio.to_thread(mistakes_in, files, self.variables)
            if not errors:
                self._using(reason)
        if errors:
            raise ProjectErrors(errors)

    async def report(self, checking: Awaitable[Sequence[Finding]]) -> None:
        """Logs the errors of rules that are in force whatever the checks find."""
        try:
            errors = await checking
        except NoVerdict as reason:
            self._using(reason)
            return
        if errors:
            message = "the rules fail their checks; using them, because they were in force"
            self.log.error(message, errors=str(ProjectErrors(errors)))

    def _using(self, reason: NoVerdict) -> None:
        self.log.warning("rules not checked; using them", error=str(reason))


async def no_errors(_: RuleFiles) -> Sequence[Finding]:
    """For an operator whose rules are not checked."""
    return ()


def mistakes_in(files: RuleFiles, variables: Mapping[str, str]) -> Sequence[Finding]:
    """The errors of rules that cannot be used."""
    # Only an operator for which no process could check the rules loads the checks itself.
    from ruleop.language.rules.checking import checked  # noqa: PLC0415

    try:
        checked(files, environ=variables)
    except ProjectErrors as errors:
        return errors.errors
    return ()


async def all_errors(found: ProjectErrors, files: RuleFiles, variables: Mapping[str, str]) -> ProjectErrors:
    """All errors of rules that cannot be loaded, of which loading found some."""
    with contextlib.suppress(NoVerdict):
        return ProjectErrors(await errors_by_process(files, variables) or found.findings)
    return ProjectErrors(await asyncio.to_thread(mistakes_in, files, variables) or found.findings)


async def errors_by_process(files: RuleFiles, variables: Mapping[str, str]) -> Sequence[Finding]:
    """`variables`: those that the rules can read."""
    request = {
        "root": files.root,
        "files": dict(files.texts),
        "unreadable": [dataclasses.asdict(each) for each in files.unreadable],
        "variables": dict(variables),
    }
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
    return [Finding(**{**each, "site": Site(**each["site"])}) for each in json.loads(answer)]


def _reason(status: int, complaint: bytes) -> str:
    """Without the texts of exceptions, which may quote the rules."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2].partition(":")[0]
    return f"exit status {status}: {last}" if last else f"exit status {status}"
