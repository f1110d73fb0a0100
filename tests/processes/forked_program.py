"""A program that is really another: a fork of the fork server, which has this one's arguments, streams, folder and
environment.

It forwards signals, which takes a moment, and ends as the fork does. When it is killed, so is the fork. Arguments: the
socket of the fork server, and those of the program.
"""

import contextlib
import os
import signal
import socket
import sys

MESSAGE = 1 << 17


def main() -> None:
    # First of all, as the socket gets the number of a stream that is closed.
    streams = [number for number in range(3) if is_open(number)]
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(sys.argv[1])
    request = {
        "arguments": sys.argv[2:],
        "folder": os.getcwd(),  # noqa: PTH109 - pathlib would take longer to import than all of this
        "environment": dict(os.environ),
        "streams": streams,
    }
    forwarded = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
    socket.send_fds(server, [repr(request).encode()], streams)
    for number in streams:  # what a fork closes is closed
        os.close(number)
    pid = int(server.recv(MESSAGE))
    for each in forwarded:
        signal.signal(each, lambda number, _: forward(number, pid))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
    status = int(server.recv(MESSAGE) or 70)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def forward(number: int, pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)


def is_open(number: int) -> bool:
    with contextlib.suppress(OSError):
        os.fstat(number)
        return True
    return False


main()
