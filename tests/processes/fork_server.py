"""Starts programs quickly: a process that has imported ruleop forks each of them.

A start takes twenty milliseconds of CPU instead of four hundred, and each program is a process of its own, which a test
may kill as the crash of a node does. It has the streams, the folder and the environment of the request, and ends as an
interpreter does. Tests of imports and of the start of the interpreter must start one themselves.

A request is one message on a Unix socket: a literal of Python, with the open ones of the three streams. The answers are
the pid and, at the end, the exit status. When the client closes the connection before that, the program is killed. Run
as a program, this file is the server.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import io
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, NoReturn, Self, TextIO

# Several versions of ruleop may be installed; this is the one of these tests.
ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path(__file__).with_name("forked_program.py")
MESSAGE = 1 << 17  # bytes; above an environment, below what a socket sends at once
OWNER = 0  # the server's stdin: when the process that started it ends, it ends with its programs
STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}


class ForkServer:
    """Starts its process with the first program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._programs: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(
            prefix="fork-"
        )  # a short path: that of a socket has at most 107 bytes
        self._address = f"{self._folder.name}/socket"
        return self

    def __exit__(self, *_: object) -> None:
        for program in self._programs:
            program.close()
        if self._server is not None:
            self._server.communicate(timeout=30)
        self._folder.cleanup()

    def command(self, *arguments: str) -> list[str]:
        """What a shell runs instead of `ruleop`."""
        self._start_server()
        # Without site-packages and the settings of the environment Python starts sooner.
        return [sys.executable, "-I", "-S", str(CLIENT), self._address, *arguments]

    def start(self, arguments: Sequence[str], log: Path, clock: Path) -> int:
        """The pid of an operator. Its wall clock is shifted by as many seconds as the file `clock` says at the moment,
        if there is one."""
        self._start_server()
        request = {
            "arguments": list(arguments),
            "folder": str(Path.cwd()),
            "environment": {"PATH": os.environ.get("PATH", ""), "HOME": str(log.parent), "RULEOP_DEBUG": "1"},
            "streams": [0, 1, 2],
            "clock": str(clock),
        }
        program = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program.connect(self._address)
        with Path(os.devnull).open() as nothing, log.open("a") as file:
            socket.send_fds(program, [repr(request).encode()], [nothing.fileno(), file.fileno(), file.fileno()])
        with self._lock:
            self._programs.append(program)
        return int(program.recv(MESSAGE))

    def _start_server(self) -> None:
        with self._lock:
            if self._server is not None:
                return
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(self._address)
                listener.listen(128)
                descriptor = listener.fileno()
                self._server = subprocess.Popen(
                    [sys.executable, __file__, str(descriptor)],
                    stdin=subprocess.PIPE,
                    pass_fds=[descriptor],
                    env={**os.environ, "PYTHONPATH": str(ROOT)},
                )


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@dataclass(frozen=True, slots=True)
class Request:
    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    streams: Sequence[int]
    clock: str | None = None


@dataclass(slots=True)
class Connection:
    """Of a program: its pid is 0 until it is started."""

    socket: socket.socket
    pid: int = 0


class Server:
    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(OWNER, selectors.EVENT_READ)

    def serve(self) -> tuple[Request, list[int]]:
        """Returns in each fork, with what it is to run."""
        while True:
            for key, _ in self._selector.select():
                connection: Connection | None = key.data
                if key.fileobj == OWNER:
                    self._end()
                elif connection is None:
                    self._accept()
                elif key.fileobj is not connection.socket:
                    self._ended(key.fd, connection)
                elif connection.pid:
                    self._abandoned(connection)
                elif found := self._start(connection):
                    return found

    def _end(self) -> NoReturn:
        for key in self._selector.get_map().values():
            if key.data is not None and key.fileobj is not key.data.socket:
                os.kill(key.data.pid, signal.SIGKILL)
        sys.exit()

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        self._selector.register(accepted, selectors.EVENT_READ, Connection(accepted))

    def _start(self, connection: Connection) -> tuple[Request, list[int]] | None:
        message, descriptors, _, _ = socket.recv_fds(connection.socket, MESSAGE, len(STREAMS))
        if not message:  # it was killed before it asked
            self._selector.unregister(connection.socket)
            connection.socket.close()
            return None
        request = Request(**ast.literal_eval(message.decode()))
        pid = os.fork()
        if not pid:
            self._close()
            return request, descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        connection.pid = pid
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, connection)
        self._answer(connection, pid)
        return None

    def _abandoned(self, connection: Connection) -> None:
        """The program is killed, as nobody waits for it; its end is noticed as any other."""
        self._selector.unregister(connection.socket)
        os.kill(connection.pid, signal.SIGKILL)

    def _ended(self, process: int, connection: Connection) -> None:
        self._selector.unregister(process)
        os.close(process)
        _, status = os.waitpid(connection.pid, 0)
        self._answer(connection, os.waitstatus_to_exitcode(status))
        with contextlib.suppress(KeyError):
            self._selector.unregister(connection.socket)
        connection.socket.close()

    @staticmethod
    def _answer(connection: Connection, number: int) -> None:
        with contextlib.suppress(OSError):  # nobody waits for it any more
            connection.socket.send(str(number).encode())

    def _close(self) -> None:
        """What a fork has of the server. It must not unregister anything, as it shares the selector's list."""
        for key in list(self._selector.get_map().values()):
            if not isinstance(key.fileobj, int):
                key.fileobj.close()  # type: ignore[attr-defined]
            elif key.fileobj != OWNER:  # which the program's stdin replaces
                os.close(key.fileobj)
        self._selector.close()


def import_everything() -> None:
    """What commands import when they run is imported here, once."""
    package = importlib.import_module("ruleop")
    for module in pkgutil.walk_packages(package.__path__, "ruleop."):
        if not module.name.startswith("ruleop.__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, all of it


def become(request: Request, descriptors: Sequence[int]) -> None:
    """This process is now as a new one of the request."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = ["ruleop", *request.arguments]
    given = dict(zip(request.streams, descriptors, strict=True))
    for number, name in STREAMS.items():
        _open_stream(number, name, given.get(number))
    if request.clock:
        _shift_clock(Path(request.clock))
    _check_rules_here()


def _open_stream(number: int, name: str, descriptor: int | None) -> None:
    """As an interpreter does it: a closed stream is None."""
    before: TextIO = getattr(sys, name)
    stream = None
    if descriptor is None:
        os.close(number)
    else:
        os.dup2(descriptor, number)
        os.close(descriptor)
        file: Any = open(number, "rb" if name == "stdin" else "wb", closefd=False)  # noqa: SIM115 - a descriptor
        by_line = name == "stderr" or file.isatty()
        stream = io.TextIOWrapper(file, encoding=before.encoding, errors=before.errors, line_buffering=by_line)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def _shift_clock(file: Path) -> None:
    """The wall clock; the monotonic one is what it is."""
    right, real = time.time, datetime

    def shifted_time() -> float:
        return right() + (float(file.read_text()) if file.exists() else 0.0)

    class ShiftedDatetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return real.fromtimestamp(shifted_time(), tz)

    time.time = shifted_time
    for module in list(sys.modules.values()):
        if getattr(module, "datetime", None) is real:
            module.datetime = ShiftedDatetime  # type: ignore[attr-defined]


def _check_rules_here() -> None:
    """An operator checks its rules itself: a new interpreter, of the lowest priority, would take a second of CPU for
    the same verdict. tests/operator/rules/test_rule_process.py starts one."""
    run = importlib.import_module("ruleop.cli.run")
    run.read_by_process = importlib.import_module("ruleop.authoring.dev").read_here


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the tests end first
    import_everything()
    become(*Server(socket.socket(fileno=int(sys.argv[1]))).serve())
    from ruleop.cli import main

    main()
