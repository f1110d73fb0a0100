"""A TCP proxy in front of several servers."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading

LOOPBACK = "127.0.0.1"


class Relay:
    """Leads each connection to the next of these ports."""

    def __init__(self, *ports: int) -> None:
        self._turn = itertools.cycle(ports)
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """Ends all connections. Who connects again may get another server."""
        for pair in tuple(self._pairs):
            _shut(*pair)

    def close(self) -> None:
        _shut(self._listener)
        self._listener.close()
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # it is closed
            server = socket.create_connection((LOOPBACK, next(self._turn)))
            pair = client, server
            self._pairs.add(pair)
            for one, other in (pair, pair[::-1]):
                thread = threading.Thread(target=self._pump, args=(one, other, pair))
                self._threads.append(thread)
                thread.start()

    def _pump(self, one: socket.socket, other: socket.socket, pair: tuple[socket.socket, socket.socket]) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        _shut(*pair)
        self._pairs.discard(pair)
        one.close()


def _shut(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
