"""The process that loads and checks the rules of an operator. It gets the files of a project as JSON on stdin. To
stdout it writes the rules in parts, as soon as they can be used, and behind an empty part their errors as JSON. Each
part is behind its size.

It shares a container with the operator, whose memory and time it must not take. So it limits itself, and gives way to
the operator once the rules are sent; beyond a limit it ends, and the operator has no verdict.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ruleop.errors import Site
from ruleop.language.rules import Finding, ProjectErrors, RuleFiles
from ruleop.language.rules.checking import checked
from ruleop.language.rules.transfer import SIZE_BYTES, to_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_MEMORY: Final = 256 * 1024 * 1024  # bytes
MOST_TIME: Final = 60  # seconds of CPU
MARGIN: Final = 16 * 1024 * 1024  # bytes of the container that are left to the operator
_CGROUP: Final = Path("/sys/fs/cgroup")
_LOWEST_PRIORITY: Final = 19


def main() -> None:
    limit()
    gc.disable()  # until the checks: it would find nothing in the trees of templates, and take a quarter of the time
    request = json.load(sys.stdin)
    unreadable = [Finding(**{**each, "site": Site(**each["site"])}) for each in request["unreadable"]]
    errors = _errors(RuleFiles(request["root"], request["files"], tuple(unreadable)), request["variables"])
    _write(json.dumps([dataclasses.asdict(each) for each in errors]).encode())


def _errors(files: RuleFiles, variables: Mapping[str, str]) -> Sequence[Finding]:
    try:
        loaded = checked(files, environ=variables)
    except ProjectErrors as errors:
        _write(b"")
        return errors.errors
    for part in to_parts(loaded.for_operator()):
        _write(part)
    _write(b"")
    os.nice(_LOWEST_PRIORITY)  # an operator that starts waits for the rules, and for their errors only if they are new
    gc.freeze()
    gc.enable()  # checks leave cycles, for each watch
    from ruleop.authoring.checking import rule_errors  # noqa: PLC0415 - after the rules are sent

    return rule_errors(loaded)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(len(data).to_bytes(SIZE_BYTES) + data)
    sys.stdout.buffer.flush()


def limit(cgroup: Path = _CGROUP) -> None:
    """Where the system does not know a limit, it does without."""
    limits = [(resource.RLIMIT_CPU, MOST_TIME), (resource.RLIMIT_DATA, min([MOST_MEMORY, *_memory_left(cgroup)]))]
    for what, most in limits:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    with contextlib.suppress(OSError):  # if the memory ends nevertheless, it ends before the operator
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _memory_left(cgroup: Path) -> Iterable[int]:
    """The bytes that the container has left, if it has a limit. What the system can take back from files is free."""
    try:
        most, used = (int((cgroup / f"memory.{each}").read_text("ascii")) for each in ("max", "current"))
        statistics = dict(line.split() for line in (cgroup / "memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):
        return
    yield max(0, most - used + int(statistics.get("inactive_file", 0)) - MARGIN)


if __name__ == "__main__":
    main()
