"""Each kind of credentials reaches the server: a scripted server records each request. (One release of `kubernetes`
dropped tokens.)"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ruleop.files import MAX_CREDENTIAL
from ruleop.operator.wire.auth.credentials import PodCredentials, find_credentials
from ruleop.operator.wire.auth.kubeconfig import Kubeconfig
from ruleop.operator.wire.client import requests
from ruleop.operator.wire.client.client import Client, Session
from ruleop.operator.wire.client.server_errors import ApiError, Problem
from ruleop.operator.wire.http.access import CredentialsError
from tests.operator.wire.certificates import Certificates
from tests.operator.wire.http_server import Exchange, serving

HELLO = requests.document("/hello")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


NOWHERE, NOWHERE_TLS = "http://127.0.0.1:1", "https://127.0.0.1:1"


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> Kubeconfig:
    return Kubeconfig(write_config(folder, server, user, **cluster), "", {})


def write_config(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> str:
    path = folder / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "mine"}},
            {"name": "two", "context": {"cluster": "c", "user": "other"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}, {"name": "other", "user": {"token": "of-the-other"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def fine(exchange: Exchange) -> None:
    await exchange.answer({"hello": True})


async def ask(credentials: Any, times: int = 1) -> None:
    session = await Session.open(credentials)
    try:
        for _ in range(times):
            await Client(session).send(HELLO)
    finally:
        await session.close()


def arrives(
    folder: Path, user: dict[str, Any], *, context: str = "", environ: dict[str, str] | None = None
) -> Exchange:
    """What a server sees of a request with this user."""

    async def run() -> Exchange:
        async with serving(fine) as server:
            await ask(Kubeconfig(write_config(folder, server.address, user), context, environ or {}))
            return server.seen[0]

    return asyncio.run(run())


def test_a_kubeconfig_token_is_sent_as_a_bearer_token(tmp_path: Path) -> None:
    seen = arrives(tmp_path, {"token": "secret"})
    assert seen.headers["authorization"] == "Bearer secret"
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["user-agent"].startswith("ruleop/")


def test_a_named_context_replaces_the_current_one(tmp_path: Path) -> None:
    assert arrives(tmp_path, {"token": "secret"}, context="two").headers["authorization"] == "Bearer of-the-other"
    assert Kubeconfig(str(tmp_path / "config"), "", {}).namespace == "mine"
    assert Kubeconfig(str(tmp_path / "config"), "two", {}).namespace == "default"


def test_user_and_password_are_sent_as_basic_authentication(tmp_path: Path) -> None:
    seen = arrives(tmp_path, {"username": "joe", "password": "secret"})
    assert seen.headers["authorization"] == "Basic " + base64.b64encode(b"joe:secret").decode()


def test_a_user_without_credentials_sends_no_authorization_header(tmp_path: Path) -> None:
    assert "authorization" not in arrives(tmp_path, {}).headers


def test_a_context_without_a_user_sends_no_authorization(tmp_path: Path) -> None:
    content = {"current-context": "one", "contexts": [{"name": "one", "context": {"cluster": "c"}}]}
    (tmp_path / "config").write_text(
        yaml.safe_dump({**content, "clusters": [{"name": "c", "cluster": {"server": "https://a"}}]})
    )
    access = asyncio.run(Kubeconfig(str(tmp_path / "config"), "", {}).load())
    assert (access.server, access.authorization) == ("https://a", "")


def id_token(*, ends: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": ends}).encode()).decode().rstrip("=")
    return f"head.{claims}.signature"


def test_an_oidc_id_token_is_sent_as_a_bearer_token(tmp_path: Path) -> None:
    token = id_token(ends=4102444800)
    seen = arrives(tmp_path, {"auth-provider": {"name": "oidc", "config": {"id-token": token, "client-id": "x"}}})
    assert seen.headers["authorization"] == f"Bearer {token}"


def oidc_user(issuer: str, authority: bytes | None) -> dict[str, Any]:
    config = {
        "id-token": id_token(ends=1),
        "refresh-token": "r1",
        "client-id": "x",
        "client-secret": "y",
        "idp-issuer-url": issuer,
    }
    if authority is not None:
        config["idp-certificate-authority-data"] = base64.b64encode(authority).decode()
    return {"auth-provider": {"name": "oidc", "config": config}}


async def name_token_endpoint(exchange: Exchange) -> None:
    answer = {"token_endpoint": f"https://{exchange.headers['host']}/token"}
    await exchange.answer(answer, Content_Type="application/json")


def provider(*answers: Any) -> Callable[[Exchange], Awaitable[None]]:
    """An OIDC provider that gives these answers to requests of tokens, in turn."""
    given = iter(answers)

    async def handle(exchange: Exchange) -> None:
        if exchange.method == "GET":
            await name_token_endpoint(exchange)
        else:
            await exchange.answer(next(given), Content_Type="application/json")

    return handle


async def test_an_expired_oidc_token_is_renewed(tmp_path: Path, certificates: Certificates) -> None:
    """Also by a provider that keeps its refresh token, as many do."""
    new = id_token(ends=4102444800)
    async with serving(provider({"id_token": new}), certificates.server_context()) as issuer, serving(fine) as server:
        user = oidc_user(issuer.address, certificates.authority.read_bytes())
        await ask(kubeconfig(tmp_path, server.address, user))
    assert server.seen[0].headers["authorization"] == f"Bearer {new}"
    assert [each.path for each in issuer.seen] == ["/.well-known/openid-configuration", "/token"]
    assert b"refresh_token=r1" in issuer.seen[1].body


async def test_a_refresh_token_is_not_sent_to_an_untrusted_issuer(tmp_path: Path, certificates: Certificates) -> None:
    async with serving(fine, certificates.server_context()) as issuer:
        config = kubeconfig(tmp_path, NOWHERE, oidc_user(issuer.address, None))
        with pytest.raises(CredentialsError, match="certificate verify failed"):
            await ask(config)
    assert issuer.seen == []


async def test_each_renewal_uses_the_refresh_token_of_the_last_one(tmp_path: Path, certificates: Certificates) -> None:
    """A provider may accept each of them only once. Nothing is written to the kubeconfig, so the login keeps it."""
    answers = [{"id_token": id_token(ends=1), "refresh_token": each} for each in ("r2", "r3")]
    async with serving(provider(*answers), certificates.server_context()) as issuer:
        user = oidc_user(issuer.address, certificates.authority.read_bytes())
        credentials = kubeconfig(tmp_path, NOWHERE, user)
        await credentials.load()
        await credentials.load(forced=True)
    sent = [each.body for each in issuer.seen if each.method == "POST"]
    assert [b"refresh_token=r1" in sent[0], b"refresh_token=r2" in sent[1]] == [True, True]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"refresh-token": ""}, "oidc: the id token is missing or has expired, and there is no refresh-token"),
        (
            {"id-token": "", "refresh-token": ""},
            "oidc: the id token is missing or has expired, and there is no refresh-token",
        ),
        ({"id-token": "opaque"}, "oidc: the id-token is not a JWT"),
        ({"id-token": "a.b.c"}, "oidc: the id-token is not a JWT"),
        ({"id-token": "a.W10.c"}, "oidc: the id-token is not a JWT"),
        ({"idp-issuer-url": ""}, "oidc: idp-issuer-url is missing in the kubeconfig"),
        ({"idp-certificate-authority-data": "x"}, "oidc: the CA of the provider cannot be read"),
        ({"idp-certificate-authority": "/none/ca.crt"}, "No such file"),
    ],
)
def test_an_oidc_login_that_cannot_be_renewed_reports_the_reason(
    tmp_path: Path, changes: dict[str, str], problem: str
) -> None:
    user = oidc_user(NOWHERE_TLS, None)
    user["auth-provider"]["config"].update(changes)
    assert problem in complaint(kubeconfig(tmp_path, NOWHERE, user))


@pytest.mark.parametrize("answer", [[], {"id_token": 5, "token_endpoint": None}, {"error": "no"}])
async def test_an_invalid_answer_of_an_oidc_provider_is_a_failed_login(
    tmp_path: Path, certificates: Certificates, answer: Any
) -> None:
    async def invalid(exchange: Exchange) -> None:
        await exchange.answer(answer, Content_Type="application/json")

    async with serving(invalid, certificates.server_context()) as issuer:
        user = oidc_user(issuer.address, certificates.authority.read_bytes())
        with pytest.raises(CredentialsError, match="oidc: "):
            await ask(kubeconfig(tmp_path, NOWHERE, user))


@pytest.mark.parametrize("at", ["GET", "POST"])
async def test_an_oidc_provider_that_closes_the_connection_is_a_failed_login(
    tmp_path: Path, certificates: Certificates, at: str
) -> None:
    async def closing(exchange: Exchange) -> None:
        if exchange.method == at:
            exchange.writer.close()
        else:
            await name_token_endpoint(exchange)

    async with serving(closing, certificates.server_context()) as issuer:
        config = kubeconfig(tmp_path, NOWHERE, oidc_user(issuer.address, certificates.authority.read_bytes()))
        with pytest.raises(CredentialsError, match="oidc: Server disconnected"):
            await ask(config)


async def test_a_changed_token_file_is_read_again_when_the_old_token_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def picky(exchange: Exchange) -> None:
        good = exchange.headers["authorization"] == "Bearer new"
        await exchange.answer(b"{}", 200 if good else 401)
        token.write_text("new\n")

    async with serving(picky) as server:
        await ask(kubeconfig(tmp_path, server.address, {"tokenFile": str(token)}), times=2)
    assert [each.headers["authorization"] for each in server.seen] == ["Bearer old", "Bearer new", "Bearer new"]


async def test_credentials_that_stay_refused_are_an_error_without_a_loop(tmp_path: Path) -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.answer({"kind": "Status", "message": "who are you", "reason": "Unauthorized"}, 401)

    async with serving(never) as server:
        with pytest.raises(ApiError, match="who are you") as caught:
            await ask(kubeconfig(tmp_path, server.address, {"token": "x"}))
        assert caught.value.problem is Problem.UNAUTHORIZED
    assert len(server.seen) == 1


def plugin(folder: Path, status: str, *, exit_code: int = 0, count: Path | None = None) -> dict[str, Any]:
    path = folder / "plugin"
    noted = f"open({str(count)!r}, 'a').write('x')" if count else "pass"
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n{noted}\nif {exit_code}: sys.exit('the plugin is unhappy')\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        f"status = {status}\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', 'status': status}))\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(path),
            "env": [{"name": "WHO", "value": "me"}],
            "interactiveMode": "Never",
        }
    }


def test_the_token_of_an_exec_plugin_is_sent_as_a_bearer_token(tmp_path: Path) -> None:
    assert (
        arrives(tmp_path, plugin(tmp_path, "{'token': 'of-' + os.environ['WHO']}")).headers["authorization"]
        == "Bearer of-me"
    )


def test_an_exec_plugin_runs_once_until_its_token_is_refused(tmp_path: Path) -> None:
    count = tmp_path / "count"
    expiry = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plugin(
        tmp_path, f"{{'token': str(len(open({str(count)!r}).read())), 'expirationTimestamp': {expiry!r}}}", count=count
    )

    async def picky(exchange: Exchange) -> None:
        good = len(server.seen) != 3
        await exchange.answer(b"{}", 200 if good else 401)

    async def run() -> list[str]:
        nonlocal server
        async with serving(picky) as server:
            await ask(kubeconfig(tmp_path, server.address, user), times=3)
            return [each.headers["authorization"] for each in server.seen]

    server: Any = None
    assert asyncio.run(run()) == ["Bearer 1", "Bearer 1", "Bearer 1", "Bearer 2"]


async def test_many_refused_requests_run_the_plugin_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    user = plugin(tmp_path, f"{{'token': str(len(open({str(count)!r}).read()))}}", count=count)

    async def picky(exchange: Exchange) -> None:
        await exchange.answer(b"{}", 401 if exchange.headers["authorization"] == "Bearer 1" else 200)

    async with serving(picky) as server:
        session = await Session.open(kubeconfig(tmp_path, server.address, user))
        client = Client(session)
        await asyncio.gather(*(client.send(HELLO) for _ in range(10)))
        await session.close()
    assert count.read_text() == "xx"


@pytest.mark.parametrize("way", ["files", "data", "plugin"])
async def test_client_certificates_from_files_data_and_plugins_are_presented(
    tmp_path: Path, certificates: Certificates, way: str
) -> None:
    certificates.sign("joe")
    crt, key = certificates.path("joe.crt"), certificates.path("joe.key")
    if way == "files":
        user: dict[str, Any] = {"client-certificate": crt, "client-key": key}
    elif way == "data":
        user = {
            f"client-{name}-data": base64.b64encode(Path(path).read_bytes()).decode()  # noqa: ASYNC240 - small files
            for name, path in (("certificate", crt), ("key", key))
        }
    else:
        user = plugin(
            tmp_path, f"{{'clientCertificateData': open({crt!r}).read(), 'clientKeyData': open({key!r}).read()}}"
        )
    async with serving(fine, certificates.server_context()) as server:
        config = kubeconfig(tmp_path, server.address, user, **{"certificate-authority": str(certificates.authority)})
        await ask(config)
    assert server.seen[0].client_name == "joe"


@pytest.mark.slow
def test_a_private_key_from_a_kubeconfig_or_a_plugin_is_never_left_in_a_file(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed cleans nothing up."""
    certificates.sign("joe")
    crt, key = Path(certificates.path("joe.crt")).read_bytes(), Path(certificates.path("joe.key")).read_bytes()
    inline = {
        f"client-{name}-data": base64.b64encode(data).decode() for name, data in (("certificate", crt), ("key", key))
    }
    given = plugin(tmp_path, f"{{'clientCertificateData': {crt.decode()!r}, 'clientKeyData': {key.decode()!r}}}")

    async def run(user: dict[str, Any]) -> str:
        async with serving(fine, certificates.server_context()) as server:
            authority = base64.b64encode(certificates.authority.read_bytes()).decode()
            await ask(kubeconfig(tmp_path, server.address, user, **{"certificate-authority-data": authority}))
            return server.seen[0].client_name

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("something is written to a file")

    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "mkstemp", refused)
        patched.setattr(tempfile, "NamedTemporaryFile", refused)
        assert [asyncio.run(run(user)) for user in (inline, given)] == ["joe", "joe"]
    # Systems that have no files in memory
    (tmp_path / "files").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    monkeypatch.delattr(os, "memfd_create")
    assert [asyncio.run(run(user)) for user in (inline, given)] == ["joe", "joe"]
    assert not list((tmp_path / "files").iterdir())


def test_an_encrypted_private_key_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    certificates.sign("joe")
    locked = tmp_path / "locked.key"
    into = ["-aes256", "-passout", "pass:secret", "-out", str(locked)]
    arguments = ["openssl", "ec", "-in", certificates.path("joe.key"), *into]
    subprocess.run(arguments, check=True, capture_output=True)
    user = {"client-certificate": certificates.path("joe.crt"), "client-key": str(locked)}
    said = complaint(kubeconfig(tmp_path, NOWHERE_TLS, user))
    assert "the certificates cannot be read: the client's key is locked with a password" in said


def test_an_empty_or_undecodable_ca_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("\n")
    cluster = {"certificate-authority": str(tmp_path / "ca.crt")}
    said = complaint(kubeconfig(tmp_path, NOWHERE_TLS, {"token": "x"}, **cluster))
    assert "the file of the CA is empty" in said
    cluster = {"certificate-authority-data": "=!"}
    assert "certificate-authority-data is not base64" in complaint(kubeconfig(tmp_path, NOWHERE_TLS, {}, **cluster))


def test_impersonation_headers_of_the_kubeconfig_are_sent(tmp_path: Path) -> None:
    """A client that requests a subset of its permissions does not get more."""
    extra = {"Example.com/Why": ["a test"]}
    user = {"token": "x", "as": "joe", "as-uid": "7", "as-groups": ["dev"], "as-user-extra": extra}
    seen = arrives(tmp_path, user)
    said = {name: value for name, value in seen.headers.items() if name.startswith("impersonate-")}
    assert said == {
        "impersonate-user": "joe",
        "impersonate-uid": "7",
        "impersonate-group": "dev",
        "impersonate-extra-example.com%2fwhy": "a test",
    }
    assert seen.headers["authorization"] == "Bearer x"


def test_a_token_file_takes_precedence_over_an_inline_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-file\n")
    assert arrives(tmp_path, {"token": "old", "tokenFile": "token"}).headers["authorization"] == "Bearer of-the-file"


@pytest.mark.slow
def test_a_renewed_client_certificate_opens_new_connections(tmp_path: Path, certificates: Certificates) -> None:
    certificates.sign("joe")
    certificates.sign("jane")
    crt, key = tmp_path / "crt", tmp_path / "key"

    def use(name: str) -> None:
        crt.write_bytes(Path(certificates.path(f"{name}.crt")).read_bytes())
        key.write_bytes(Path(certificates.path(f"{name}.key")).read_bytes())

    async def picky(exchange: Exchange) -> None:
        await exchange.answer(b"{}", 200 if exchange.client_name == "jane" else 401)
        use("jane")

    async def run() -> list[str]:
        async with serving(picky, certificates.server_context()) as server:
            user = {"client-certificate": str(crt), "client-key": str(key)}
            config = kubeconfig(
                tmp_path, server.address, user, **{"certificate-authority": str(certificates.authority)}
            )
            await ask(config, times=2)
            return [each.client_name for each in server.seen]

    use("joe")
    assert asyncio.run(run()) == ["joe", "jane", "jane"]


def test_tls_server_name_is_the_name_that_the_certificate_is_checked_against(
    tmp_path: Path, certificates: Certificates
) -> None:
    async def run(name: str) -> int:
        async with serving(fine, certificates.server_context()) as server:
            cluster = {"certificate-authority": str(certificates.authority), "tls-server-name": name}
            await ask(kubeconfig(tmp_path, server.address, {"token": "x"}, **cluster))
            return len(server.seen)

    assert asyncio.run(run("kube.example.com")) == 1
    with pytest.raises(ApiError, match="not trusted"):
        asyncio.run(run("other.example.com"))


async def test_insecure_skip_tls_verify_accepts_any_certificate(tmp_path: Path, certificates: Certificates) -> None:
    async with serving(fine, certificates.server_context()) as server:
        config = kubeconfig(tmp_path, server.address, {"token": "x"}, **{"insecure-skip-tls-verify": True})
        await ask(config)
    assert server.seen[0].headers["authorization"] == "Bearer x"


def test_several_kubeconfigs_are_merged(tmp_path: Path) -> None:
    """As $KUBECONFIG has them: the first that says something counts, also for the current context."""
    (tmp_path / "contexts").write_text(
        yaml.safe_dump(
            {"current-context": "both", "contexts": [{"name": "both", "context": {"cluster": "c", "user": "other"}}]}
        )
    )

    async def run(context: str) -> str:
        async with serving(fine) as server:
            second = write_config(tmp_path, server.address, {"token": "x"})
            paths = f"{tmp_path / 'none'}:{tmp_path / 'contexts'}:{second}"
            await ask(find_credentials(context=context, environ={"KUBECONFIG": paths}))
            return server.seen[0].headers["authorization"]

    assert asyncio.run(run("")) == asyncio.run(run("both")) == "Bearer of-the-other"
    assert asyncio.run(run("one")) == "Bearer x"


async def test_a_rotated_service_account_token_is_read_again_when_the_old_one_is_refused(
    tmp_path: Path, certificates: Certificates
) -> None:
    (tmp_path / "token").write_text("of-the-pod\n")
    (tmp_path / "namespace").write_text("operators")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())

    async def picky(exchange: Exchange) -> None:
        await exchange.answer(b"{}", 200 if exchange.headers["authorization"] == "Bearer rotated" else 401)
        (tmp_path / "token").write_text("rotated")

    async with serving(picky, certificates.server_context()) as server:
        host, _, port = server.address.removeprefix("https://").partition(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "HOME": str(tmp_path)}
        credentials = find_credentials(environ=environ, service_account=tmp_path)
        assert isinstance(credentials, PodCredentials)
        assert credentials.namespace == "operators"
        assert (await credentials.load()).fresh_for == 60.0
        await ask(credentials)
    assert [each.headers["authorization"] for each in server.seen] == ["Bearer of-the-pod", "Bearer rotated"]


@pytest.mark.parametrize(
    ("name", "content", "environ", "problem"),
    [
        ("token", b"\n", {}, "the token file is empty"),
        ("token", b"\xff", {}, "codec can't decode"),
        ("ca.crt", b"", {}, "the file of the CA is empty"),
        ("ca.crt", b"nonsense", {}, "the certificates cannot be read"),
        ("ca.crt", None, {}, "No such file or directory"),
        (
            "token",
            b"x",
            {"KUBERNETES_SERVICE_PORT": ""},
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set",
        ),
    ],
)
def test_a_service_account_that_cannot_be_used_reports_the_reason(
    tmp_path: Path, certificates: Certificates, name: str, content: bytes | None, environ: dict[str, str], problem: str
) -> None:
    (tmp_path / "token").write_text("x")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1", **environ}
    said = complaint(PodCredentials(tmp_path, environ))
    assert said.startswith(f"the pod's service account in {tmp_path}: ")
    assert problem in said


def test_the_server_address_in_a_pod_comes_from_its_environment(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "token").write_text("x")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    for host, server in (("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")):
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
        assert asyncio.run(PodCredentials(tmp_path, environ).load()).server == server


async def test_the_proxy_of_the_environment_is_used(tmp_path: Path) -> None:
    async with serving(fine) as proxy:
        config = write_config(tmp_path, "http://kube.invalid:8080", {"token": "x"})
        await ask(Kubeconfig(config, "", {"HTTP_PROXY": proxy.address}))
    assert proxy.seen[0].headers["host"] == "kube.invalid:8080"


async def test_the_proxy_of_the_kubeconfig_tunnels_tls(tmp_path: Path, certificates: Certificates) -> None:
    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    asked: list[str] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        host, _, port = asked[-1].split(" ")[1].partition(":")
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pipe(reader, there_writer), pipe(there_reader, writer), return_exceptions=True)

    proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    address = f"http://joe:secret@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    async with proxy, serving(fine, certificates.server_context()) as server:
        cluster = {"certificate-authority": str(certificates.authority), "proxy-url": address}
        await ask(kubeconfig(tmp_path, server.address, {"token": "x"}, **cluster))
    assert server.seen[0].headers["authorization"] == "Bearer x"
    assert asked[0].startswith("CONNECT 127.0.0.1:")
    assert "Proxy-Authorization: Basic " + base64.b64encode(b"joe:secret").decode() in asked[0]
    assert "Bearer" not in asked[0], "the proxy has no business with it"


def complaint(credentials: Any) -> str:
    with pytest.raises((CredentialsError, ApiError)) as caught:
        asyncio.run(ask(credentials))
    return str(caught.value)


def test_a_user_without_a_home_has_no_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number which has no name there."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(CredentialsError, match=r"no cluster configured: ~/\.kube/config does not exist"):
        find_credentials(environ={})


@pytest.mark.slow
def test_configuration_errors_of_the_kubeconfig_are_full_sentences(tmp_path: Path, certificates: Certificates) -> None:
    config = kubeconfig(tmp_path, NOWHERE, {"token": "x"})
    with pytest.raises(
        CredentialsError, match=r"no cluster configured: .*/\.kube/config does not exist.*use --kubeconfig"
    ):
        find_credentials(environ={"HOME": str(tmp_path)})
    assert ": no such kubeconfig" in complaint(Kubeconfig(str(tmp_path / "none"), "", {}))
    assert ": no such kubeconfig" in complaint(Kubeconfig("~nobody-of-this-name/config", "", {}))
    assert "no context 'three'; there are: one, two" in complaint(Kubeconfig(str(tmp_path / "config"), "three", {}))
    (tmp_path / "contexts").write_text(yaml.safe_dump({"contexts": [{"name": "one", "context": {"cluster": "c"}}]}))
    said = complaint(Kubeconfig(str(tmp_path / "contexts"), "", {}))
    assert "no current context; name one with --context; there are: one" in said
    assert "cannot be reached" in complaint(config)
    for text, problem in {
        "a: [": "not a kubeconfig",
        "": "file is empty",
        "{contexts: [{name: one}], clusters: 5}": "not a kubeconfig (it has no contexts, clusters and users",
        "hello": "not a kubeconfig",
    }.items():
        (tmp_path / "bad").write_text(text)
        assert problem in complaint(Kubeconfig(str(tmp_path / "bad"), "", {}))
    said = complaint(kubeconfig(tmp_path, NOWHERE, {"exec": "plugin"}))
    assert "not a kubeconfig (exec is not a mapping)" in said
    missing = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "installHint": "get it"}
    }
    said = complaint(kubeconfig(tmp_path, NOWHERE, missing))
    assert "exec plugin no-such-plugin" in said
    assert "No such file" in said
    assert "(get it)" in said
    said = complaint(kubeconfig(tmp_path, NOWHERE, plugin(tmp_path, "None", exit_code=1)))
    assert "the plugin is unhappy" in said
    said = complaint(kubeconfig(tmp_path, NOWHERE_TLS, {}, **{"certificate-authority": "none.crt"}))
    assert "none.crt" in said
    assert "the cluster has no server" in complaint(kubeconfig(tmp_path, "", {"token": "x"}))
    user = {"client-certificate": str(certificates.authority), "client-key": str(tmp_path / "config")}
    said = complaint(kubeconfig(tmp_path, NOWHERE_TLS, user))
    assert "certificates cannot be read" in said


def test_an_untrusted_server_certificate_is_reported(tmp_path: Path, certificates: Certificates) -> None:
    async def run() -> None:
        async with serving(fine, certificates.server_context()) as server:
            await ask(kubeconfig(tmp_path, server.address, {"token": "x"}))

    with pytest.raises(ApiError, match=r"certificate of https://127.0.0.1:[0-9]+ is not trusted") as caught:
        asyncio.run(run())
    assert caught.value.problem is Problem.UNTRUSTED


def test_secrets_are_not_in_the_repr_of_the_access(tmp_path: Path) -> None:
    access = asyncio.run(kubeconfig(tmp_path, NOWHERE, {"token": "hunter2"}).load())
    assert "hunter2" not in repr(access)


def unusual(folder: Path, how: str) -> Path:
    """A file that is not a regular file of at most 1 MiB."""
    file = folder / how
    if how == "pipe":
        os.mkfifo(file)
    elif how == "endless":
        file.symlink_to("/dev/zero")
    else:
        file.write_bytes(b"x" * (MAX_CREDENTIAL + 1))
    return file


UNUSUAL = {
    "pipe": "it is not a regular file",
    "endless": "it is not a regular file",
    "large": "is larger than 1024 KiB",
}


@pytest.mark.parametrize("how", UNUSUAL)
@pytest.mark.parametrize(
    "user", ["tokenFile", "client-certificate", "client-key", "certificate-authority", "idp-certificate-authority"]
)
def test_credentials_of_a_kubeconfig_are_regular_files_of_limited_size(
    tmp_path: Path, certificates: Certificates, how: str, user: str
) -> None:
    file = str(unusual(tmp_path, how))
    entry: dict[str, Any] = {user: file} if user == "tokenFile" else {}
    cluster: dict[str, Any] = {}
    if user.startswith("client"):
        entry = {"client-certificate": str(tmp_path / "fine"), "client-key": str(tmp_path / "fine"), user: file}
        (tmp_path / "fine").write_text("x")
    elif user == "certificate-authority":
        cluster = {user: file}
    elif user == "idp-certificate-authority":
        provider = {"client-id": "x", "idp-issuer-url": NOWHERE_TLS, "refresh-token": "x", user: file}
        entry = {"auth-provider": {"name": "oidc", "config": provider}}
    config = kubeconfig(tmp_path, NOWHERE_TLS, entry, **cluster)
    assert UNUSUAL[how] in complaint(config)


@pytest.mark.parametrize("how", UNUSUAL)
@pytest.mark.parametrize("name", ["token", "ca.crt"])
def test_the_files_of_a_service_account_are_regular_files_of_limited_size(
    tmp_path: Path, certificates: Certificates, how: str, name: str
) -> None:
    (tmp_path / "token").write_text("x")
    (tmp_path / "ca.crt").write_bytes(certificates.authority.read_bytes())
    (tmp_path / name).unlink()
    unusual(tmp_path, how).rename(tmp_path / name)
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    assert UNUSUAL[how] in complaint(PodCredentials(tmp_path, environ))


def test_a_kubeconfig_without_an_end_is_an_error() -> None:
    assert "is larger than 65536 KiB" in complaint(Kubeconfig("/dev/zero", "", {}))
    assert Kubeconfig("/dev/zero", "", {}).namespace == "default"
