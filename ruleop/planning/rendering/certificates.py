"""Certificates for Secrets: a certificate authority, and certificates signed by it.

Keys are ECDSA over P-256 by default: a key takes 30 µs instead of 50 ms for RSA, and is derived from the seed of the
pass. Signatures are deterministic too, so that a recorded pass gives the same certificate again. RSA keys are generated
by OpenSSL from its own randomness, so a replay does not repeat them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ruleop.language.templates import Fault, plain
from ruleop.values import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, Name

    PrivateKey = EllipticCurvePrivateKey | RSAPrivateKey

Draw = Callable[[str, int], bytes]

MAX_DAYS = 36_500
MAX_NAMES = 100  # of a certificate, DNS names and addresses each
MAX_PEM = 16_384  # characters
CLOCK_SKEW = timedelta(minutes=5)  # tolerated between clocks; the signers of Kubernetes tolerate the same
_DNS_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:\*\.)?[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?)*\Z"
)
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_COSTS = {"ecdsa": 500, "rsa": 150_000}  # microseconds, about


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """The fields of a certificate to be issued."""

    cn: str
    days: int
    key_type: str
    is_ca: bool
    ips: tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...] = ()
    dns: tuple[str, ...] = ()

    @property
    def cost(self) -> int:
        return _COSTS[self.key_type]


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate and the key of a certificate authority, in PEM."""

    cert: str
    key: str

    @property
    def cost(self) -> int:
        return _COSTS["rsa" if len(self.key) > 600 else "ecdsa"]  # by its length: the key is parsed only when needed


def request(
    name: str, cn: Any, days: Any, key_type: Any, *, is_ca: bool = False, ips: Any = (), dns: Any = ()
) -> CertificateRequest:
    if not isinstance(cn, str) or not 1 <= len(cn) <= 64:
        raise Fault(f"{name}: the common name is text of 1 to 64 characters; longer names belong in dns")
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MAX_DAYS:
        raise Fault(f"{name} takes days from 1 to {MAX_DAYS}")
    if key_type not in _COSTS:
        raise Fault(f"{name}: key_type is 'ecdsa' or 'rsa'")
    names = _texts(name, "dns", dns)
    if not all(map(_DNS_NAME.match, names)):
        raise Fault(f"{name}: dns takes names such as shop.prod.svc or *.example.com")
    try:
        addresses = tuple(map(ipaddress.ip_address, _texts(name, "ips", ips)))
    except ValueError:
        raise Fault(f"{name}: ips takes addresses such as 10.0.0.1 or fd00::1") from None
    return CertificateRequest(cn, days, key_type, is_ca, addresses, names)


def _texts(name: str, what: str, value: Any) -> tuple[str, ...]:
    found = [] if value is None else plain(value)
    if not isinstance(found, list) or len(found) > MAX_NAMES or not all(isinstance(each, str) for each in found):
        raise Fault(f"{name}: {what} is a list of at most {MAX_NAMES} texts")
    return tuple(found)


def authority(name: str, value: Any) -> Authority:
    found = plain(value)
    if not isinstance(found, Mapping) or not {"Cert", "Key"} <= set(found):
        raise Fault(f"{name}: ca is the result of genCA, or a mapping with Cert and Key, in PEM")
    cert, key = found["Cert"], found["Key"]
    if not isinstance(cert, str) or not isinstance(key, str) or max(len(cert), len(key)) > MAX_PEM:
        raise Fault(f"{name}: Cert and Key of the ca are text in PEM")
    return Authority(cert, key)


def issue(name: str, requested: CertificateRequest, by: Authority | None, now: datetime, draw: Draw) -> dict[str, str]:
    """The certificate and its key, in PEM; self-signed without an authority."""
    from cryptography import x509  # noqa: PLC0415 - an extra, and large; `check` reports it if it is missing
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    key = _new_key(requested.key_type, draw)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, requested.cn)])
    signer, issuer = (key, None) if by is None else _read(name, by)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_subject_of(issuer, subject))
        .public_key(key.public_key())
        .serial_number(int.from_bytes(draw("serial", 16), "big") | 1)
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=requested.days))
    )
    signed = _sign(_extended(builder, requested, key, signer), signer)
    return {
        "Cert": signed.public_bytes(serialization.Encoding.PEM).decode(),
        "Key": key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    }


def validity(pem: str) -> tuple[float, float] | None:
    """The times, in seconds since 1970, between which a certificate is valid; None if the text is none."""
    if not pem.startswith("-----BEGIN CERTIFICATE-----") or len(pem) > MAX_PEM:
        return None
    from cryptography import x509  # noqa: PLC0415

    try:
        found = x509.load_pem_x509_certificate(pem.encode())
        return found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()
    except (ValueError, OverflowError):
        return None


def _subject_of(issuer: Certificate | None, subject: Name) -> Name:
    return subject if issuer is None else issuer.subject


def _new_key(key_type: str, draw: Draw) -> PrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415

    if key_type == "rsa":
        return rsa.generate_private_key(65537, 2048)
    # 384 bits, so that the modulus favours no key.
    return ec.derive_private_key(int.from_bytes(draw("key", 48), "big") % (_P256_ORDER - 1) + 1, ec.SECP256R1())


def _extended(
    builder: CertificateBuilder, requested: CertificateRequest, key: PrivateKey, signer: PrivateKey
) -> CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=requested.key_type == "rsa" and not requested.is_ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=requested.is_ca,
        crl_sign=requested.is_ca,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=requested.is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if not requested.is_ca:
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    names = [*map(x509.DNSName, requested.dns), *map(x509.IPAddress, requested.ips)]
    return builder.add_extension(x509.SubjectAlternativeName(names), critical=False) if names else builder


def _sign(builder: CertificateBuilder, signer: PrivateKey) -> Certificate:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    is_ecdsa = isinstance(signer, ec.EllipticCurvePrivateKey)
    return builder.sign(signer, hashes.SHA256(), ecdsa_deterministic=True if is_ecdsa else None)


def _read(name: str, by: Authority) -> tuple[PrivateKey, Certificate]:
    """The parsed key and certificate of an authority."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415

    try:
        cert = x509.load_pem_x509_certificate(by.cert.encode())
        key = serialization.load_pem_private_key(by.key.encode(), password=None)
        constraints = cert.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound, x509.DuplicateExtension):
        raise Fault(
            f"{name}: the ca cannot be read: Cert is a CA certificate and Key its private key, "
            "in PEM, without a password"
        ) from None
    if not constraints.ca:
        raise Fault(f"{name}: the certificate of the ca is not a CA certificate")
    if not isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)) or key.key_size > 4096:
        raise Fault(f"{name}: the key of the ca is ECDSA, or RSA of at most 4096 bits")
    if key.public_key() != cert.public_key():
        raise Fault(f"{name}: the key of the ca does not match its certificate")
    return key, cert
