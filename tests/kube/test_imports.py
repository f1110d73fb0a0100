"""The package `kubernetes` is imported where a kubeconfig is read, and nowhere else: a pod does without it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.kube.certificates import Certificates

if TYPE_CHECKING:
    from pathlib import Path

COMMON = """
import asyncio, sys
from pathlib import Path
import ruleop.operator.engine.manager.manager
from ruleop.operator.kube.auth.credentials import find_credentials
folder = Path(sys.argv[1])
"""


def run_script(script: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", COMMON + script, str(folder)], check=True, timeout=60)


def test_a_pod_never_imports_kubernetes(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    (tmp_path / "ca.crt").write_bytes(Certificates(tmp_path).authority.read_bytes())
    script = """
environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
credentials = find_credentials(environ=environ, service_account=folder)
access = asyncio.run(credentials.load())
assert (access.server, access.authorization) == ("https://10.0.0.1:443", "Bearer x")
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"kubernetes", "aiohttp", "requests", "pydantic"}, loaded
"""
    run_script(script, tmp_path)


def test_a_kubeconfig_imports_no_generated_model_and_no_aiohttp(tmp_path: Path) -> None:
    cluster = "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]"
    context = "contexts: [{name: one, context: {cluster: c}}]"
    (tmp_path / "config").write_text(f"{cluster}\n{context}\ncurrent-context: one\n")
    script = """
asyncio.run(find_credentials(str(folder / "config")).load())
assert "kubernetes.config" in sys.modules
assert not [name for name in sys.modules if name.startswith("kubernetes.client.models.")]
assert "aiohttp" not in sys.modules
"""
    run_script(script, tmp_path)
