"""The keys of a network: an authority and a shared key, made once; certificates of its nodes.

Needs the package cryptography (the extra `keys`), on the machine where nodes are enrolled; nodes themselves do without.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID

from serai.core.errors import BadInput
from serai.node.bundle.eid import node_eid
from serai.node.folder import NODE_TOML, check_name, write_folder

BUNDLE_EID: Final = "1.3.6.1.5.5.7.8.11"  # id-on-bundleEID, RFC 9174, 4.4.1
BUNDLE_SECURITY: Final = "1.3.6.1.5.5.7.3.35"  # id-kp-bundleSecurity
CA, CA_KEY, NETWORK_KEY, NETWORK_NAME = "ca.pem", "ca.key", "network.key", "network"
_CLOCKS_DIFFER: Final = timedelta(days=1)


def make_network(name: str, folder: Path, now: datetime, days: int = 3650) -> None:
    """Write a new network: certificate and key of its authority, and its shared key."""
    check_name("network", name)
    key = _new_key()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"serai network {name}")])
    builder = _certificate(subject, subject, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    files = {
        CA: _pem(_signed(builder, key)), CA_KEY: _private_pem(key), NETWORK_KEY: secrets.token_hex(32) + "\n",
        NETWORK_NAME: name + "\n",
    }  # fmt: skip
    write_folder(folder, files, secret=(CA_KEY, NETWORK_KEY))


def enrol(node: str, network: Path, folder: Path, now: datetime, days: int = 1825) -> str:
    """Write the folder of a node of a network: configuration, certificate, keys; returns the certificate's serial."""
    check_name("node", node)
    read = {name: _read(network / name) for name in (CA, CA_KEY, NETWORK_KEY, NETWORK_NAME)}
    try:
        ca = x509.load_pem_x509_certificate(read[CA].encode())
        ca_key = serialization.load_pem_private_key(read[CA_KEY].encode(), None)
        if not isinstance(ca_key, EllipticCurvePrivateKey):
            raise ValueError("another sort of key")
    except ValueError:
        raise BadInput(f"{network}: {CA} or {CA_KEY} is damaged; restore the folder from a backup") from None
    key, eid = _new_key(), node_eid(node)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, node)])
    text = eid.encode()
    names = [
        x509.OtherName(x509.ObjectIdentifier(BUNDLE_EID), bytes([0x16, len(text)]) + text),  # an IA5String
        x509.UniformResourceIdentifier(eid),  # Python shows only this one to who checks it
    ]
    purposes = [
        x509.ObjectIdentifier(BUNDLE_SECURITY),
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    ]
    builder = _certificate(subject, ca.subject, key, now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    certificate = _signed(builder, ca_key)
    settings = NODE_TOML.format(node=node, network=read[NETWORK_NAME].strip(), security="tls")
    files = {
        "node.toml": settings, CA: read[CA], "node.pem": _pem(certificate), "node.key": _private_pem(key),
        NETWORK_KEY: read[NETWORK_KEY],
    }  # fmt: skip
    write_folder(folder, files, secret=("node.key", NETWORK_KEY))
    return f"{certificate.serial_number:X}"


def _new_key() -> EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private_pem(key: EllipticCurvePrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{path} cannot be read; `serai node network NAME` makes the folder of a network") from None
