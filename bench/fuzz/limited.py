"""Measures cases in forked processes with limits of CPU time and memory.

This process has everything imported, so a fork takes milliseconds; a case that exceeds a limit ends only its own
process, which is a finding. A process reports before each pass, so that what ended it is known.
"""

from __future__ import annotations

import faulthandler
import math
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from bench.fuzz.case import Case
from bench.fuzz.one_pass import MEBIBYTE, PREPARING, TEXT, TEXT_FACTOR, Passes, Reading, Samples, UnusableError
from ruleop.cli.run import collect_garbage_seldom

GRACE: Final = 20.0
"""Factor of wall time over CPU time before a process is stopped: other work runs on this machine."""

_PLACE: Final = re.compile(rb'File "[^"]*/ruleop/(?!bench/)([^"]*)\.py", line \d+,? in (\S+)')
"""A line of a traceback by faulthandler, of a function of ruleop."""

PASSES: Final = 5


@dataclass(frozen=True)
class Limits:
    seconds: int = 4  # of CPU, for each pass
    enough: float = 2.0  # seconds of a pass after which the others are not measured
    mib: int = 1024  # beyond what this process has mapped


Measure = Callable[[Case, Limits, Callable[[Reading], None]], Reading]


def passes(case: Case, limits: Limits, announce: Callable[[Reading], None]) -> Reading:
    """The measurement of the search."""
    samples, found = Samples(), Reading()

    def tell(reading: Reading) -> None:
        nonlocal found
        found = reading
        found.hot = samples.hot
        announce(found)

    def sample(_: int, frame: Any) -> None:
        samples.take(frame)
        total = samples.counts.total()
        if total >= 64 and total & (total - 1) == 0:  # rarely, for a process that will be stopped
            tell(found)

    collect_garbage_seldom()
    signal.signal(signal.SIGPROF, sample)
    work = Passes(case, tell, enough=limits.enough)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    reading = work.run()
    signal.setitimer(signal.ITIMER_PROF, 0)
    reading.hot = samples.hot
    return reading


class Process:
    """A forked process that measures one case."""

    def __init__(self, case: Case, limits: Limits, measure: Measure = passes) -> None:
        self.limits, self.text, self.started = limits, b"", time.monotonic()
        self.reader, writer = os.pipe()
        self.id = os.fork()
        if self.id == 0:
            os.close(self.reader)
            _measure(case, limits, measure, writer)
        os.close(writer)

    def fileno(self) -> int:
        return self.reader

    @property
    def late(self) -> bool:
        return time.monotonic() - self.started > GRACE * PASSES * (self.limits.seconds + 1)

    def read(self) -> bool:
        """Reads what there is. Whether the process has ended."""
        part = os.read(self.reader, 65536)
        self.text += part
        return not part

    def stop(self) -> None:
        os.kill(self.id, signal.SIGKILL)

    def result(self) -> Reading | None:
        """The reading; None if the case cannot be used. Waits for the end of the process."""
        os.close(self.reader)
        _, status, usage = os.wait4(self.id, 0)
        lines = [line for line in self.text.split(b"\n") if line == b"null" or line.startswith(b"{")]
        if lines and lines[-1] == b"null":
            return None
        reading = Reading(**orjson.loads(lines[-1])) if lines else Reading()
        if place := _PLACE.search(self.text):
            reading.hot = f"{place[1].decode()}:{place[2].decode()}"
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGXCPU and not lines:
                return None  # before the first pass: a resource that is far too large
            if number == signal.SIGXCPU and reading.running == PREPARING:
                return reading
            limit = {signal.SIGXCPU: "CPU limit", signal.SIGKILL: "time limit"}.get(number)  # type: ignore[call-overload]
            reading.failed = reading.failed or limit or f"signal {number}"
            seconds = usage.ru_utime + usage.ru_stime - sum(reading.phases.values())
            if seconds > reading.seconds:
                reading.seconds, reading.where = seconds, reading.running
        elif os.WEXITSTATUS(status):
            reading.failed = reading.failed or f"exit status {os.WEXITSTATUS(status)}"
        return reading


def _measure(case: Case, limits: Limits, measure: Measure, writer: int) -> None:
    """The life of a forked process."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        mapped = int(open("/proc/self/statm", encoding="ascii").read().split()[0]) * resource.getpagesize()  # noqa: SIM115, PTH123
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, resource.RLIM_INFINITY))
        allowed = mapped + limits.mib * MEBIBYTE
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))

        begun = ""

        def announce(reading: Reading) -> None:
            nonlocal begun
            if reading.running != begun:
                begun, seconds = reading.running, limits.seconds
                seconds *= TEXT_FACTOR if begun.startswith(TEXT) else 1
                until = math.ceil(time.process_time()) + seconds
                resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
            os.write(writer, orjson.dumps(reading.as_json()) + b"\n")

        # The place of a long call into C, in which no Python code runs that could take samples, or of a crash.
        faulthandler.enable(writer, all_threads=False)
        faulthandler.register(signal.SIGXCPU, writer, all_threads=False, chain=True)
        try:
            announce(measure(case, limits, announce))
        except (UnusableError, MemoryError):  # in a pass, the latter is a reading
            os.write(writer, b"\nnull\n")
        except Exception as error:  # noqa: BLE001 - an internal error beside the passes: when the rule is loaded
            place = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip().encode()
            announce(Reading(failed=f"{type(error).__name__}: {str(error)[:200]}"))
            os.write(writer, place + b"\n")
        status = 0
    except BaseException as error:  # noqa: BLE001 - nothing may return into the copied search
        os.write(2, f"bench.fuzz: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def run(case: Case, limits: Limits, measure: Measure = passes) -> Reading | None:
    """The reading of one case."""
    sys.stdout.flush()
    process = Process(case, limits, measure)
    while not wait([process], 1.0):
        pass
    return process.result()


def wait(processes: list[Process], seconds: float) -> list[Process]:
    """The processes that have ended; waits up to `seconds`."""
    ready, _, _ = select.select(processes, [], [], seconds)
    ended = [each for each in ready if each.read()]
    for each in processes:
        if each.late and each not in ended:
            each.stop()
    return ended
