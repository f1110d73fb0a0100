"""The package `kubernetes` is imported for a login by the provider `gcp`, and for nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.operator.wire.certificates import Certificates
from tests.waiting import PATIENCE

COMMON = """
import asyncio, sys
from pathlib import Path
import ruleop.operator.manager.manager
from ruleop.operator.wire.auth.credentials import find_credentials
folder = Path(sys.argv[1])
"""


def run_script(script: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-c", COMMON + script, str(folder)], check=True, timeout=PATIENCE)


@pytest.mark.slow
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


@pytest.mark.slow
def test_only_a_login_by_gcp_imports_kubernetes(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: one, context: {cluster: c}}, {name: two, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {auth-provider: {name: gcp, config: {access-token: x}}}}]\n"
    )
    script = """
asyncio.run(find_credentials(str(folder / "config"), "one").load())
assert not [name for name in sys.modules if name.partition(".")[0] in ("kubernetes", "aiohttp")]
assert asyncio.run(find_credentials(str(folder / "config"), "two").load()).authorization == "Bearer x"
assert "kubernetes.config" in sys.modules
assert not [name for name in sys.modules if name.startswith("kubernetes.client.models.")]
"""
    run_script(script, tmp_path)


@pytest.mark.slow
def test_an_operator_without_the_page_imports_neither_it_nor_the_tools_that_it_shows() -> None:
    script = """
import ruleop.cli.run
import ruleop.operator.manager.manager
loaded = [name for name in sys.modules if name.startswith(("aiohttp", "ruleop.page", "ruleop.authoring"))]
assert not loaded, loaded
from ruleop.cli.run import _page
_page("127.0.0.1:8082")
assert "aiohttp.web" in sys.modules and "ruleop.page.serving" in sys.modules
"""
    run_script(script, Path())


@pytest.mark.slow
def test_a_session_without_the_page_does_not_import_it() -> None:
    script = """
import ruleop.cli.dev
assert not [name for name in sys.modules if name.startswith(("aiohttp", "ruleop.page"))]
"""
    run_script(script, Path())
