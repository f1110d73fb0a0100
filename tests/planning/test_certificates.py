"""Certificates and password hashes in create-only children: valid, generated once, and cheap in every later pass."""

from __future__ import annotations

import base64
import importlib.util
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store

from ruleop.language.rules import ProjectErrors
from ruleop.planning import plan
from ruleop.planning.rendering.randomness import draw, random_password
from tests.planning.harness import Harness, as_bytes, key, project
from tests.planning.settled import edit_and_settle, settled

PAGE = (Path(__file__).parents[2] / "docs" / "templates.md").read_text(encoding="utf-8")
TLS, USERS = re.findall(r"^```yaml create-only\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ONE = "children: {x: {template: x.yaml, apply: {strategy: create-only}}}"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def secret(slots: str) -> str:
    """A template of a Secret `x`, from its lines of stringData, after those of `set`."""
    sets = "".join(f"{line}\n" for line in slots.split("\n") if line.startswith("{% "))
    data = "".join(f"  {line}\n" for line in slots.split("\n") if not line.startswith("{% "))
    return f"{sets}apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData:\n{data}"


def held(obj: Mapping[str, Any]) -> dict[str, str]:
    """The data of a Secret, as a program reads it."""
    return {name: base64.b64decode(value).decode() for name, value in obj["data"].items()}


def made(slots: str, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    """The data of the Secret after its creation."""
    harness = Harness.of(ONE, spec, x=secret(slots))
    for name, value in more.items():
        setattr(harness, name, value)
    harness.settle()
    assert harness.ready()[0] == "True", harness.ready()
    return held(harness.objects[key("x", "Secret")])


def refused(slots: str, spec: dict[str, Any] | None = None) -> str:
    harness = settled(ONE, spec, x=secret(slots))
    assert harness.names() == []
    return harness.ready()[2]


def trusted(ca: str, cert: str, name: str) -> list[x509.Certificate]:
    """The verified chain from a certificate to the authority, as a TLS client builds it."""
    store = Store([x509.load_pem_x509_certificate(ca.encode())])
    verifier = (
        PolicyBuilder()
        .store(store)
        .time(NOW.replace(tzinfo=None) + timedelta(days=1))
        .build_server_verifier(x509.DNSName(name))
    )
    return verifier.verify(x509.load_pem_x509_certificate(cert.encode()), [])


def fits(cert: str, private_key: str) -> bool:
    loaded = serialization.load_pem_private_key(private_key.encode(), password=None)
    return loaded.public_key() == x509.load_pem_x509_certificate(cert.encode()).public_key()


def test_the_certificate_of_the_tls_example_is_trusted_by_a_client() -> None:
    harness = settled(ONE, x=TLS)
    (found,) = harness.objects.values()
    assert (found["type"], found["metadata"]["name"]) == ("kubernetes.io/tls", "web-tls")
    data = held(found)
    assert set(data) == {"ca.crt", "tls.crt", "tls.key"}
    for name in ("web.shop.svc", "web.shop.svc.cluster.local"):
        assert len(trusted(data["ca.crt"], data["tls.crt"], name)) == 2
    assert fits(data["tls.crt"], data["tls.key"])
    with pytest.raises(x509.verification.VerificationError):
        trusted(data["ca.crt"], data["tls.crt"], "other.shop.svc")


@pytest.mark.slow
def test_the_example_of_an_htpasswd_secret_authenticates_its_user() -> None:
    harness = settled(ONE, x=USERS)
    (found,) = harness.objects.values()
    data = held(found)
    user, _, hashed = data["auth"].partition(":")
    assert user == data["username"]
    assert hashed.startswith("$2y$10$")
    assert bcrypt.checkpw(data["password"].encode(), hashed.encode())
    assert not bcrypt.checkpw(b"another", hashed.encode())


def test_a_certificate_has_the_requested_fields() -> None:
    data = made(
        "{% set ca = genCA('my-ca', 100) %}\nca: {{ ca.Cert }}\nkey: {{ ca.Key }}\n"
        "{% set cert = genSignedCert('web', ['10.0.0.1', 'fd00::1'], ['web.shop.svc', '*.example.com'], 30, ca) %}\ncert: {{ cert.Cert }}"
    )
    ca, cert = (x509.load_pem_x509_certificate(data[name].encode()) for name in ("ca", "cert"))
    assert ca.subject.rfc4514_string() == ca.issuer.rfc4514_string() == cert.issuer.rfc4514_string() == "CN=my-ca"
    assert cert.subject.rfc4514_string() == "CN=web"
    assert (ca.not_valid_before_utc, ca.not_valid_after_utc) == (NOW - timedelta(minutes=5), NOW + timedelta(days=100))
    assert cert.not_valid_after_utc == NOW + timedelta(days=30)
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["web.shop.svc", "*.example.com"]
    assert list(map(str, names.get_values_for_type(x509.IPAddress))) == ["10.0.0.1", "fd00::1"]
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert set(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == {
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    }
    assert isinstance(ca.public_key(), ec.EllipticCurvePublicKey)
    assert ca.serial_number != cert.serial_number
    cert.verify_directly_issued_by(ca)


@pytest.mark.slow
def test_self_signed_certificates_and_rsa_keys_are_supported() -> None:
    data = made(
        "{% set one = genSelfSignedCert('web', none, ['web'], 30) %}\n{% set two = genSelfSignedCert('web', dns=['web'], key_type='rsa') %}\n"
        "{% set ca = genCA('ca', key_type='rsa') %}\n{% set three = genSignedCert('web', dns=['web'], ca=ca) %}\n"
        "a: {{ one.Cert }}\nak: {{ one.Key }}\nb: {{ two.Cert }}\nbk: {{ two.Key }}\nca: {{ ca.Cert }}\nc: {{ three.Cert }}\nck: {{ three.Key }}"
    )
    for name in "abc":
        assert fits(data[name], data[f"{name}k"])
    for name in "ab":
        one = x509.load_pem_x509_certificate(data[name].encode())
        one.verify_directly_issued_by(one)
    two = x509.load_pem_x509_certificate(data["b"].encode())
    assert isinstance(two.public_key(), rsa.RSAPublicKey)
    assert two.public_key().key_size == 2048
    assert two.extensions.get_extension_for_class(x509.KeyUsage).value.key_encipherment
    assert trusted(data["ca"], data["c"], "web")


AUTHORITY = "{% set authority = genCA('my-ca') %}\ntls.crt: {{ authority.Cert }}\ntls.key: {{ authority.Key }}"
TWO = """
children:
  ca: {template: x.yaml, apply: {strategy: create-only}}
  web:
    forEach: spec.names
    apply: {strategy: create-only}
    object:
      apiVersion: v1
      kind: Secret
      metadata: {name: "{{ item }}"}
      stringData:
        crt: "{{ genSignedCert(item, dns=[item], ca={'Cert': ca.data['tls.crt'] | b64decode, 'Key': ca.data['tls.key'] | b64decode}).Cert }}"
"""


def test_a_ca_in_its_own_secret_signs_later_certificates() -> None:
    harness = settled(TWO, {"names": ["one"]}, x=secret(AUTHORITY))
    before = {name.name: held(obj) for name, obj in harness.objects.items()}
    edit_and_settle(harness, {"names": ["one", "two"]})
    after = {name.name: held(obj) for name, obj in harness.objects.items()}
    assert {name: after[name] for name in before} == before
    for name in ("one", "two"):
        assert trusted(after["x"]["tls.crt"], after[name]["crt"], name)


@pytest.mark.slow
def test_a_recorded_pass_generates_the_same_certificate_again() -> None:
    slots = f"{AUTHORITY}\n{{% set cert = genSignedCert('web', dns=['web'], ca=authority) %}}\nc: {{{{ cert.Cert }}}}\nh: {{{{ htpasswd('me', 'secret', rounds=5) }}}}"
    one, two = Harness.of(ONE, x=secret(slots)), Harness.of(ONE, x=secret(slots))
    assert as_bytes(one.plan()) == as_bytes(two.plan())
    assert made(slots) == made(slots)
    other = made(slots, seed=b"other")
    assert not set(made(slots).values()) & set(other.values())


def test_generated_passwords_have_any_length_and_extend_shorter_ones() -> None:
    assert random_password(b"seed", "a", 256).startswith(random_password(b"seed", "a", 24))
    assert len(random_password(b"seed", "a", 256)) == 256
    assert draw(b"seed", "a", 70).startswith(draw(b"seed", "a", 32))


def test_existing_certificates_are_not_generated_again() -> None:
    harness = settled(
        ONE,
        x=secret(
            f"{AUTHORITY}\n{{% set cert = genSignedCert('web', dns=['web'], ca=authority) %}}\nc: {{{{ cert.Cert }}}}\nh: {{{{ htpasswd('me', 'p', rounds=8) }}}}"
        ),
    )
    before = dict(harness.objects)
    harness.seed, harness.now = b"another", "2027-01-01T00:00:00Z"
    assert harness.resource is not None
    planned = plan(harness.rule, harness.resource, harness.observed(), harness.history)
    assert not planned.actions
    (child,) = (body for id_, _, body in planned.rendered if id_ == "x")
    assert "made when the object is created" in child["stringData"]["c"]
    assert child["stringData"]["h"].startswith("me:made when the object is created")
    harness.settle()
    assert harness.objects == before
    harness.delete(key("x", "Secret"))
    harness.settle()
    assert x509.load_pem_x509_certificate(held(harness.objects[key("x", "Secret")])["c"].encode())


@pytest.mark.parametrize(
    "slot", ["genCA('x').Cert | sha256(8)", "htpasswd('a', 'b') | sha256(8)", "genSelfSignedCert('x').Key | sha256(8)"]
)
def test_certificates_and_hashes_cannot_be_used_in_names(slot: str) -> None:
    template = f"{{% set name = {slot} %}}\napiVersion: v1\nkind: Secret\nmetadata: {{name: x-{{{{ name }}}}}}\n"
    with pytest.raises(ProjectErrors, match=r"`name` in metadata\.name would create another object each time"):
        settled(ONE, x=template)


CA = "{% set ca = genCA('ca') %}\n{% set other = genCA('other') %}\n{% set leaf = genSelfSignedCert('leaf') %}\n"
WRONG = {
    "genCA()": "cn is missing",
    "genCA('')": "genCA: the common name is text of 1 to 64 characters; longer names belong in dns",
    "genCA('x' * 65)": "genCA: the common name is text of 1 to 64 characters; longer names belong in dns",
    "genCA(5)": "genCA: the common name is text of 1 to 64 characters; longer names belong in dns",
    "genCA('x', 0)": "genCA takes days from 1 to 36500",
    "genCA('x', '30')": "genCA takes days from 1 to 36500",
    "genCA('x', true)": "genCA takes days from 1 to 36500",
    "genCA('x', 10 ** 9)": "genCA takes days from 1 to 36500",
    "genCA('x', key_type='dsa')": "genCA: key_type is 'ecdsa' or 'rsa'",
    "genSelfSignedCert('x', dns='a')": "genSelfSignedCert: dns is a list of at most 100 texts",
    "genSelfSignedCert('x', dns=[1])": "genSelfSignedCert: dns is a list of at most 100 texts",
    "genSelfSignedCert('x', dns=['a'] * 101)": "genSelfSignedCert: dns is a list of at most 100 texts",
    "genSelfSignedCert('x', dns=['a b'])": "genSelfSignedCert: dns takes names such as shop.prod.svc or *.example.com",
    "genSelfSignedCert('x', dns=['\u00e4'])": "genSelfSignedCert: dns takes names such as shop.prod.svc or *.example.com",
    "genSelfSignedCert('x', dns=['a\\n'])": "genSelfSignedCert: dns takes names such as shop.prod.svc or *.example.com",
    "genSelfSignedCert('x', ['a'])": "genSelfSignedCert: ips takes addresses such as 10.0.0.1 or fd00::1",
    "genSignedCert('x')": "genSignedCert: ca is the result of genCA, or a mapping with Cert and Key, in PEM",
    "genSignedCert('x', ca='x')": "genSignedCert: ca is the result of genCA, or a mapping with Cert and Key, in PEM",
    "genSignedCert('x', ca={'Cert': 1, 'Key': 2})": "genSignedCert: Cert and Key of the ca are text in PEM",
    "genSignedCert('x', ca={'Cert': 'a', 'Key': 'b'})": "genSignedCert: the ca cannot be read: Cert is a CA certificate and Key its private key, in PEM, without a password",
    "genSignedCert('x', ca={'Cert': ca.Cert, 'Key': other.Key})": "genSignedCert: the key of the ca does not match its certificate",
    "genSignedCert('x', ca=leaf)": "genSignedCert: the certificate of the ca is not a CA certificate",
    "htpasswd('a:b', 'x')": "htpasswd: a user's name is text of 1 to 255 characters without colons and line breaks",
    "htpasswd('a\\nb', 'x')": "htpasswd: a user's name is text of 1 to 255 characters without colons and line breaks",
    "htpasswd('a', '')": "htpasswd: a password is text of 1 to 72 bytes (bcrypt takes no more) without NUL characters",
    "htpasswd('a', 'x' * 73)": "htpasswd: a password is text of 1 to 72 bytes (bcrypt takes no more) without NUL characters",
    "htpasswd('a', 'x', rounds=13)": "htpasswd takes rounds from 4 to 12",
    "htpasswd('a', 'x', rounds=3)": "htpasswd takes rounds from 4 to 12",
}


@pytest.mark.parametrize("slot", WRONG)
def test_invalid_arguments_of_certificate_functions_are_reported(slot: str) -> None:
    message = refused(f"{CA}a: {{{{ ({slot}) | to_json }}}}")
    assert WRONG[slot] in message


def test_hostile_names_are_escaped_in_a_certificate_or_rejected() -> None:
    for name in ("a,CN=admin", "x\nBasicConstraints: CA:TRUE", "\u202eevil", "a\x00b"):
        data = made("c: {{ genSelfSignedCert(spec.name).Cert }}", {"name": name})
        (attribute,) = x509.load_pem_x509_certificate(data["c"].encode()).subject
        assert attribute.value == name


@pytest.mark.slow
@pytest.mark.parametrize("call", ["htpasswd(item ~ '', 'x', rounds=12)", "genCA('x', key_type='rsa')"])
def test_the_certificate_work_of_one_pass_is_limited(call: str) -> None:
    body = "children: {x: {template: x.yaml, forEach: range(40), apply: {strategy: create-only}}}"
    harness = Harness.of(
        body,
        x=f"apiVersion: v1\nkind: Secret\nmetadata: {{name: 'x-{{{{ item }}}}'}}\nstringData: {{a: '{{{{ ({call}) | to_json }}}}'}}\n",
    )
    planned = harness.plan()
    assert not planned.actions
    assert (
        "the certificates and password hashes of this resource take too long to generate in one reconcile: generate fewer of them, or hashes with fewer rounds"
        in str(planned.problems)
    )


def test_a_missing_optional_dependency_is_reported_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ProjectErrors) as caught:
        project(ONE, x=secret(f"{AUTHORITY}\nh: {{{{ htpasswd('a', 'b') }}}}"))
    assert [str(finding) for finding in caught.value.findings] == [
        "templates/x.yaml:1:20: `genCA` needs the Python package cryptography, which is not installed: pip install 'ruleop[certificates]'",
        "templates/x.yaml:8:9: `htpasswd` needs the Python package bcrypt, which is not installed: pip install 'ruleop[certificates]'",
    ]
