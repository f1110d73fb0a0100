"""The commands of up.py: a cluster that stays up between commands, for trying things by hand.

A background process holds the cluster and a lock file. The lock, which the kernel drops with the process, is what says
whether a cluster is up, so no state can be outdated.
"""

# ruff: noqa: T201 - a command talks by printing

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from .build import BuildError, build, build_dir, cache_root
from .cluster import ControlPlane
from .process import ControlPlaneError
from .programs import PROGRAMS, program

STOP_TIMEOUT = 20.0


class _Paths:
    """The files of the user's cluster."""

    def __init__(self) -> None:
        self.folder = cache_root() / "cluster"
        self.lock = self.folder / "lock"
        self.log = self.folder / "serve.log"
        self.work = self.folder / "work"
        self.kubeconfig = self.folder / "kubeconfig"


def main(arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit status: 2 where building is impossible, 1 for what else went wrong."""
    parser = argparse.ArgumentParser(
        prog="up.py", description="A real Kubernetes control plane on this machine, on loopback only."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs into the cache, where they are missing")
    commands.add_parser("build-programs", help=f"build {', '.join(PROGRAMS)} into the cache, where they are missing")
    for name, text in (("up", "start a cluster in the background"), ("serve", "run a cluster until SIGTERM or Ctrl-C")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--no-controllers", action="store_true", help="only etcd and the API server")
    commands.add_parser("down", help="stop the cluster and throw away what was in it")
    commands.add_parser("status", help="say whether a cluster is up; exit status 1 when not")
    commands.add_parser("kubectl", help="run the kubectl of the same version against the cluster")
    # kubectl's own options are not for argparse, which would take them for its own.
    own = arguments[:1] if arguments[:1] == ["kubectl"] else arguments
    options = parser.parse_args(own)
    try:
        match options.command:
            case "build":
                print(build())
                return 0
            case "build-programs":
                for name in PROGRAMS:
                    print(program(name))
                return 0
            case "up":
                return _up(controllers=not options.no_controllers)
            case "serve":
                return _serve(controllers=not options.no_controllers)
            case "down":
                return _down()
            case "kubectl":
                _kubectl(arguments[1:])
            case _:
                return _status()
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1


def _owner(paths: _Paths) -> int | None:
    """The process that holds the cluster, or None."""
    with contextlib.suppress(FileNotFoundError), paths.lock.open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            # The file is empty for a moment, between taking the lock and writing the number.
            return int(lock.read() or 0)
    return None


def _up(*, controllers: bool) -> int:
    paths = _Paths()
    if _owner(paths) is not None:
        print("A cluster is up already.", file=sys.stderr)
        return _status()
    build()  # in the foreground, where its progress is seen
    paths.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    paths.kubeconfig.unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).with_name("up.py")), "serve"]
    if not controllers:
        command.append("--no-controllers")
    begun = time.monotonic()
    with paths.log.open("wb") as log:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=paths.folder,
            start_new_session=True,
        )
    while not paths.kubeconfig.exists():
        if server.poll() is not None:
            raise ControlPlaneError(
                f"The cluster did not start.\n{paths.log.read_text(encoding='utf-8', errors='replace').strip()}"
            )
        time.sleep(0.05)
    print(f"# Up after {time.monotonic() - begun:.1f} s.", file=sys.stderr)
    return _status()


def _serve(*, controllers: bool) -> int:
    """Holds the cluster in this process until a signal comes or one of its programs dies."""
    paths = _Paths()
    paths.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)
        # A second signal of any kind must not interrupt the tidying up.
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(0)

    with paths.lock.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ControlPlaneError("A cluster is up already.") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        # An existing work folder is that of a cluster that has ended: this process has the lock.
        shutil.rmtree(paths.work, ignore_errors=True)
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, stop)
        try:
            with ControlPlane(controllers=controllers, work=paths.work) as plane:
                ready = paths.kubeconfig.with_suffix(".new")
                shutil.copy(plane.kubeconfig(), ready)  # with its mode: it holds a token
                ready.rename(paths.kubeconfig)  # `up` waits for this file, so it must appear complete
                while not stopping:
                    plane.check()
                    time.sleep(1.0)
        finally:
            paths.kubeconfig.unlink(missing_ok=True)
    return 0


def _down() -> int:
    paths = _Paths()
    owner = _owner(paths)
    if owner is None:
        print("No cluster is up.")
        return 0
    if owner:
        os.kill(owner, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT
    while _owner(paths) is not None:
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"The cluster's process {owner} does not stop; its log is {paths.log}.")
        time.sleep(0.05)
    print("The cluster is down.")
    return 0


def _status() -> int:
    paths = _Paths()
    owner = _owner(paths)
    if owner is None:
        print("No cluster is up.")
        return 1
    if not paths.kubeconfig.exists():
        print(f"A cluster is starting (process {owner}).")
        return 1
    # Only this line on standard output is not a comment, so that a shell may eval it.
    print(f"# A cluster is up (process {owner}); its logs and other users' kubeconfigs are in {paths.work}")
    print(f"export KUBECONFIG={paths.kubeconfig}")
    return 0


def _kubectl(arguments: Sequence[str]) -> NoReturn:
    """Becomes kubectl, so that signals and the exit status are its own."""
    paths = _Paths()
    if _owner(paths) is None or not paths.kubeconfig.exists():
        raise ControlPlaneError("No cluster is up; start one with: up.py up")
    program = str(build_dir() / "kubectl")
    os.execv(program, [program, f"--kubeconfig={paths.kubeconfig}", *arguments])  # noqa: S606 - no shell is the point
