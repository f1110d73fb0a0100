"""Certificates for tests: an authority, a server on 127.0.0.1, and clients."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


class Certificates:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run(
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=authority",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
        )
        self.sign("server", "subjectAltName=IP:127.0.0.1,DNS:kube.example.com")

    def sign(
        self, name: str, extension: str = "extendedKeyUsage=clientAuth", *, group: str = "", days: int = 2
    ) -> None:
        """Makes `name`.crt and `name`.key; with a negative number of days, the certificate has ended."""
        self._run(
            "req",
            "-new",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            f"/CN={name}/O={group}" if group else f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
        )
        (self.folder / f"{name}.ext").write_text(extension)
        self._run(
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            str(days),
            "-extfile",
            f"{name}.ext",
            "-out",
            f"{name}.crt",
        )

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("server.crt"), self.path("server.key"))
        context.load_verify_locations(self.path("ca.crt"))
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)
