"""The certificates of an emulated account's servers: each is its own authority."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from emulator.machines.host_tools import write_private

AUTHORITY_FILE, IDENTITY_FILE = "authority.pem", "server.pem"
VALID_FOR = timedelta(days=3650)
CLOCKS_DIFFER_BY = timedelta(days=1)


# Python 3.13 verifies strictly (RFC 5280) and asks an authority for this and for the key's identifier.
_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def server_identity(name: str, address: str) -> tuple[str, str]:
    """A fresh certificate for a server's name and address, which clients trust as their authority, and its key; PEM texts."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    alternatives = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject_name=subject, issuer_name=subject, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_USAGE, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM).decode(), private.decode()


def write_identity(folder: Path) -> Path:
    """Write a new certificate of an account's own server with its key, and alone, as clients have to trust it."""
    certificate, key = server_identity("localhost", "127.0.0.1")
    path = folder / IDENTITY_FILE
    write_private(path, certificate + key)
    (folder / AUTHORITY_FILE).write_text(certificate)
    return path
