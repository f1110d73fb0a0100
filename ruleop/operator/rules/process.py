"""Rules come from a process of their own, which loads and checks them as `ruleop check` does.

That takes a second of CPU and some tens of megabytes, and the operator must spend neither: custom resources would wait,
and Python returns little memory. So an interpreter is started for it, and the operator does not even import what reads
templates. The process is named here; it gets the files of a project on stdin, and answers with the rules as soon as
they can be used, and with their errors when everything is checked. It limits itself, and has the lowest priority once
the rules are sent (ruleop/authoring/rules_process.py).

If it does not answer, the operator itself loads the rules, searches for mistakes that make them unusable, and uses
rules without any: an operator that stands still because a check was killed would be worse than an error that it misses.
The log and a metric report it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from ruleop.errors import RuleopError, Site
from ruleop.language.rules import Finding, ProjectErrors
from ruleop.language.rules.transfer import SIZE_BYTES, PartsReader
from ruleop.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ruleop.language.rules import Project, RuleFiles
    from ruleop.operator.telemetry import Metrics

    Errors = asyncio.Future[Sequence[Finding]]
    """The errors of rules, once they are checked. It may fail with NoVerdict; the checks end if it is cancelled."""
    ReadRules = Callable[[RuleFiles], Awaitable["Reading"]]
    """Raises ProjectErrors for rules that cannot be used."""

T = TypeVar("T")

PROCESS: Final = "ruleop.authoring.rules_process"
_STDERR: Final = 2
LAST_WORDS: Final = 1.0  # seconds in which the pipes of a process that has exited are read, if another one keeps them
LONGEST_COMPLAINT: Final = 64 * 1024  # bytes of stderr that are kept
_ERROR: Final = re.compile(r"[\w.]{1,100}")  # the type of an exception
TIMEOUT: Final = 120.0  # seconds; on a machine with nothing to spare, a second of CPU takes a while


class NoVerdict(RuleopError):  # noqa: N818 - says nothing about the rules
    """The checks were not finished."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Rules that can be used, and may be being checked."""

    project: Project
    errors: Errors


class RuleChecks:
    """Counts and reports what checks find."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.log = structlog.get_logger()

    async def counted(self, errors: Errors) -> Sequence[Finding]:
        """Raises NoVerdict."""
        try:
            found = await errors
        except NoVerdict:
            self.metrics.rule_checks.labels("unavailable").inc()
            raise
        self.metrics.rule_checks.labels("failed" if found else "passed").inc()
        return found

    async def require_none(self, errors: Awaitable[Sequence[Finding]]) -> None:
        """Raises ProjectErrors if there are errors."""
        try:
            found = await errors
        except NoVerdict as reason:
            self._using(reason)
        else:
            if found:
                raise ProjectErrors(found)

    async def report(self, errors: Awaitable[Sequence[Finding]]) -> None:
        """Logs the errors of rules that are in force whatever the checks find."""
        try:
            found = await errors
        except NoVerdict as reason:
            self._using(reason)
        else:
            if found:
                message = "the rules fail their checks; using them, because they were in force"
                self.log.error(message, errors=str(ProjectErrors(found)))

    def _using(self, reason: NoVerdict) -> None:
        self.log.warning("rules not checked; using them", error=str(reason))


def found_errors(errors: Sequence[Finding] = ()) -> Errors:
    """The errors of rules that are checked, or none of rules that are not."""
    found: Errors = asyncio.get_running_loop().create_future()
    found.set_result(errors)
    return found


async def read_unchecked(files: RuleFiles, *, variables: Mapping[str, str]) -> Reading:
    """For an operator whose rules are not checked. `variables`: those that the rules can read."""
    from ruleop.language.rules.loading import build_unchecked  # noqa: PLC0415 - only tests do without checks

    return Reading(await asyncio.to_thread(build_unchecked, files, environ=variables), found_errors())


async def read_by_process(files: RuleFiles, *, variables: Mapping[str, str]) -> Reading:
    """Raises ProjectErrors for rules that cannot be used. `variables`: those that the rules can read."""
    rules: asyncio.Future[Project] = asyncio.get_running_loop().create_future()
    errors = asyncio.create_task(_errors_by_process(files, variables, rules), name="checks of the rules")
    try:
        both: set[asyncio.Future[Any]] = {rules, errors}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if rules.done():
            return Reading(rules.result(), errors)
        try:
            raise ProjectErrors(errors.result())
        except NoVerdict:
            return Reading(await asyncio.to_thread(_read_here, files, variables), errors)
    except asyncio.CancelledError:
        errors.cancel()
        await asyncio.gather(errors, return_exceptions=True)  # the process has ended
        raise


def _read_here(files: RuleFiles, variables: Mapping[str, str]) -> Project:
    # Only an operator for which no process could read the rules loads what reads and checks them.
    from ruleop.language.rules.checking import checked  # noqa: PLC0415

    return checked(files, environ=variables).for_operator()


async def _errors_by_process(
    files: RuleFiles, variables: Mapping[str, str], rules: asyncio.Future[Project]
) -> Sequence[Finding]:
    """Also gives the rules, if they can be used. Raises NoVerdict."""
    request = {
        "root": files.root,
        "files": dict(files.texts),
        "unreadable": [dataclasses.asdict(each) for each in files.unreadable],
        "variables": dict(variables),
    }
    loop = asyncio.get_running_loop()
    try:
        transport, process = await loop.subprocess_exec(
            _Process,
            *(sys.executable, "-P", "-m", PROCESS),  # -P: nothing is imported from the current folder, of the rules
            start_new_session=True,  # an interrupt at a terminal is for the operator
        )
    except (OSError, RuntimeError) as error:  # RuntimeError: no further thread can be started
        raise NoVerdict(f"cannot be started: {error.strerror if isinstance(error, OSError) else error}") from None
    try:
        async with asyncio.timeout(TIMEOUT):
            process.send(json.dumps(request).encode())
            parts = PartsReader()
            while part := await process.part():
                _read(parts.add, part)
            if parts.common is not None:
                rules.set_result(parts.project())
            return _read(_findings, await process.part())
    except asyncio.IncompleteReadError:
        raise NoVerdict(_reason(transport.get_returncode() or 0, process.complaint)) from None
    except TimeoutError:
        raise NoVerdict(f"not finished after {TIMEOUT:.0f} s") from None
    finally:
        transport.close()  # and ends it
        await process.exited.wait()


class _Process(asyncio.SubprocessProtocol):
    """The pipes of the process. A process that it started may keep them, so their end is not waited for."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self.complaint = b""  # the last of stderr
        self._transport: asyncio.SubprocessTransport
        self._answer = asyncio.StreamReader()
        self._has_ended = False

    def send(self, request: bytes) -> None:
        pipe = self._transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        pipe.write(request)
        pipe.write_eof()

    async def part(self) -> bytes:
        """The next part of its answer. Raises IncompleteReadError if it has ended without one."""
        size = int.from_bytes(await self._answer.readexactly(SIZE_BYTES))
        return await self._answer.readexactly(size)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self.complaint = (self.complaint + data)[-LONGEST_COMPLAINT:]
        elif not self._has_ended:
            self._answer.feed_data(data)

    def process_exited(self) -> None:
        self.exited.set()
        asyncio.get_running_loop().call_later(LAST_WORDS, self._end)

    def connection_lost(self, _: Exception | None) -> None:
        """It has exited, and nobody keeps a pipe."""
        self._end()

    def _end(self) -> None:
        self._has_ended = True
        self._answer.feed_eof()


def _read(read: Callable[[bytes], T], data: bytes) -> T:
    """Raises NoVerdict for what the process did not write: other programs may write to its stdout, such as those that
    an environment starts in each interpreter."""
    try:
        return read(data)
    except Exception:  # noqa: BLE001 - pickle raises anything
        raise NoVerdict("its answer cannot be read") from None


def _findings(answer: bytes) -> Sequence[Finding]:
    return [Finding(**{**each, "site": Site(**each["site"])}) for each in json.loads(answer)]


def _reason(status: int, complaint: bytes) -> str:
    """Without the texts of exceptions, which may quote the rules."""
    if status < 0:
        with contextlib.suppress(ValueError):  # some signals have no name
            return f"ended by {signal.Signals(-status).name}"
        return f"ended by signal {-status}"
    last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2].partition(":")[0]
    return f"exit status {status}: {last}" if _ERROR.fullmatch(last) else f"exit status {status}"
