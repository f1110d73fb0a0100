"""Kubeconfigs mean what they mean to `kubernetes`, for which ruleop reads them itself.

Left out is what ruleop does otherwise on purpose: plugins and logins by OIDC, a token beside a token file, the current
context of several files, and paths of users that are in another folder than their cluster.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from ruleop.operator.wire.auth.kubeconfig import Kubeconfig
from ruleop.operator.wire.http.access import CredentialsError
from tests.operator.wire.certificates import Certificates

CLUSTERS: dict[str, dict[str, Any]] = {
    "empty": {},
    "plain": {"server": "http://127.0.0.1:1/"},
    "secure": {"server": "https://a.example:6443"},
    "path": {"server": "https://a.example/behind/a/proxy/"},
    "file": {"server": "https://a", "certificate-authority": "ca.crt"},
    "data": {"server": "https://a", "certificate-authority-data": "ca.crt"},
    "both": {"server": "https://a", "certificate-authority-data": "ca.crt", "certificate-authority": "missing"},
    "missing": {"server": "https://a", "certificate-authority": "missing"},
    "unneeded": {"server": "http://a", "certificate-authority": "missing"},
    "insecure": {"server": "https://a", "insecure-skip-tls-verify": True},
    "verified": {"server": "https://a", "insecure-skip-tls-verify": False},
    "named": {"server": "https://a", "tls-server-name": "b.example", "certificate-authority": "ca.crt"},
    "proxied": {"server": "https://a", "proxy-url": "http://joe:secret@proxy:3128"},
}
GCP = {"name": "gcp", "config": {"access-token": "a", "expiry": "2999-01-01T00:00:00Z"}}
USERS: dict[str, dict[str, Any]] = {
    "nobody": {},
    "token": {"token": "t"},
    "empty token": {"token": ""},
    "number": {"token": 5},
    "token file": {"tokenFile": "token"},
    "missing token file": {"tokenFile": "missing"},
    "password": {"username": "joe", "password": "sec:ret"},
    "name only": {"username": "joe"},
    "token and password": {"token": "t", "username": "joe", "password": "secret"},
    "certificate": {"client-certificate": "joe.crt", "client-key": "joe.key"},
    "inline certificate": {"client-certificate-data": "joe.crt", "client-key-data": "joe.key"},
    "mixed certificate": {"client-certificate-data": "joe.crt", "client-key": "joe.key"},
    "certificate and token": {"client-certificate": "joe.crt", "client-key": "joe.key", "token": "t"},
    "certificate without key": {"client-certificate": "joe.crt"},
    "missing key": {"client-certificate": "joe.crt", "client-key": "missing"},
    "gcp": {"auth-provider": GCP},
    "gcp and token": {"auth-provider": GCP, "token": "t"},
    "gcp without an end": {"auth-provider": {"name": "gcp", "config": {"access-token": "a"}}},
    "gcp that has ended": {
        "auth-provider": {"name": "gcp", "config": {"access-token": "a", "expiry": "2020-01-01T00:00:00Z"}}
    },
    "gcp by command": {"auth-provider": {"name": "gcp", "config": {"cmd-path": "COMMAND"}}},
    "gcp by failing command": {"auth-provider": {"name": "gcp", "config": {"cmd-path": "false"}}},
    "azure": {"auth-provider": {"name": "azure", "config": {"access-token": "a"}}},
    "azure and token": {"auth-provider": {"name": "azure", "config": {}}, "token": "t"},
    "provider without a name": {"auth-provider": {"config": {}}, "token": "t"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kubeconfigs")
    certificates = Certificates(folder)
    certificates.sign("joe")
    (folder / "ca.crt").write_bytes(certificates.authority.read_bytes())
    (folder / "token").write_text("of-the-file")
    credential = {"credential": {"access_token": "of-the-command", "token_expiry": "2999-01-01T00:00:00Z"}}
    (folder / "command.py").write_text(f"print({json.dumps(credential)!r})\n")
    return folder


def entry(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The fields of a cluster or a user: the files of inline data are read."""
    written = {
        name: base64.b64encode((folder / value).read_bytes()).decode() if name.endswith("-data") else value
        for name, value in fields.items()
    }
    command = f"{sys.executable} {folder / 'command.py'}"
    return json.loads(json.dumps(written).replace("COMMAND", command))


Reading = tuple[object, ...]
"""The server, the authorization, a digest of the certificates, whether the server's is verified, its name, the proxy,
and the namespace."""


def by_ruleop(paths: str, context: str) -> Reading:
    credentials = Kubeconfig(paths, context, {})
    access = asyncio.run(credentials.load())
    verified = access.tls is None or access.tls.verify_mode is ssl.CERT_REQUIRED
    name = access.server_hostname
    return access.server, access.authorization, access.tls_digest, verified, name, access.proxy, credentials.namespace


def by_kubernetes(paths: str, context: str) -> Reading:
    loader = KubeConfigLoader(KubeConfigMerger(paths).config, active_context=context, config_base_path=None)
    loaded = SimpleNamespace(host="", ssl_ca_cert=None, cert_file=None, key_file=None, api_key={})
    loaded.verify_ssl, loaded.tls_server_name, loaded.proxy = True, "", ""
    loader.load_and_set(loaded)
    files = [Path(file).read_bytes() for file in (loaded.ssl_ca_cert, loaded.cert_file, loaded.key_file) if file]
    if not loaded.host:
        raise ConfigException("no server")
    if loaded.cert_file and not loaded.key_file:
        raise ConfigException("no key")
    return (
        loaded.host,
        loaded.api_key.get("BearerToken", ""),
        hashlib.sha256(b"".join(files)).hexdigest(),
        loaded.verify_ssl or not loaded.host.startswith("https"),
        loaded.tls_server_name,
        loaded.proxy,
        loader.current_context["context"].get("namespace") or "default",
    )


def reading(read: Callable[[str, str], Reading], paths: str, context: str) -> Reading | None:
    """None: it cannot be read."""
    try:
        return read(paths, context)
    except (ConfigException, CredentialsError, AttributeError, KeyError, OSError):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_clusters_and_users_are_read_as_kubernetes_reads_them(folder: Path, user: str) -> None:
    for cluster, fields in CLUSTERS.items():
        config = {
            "clusters": [{"name": "c", "cluster": entry(fields, folder)}],
            "users": [{"name": "u", "user": entry(USERS[user], folder)}],
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}],
        }
        file = folder / "config"
        file.write_text(yaml.safe_dump(config))
        expected = reading(by_kubernetes, str(file), "one")
        assert reading(by_ruleop, str(file), "one") == expected, cluster


NAMES = st.sampled_from(["a", "b", "c"])
FILES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "clusters": st.lists(
                st.builds(lambda name, host: {"name": name, "cluster": {"server": f"http://{host}"}}, NAMES, NAMES)
            ),
            "users": st.lists(st.builds(lambda name, token: {"name": name, "user": {"token": token}}, NAMES, NAMES)),
            "contexts": st.lists(
                st.builds(
                    lambda name, fields: {"name": name, "context": fields},
                    NAMES,
                    st.fixed_dictionaries({"cluster": NAMES}, optional={"user": NAMES, "namespace": NAMES}),
                )
            ),
        },
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@given(files=FILES, context=NAMES)
def test_several_files_are_merged_as_kubernetes_merges_them(folder: Path, files: list[Any], context: str) -> None:
    paths = [folder / f"config-{number}" for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_text(yaml.safe_dump(content))
    joined = ":".join([str(folder / "none"), *map(str, paths)])
    assert reading(by_ruleop, joined, context) == reading(by_kubernetes, joined, context)
