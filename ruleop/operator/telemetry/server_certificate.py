"""The certificate of the metrics server, from two files that are replaced while the operator runs.

cert-manager and the kubelet replace both files; a server that keeps the old pair fails when it expires. A pair that
cannot be used (one file is new and the other one is not yet) leaves the previous one in force.
"""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING

import structlog

from ruleop.errors import RuleopError
from ruleop.files import MAX_CREDENTIAL, read_regular
from ruleop.operator.wire.http.access import Identity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = structlog.get_logger(__name__)

RECHECK = 1.0  # seconds; the files are read when a client connects, at most this often


class ServerCertificate:
    """Used by the thread that accepts connections, and by no other."""

    def __init__(self, certificate: Path, key: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises RuleopError if the pair cannot be used."""
        self._certificate, self._key = certificate, key
        self._clock = clock
        self._checked = clock()
        self._problem = ""  # the last one that was logged
        try:
            self._identity = self._read()
            self._context = _context(self._identity)
        except (OSError, ValueError) as error:
            raise RuleopError(f"the metrics certificate cannot be used: {self._reason(error)}") from error

    def context(self) -> ssl.SSLContext:
        if self._clock() - self._checked >= RECHECK:
            self._checked = self._clock()
            self._reload()
        return self._context

    def _reload(self) -> None:
        try:
            identity = self._read()
            if identity == self._identity:
                self._problem = ""
                return
            self._context = _context(identity)
        except (OSError, ValueError) as error:
            problem = self._reason(error)
            if problem != self._problem:
                log.warning("metrics certificate not reloaded; using the previous one", error=problem)
            self._problem = problem
            return
        self._identity, self._problem = identity, ""
        log.info("metrics certificate reloaded", certificate=str(self._certificate))

    def _read(self) -> Identity:
        return Identity(*(read_regular(file, MAX_CREDENTIAL) for file in (self._certificate, self._key)))

    def _reason(self, error: Exception) -> str:
        files = f"{self._certificate} and {self._key}"
        if isinstance(error, ssl.SSLError):  # its text names the place in OpenSSL
            return f"{files}: {(error.reason or 'not a certificate and its key').replace('_', ' ').lower()}"
        if isinstance(error, OSError):
            return f"{error.filename}: {error.strerror}"
        return f"{files}: {error}"


def _context(identity: Identity) -> ssl.SSLContext:
    """TLS 1.2 or later, with the ciphers that OpenSSL and the image's policy allow."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not identity.certificate.strip():
        raise ValueError("the certificate is empty")
    identity.present_in(context)
    return context
