"""Reading credentials costs no import of the generated models, and nobody else notices how."""

from __future__ import annotations

import subprocess
import sys

COMMON = """
import sys
from ruleop.kube.auth.kubernetes_config import official
"""


def ran(script: str) -> None:
    subprocess.run([sys.executable, "-c", COMMON + script], check=True, timeout=60)


def test_the_models_are_not_imported() -> None:
    ran("""
assert callable(official().kube_config.KubeConfigLoader)
assert callable(official().incluster_config.InClusterConfigLoader)
assert not [name for name in sys.modules if name.partition(".")[0] == "kubernetes"], "nothing half imported is left"
""")


def test_what_only_a_login_by_oidc_needs_is_imported_for_one() -> None:
    ran("""
loader = official().kube_config
assert "aiohttp" not in sys.modules
requestor = loader.OpenIDRequestor("client", "secret", "https://issuer", None)
assert "aiohttp" in sys.modules
theirs = type(requestor).__mro__[1]
assert theirs.refresh_token.__globals__["ConfigException"] is official().config_exception.ConfigException
assert not [name for name in sys.modules if name.partition(".")[0] == "kubernetes"], "nothing half imported is left"
""")


def test_the_operator_works_without_it() -> None:
    ran("""
import ruleop.engine.manager.manager
official()
assert "aiohttp" not in sys.modules
""")


def test_whoever_imports_the_package_after_it_gets_it_whole() -> None:
    ran("""
official()
from kubernetes.aio import client, config
assert client.V1Pod and config.kube_config.ApiClient is client.ApiClient
""")


def test_whoever_imported_the_package_before_keeps_it() -> None:
    ran("""
import kubernetes.aio.config.kube_config as theirs
official()
assert sys.modules["kubernetes.aio.config.kube_config"] is theirs is not official().kube_config
from kubernetes.aio import client
assert theirs.ApiClient is client.ApiClient
""")
