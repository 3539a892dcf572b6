"""A machine's ssh host key, computed from the stack's own key: any computer that has that knows it, before and after an adoption.

The account never shows a startup script again, so that nothing can be read back from it. See docs/decisions/account-and-orders.md.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from core.home import Home
from providers.rental.errors import ProviderError
from providers.rental.owner_mark import Owner

PURPOSE = "microcluster ssh host key, version 1"


@dataclass(frozen=True)
class HostKey:
    """An ed25519 host key; the private part leaves this process only inside the startup script."""

    private: str = field(repr=False)
    public: str


def derive(owner: Owner, hostname: str, public_key: str) -> HostKey:
    """Compute the host key of a machine: HMAC-SHA256 of the stack's private ssh key over stack, mark and host name.

    Args:
        public_key: the stack's, as the resource names it; another stack's private key would give another host key.

    Raises:
        ProviderError: the stack's private key is not there, or is another one.
    """
    path = Home.of().keys / owner.stack / "id_ed25519"
    secret = _private_key(path, hostname)
    if _line(secret).split()[:2] != public_key.split()[:2]:
        raise ProviderError(
            f"computing the host key of {hostname}: {path} is not the private part of the stack's public key. "
            "Put the stack's own key folder back and run the command again."
        )
    seed = secret.private_bytes(
        serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
    )
    about = "\0".join([PURPOSE, owner.stack, owner.mark, hostname]).encode()
    key = Ed25519PrivateKey.from_private_bytes(hmac.digest(seed, about, hashlib.sha256))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return HostKey(private.decode(), _line(key))


def _private_key(path: Path, hostname: str) -> Ed25519PrivateKey:
    try:
        key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        key = None  # The reason may quote the file.
    if not isinstance(key, Ed25519PrivateKey):
        raise ProviderError(
            f"computing the host key of {hostname}: {path} cannot be read as the stack's private ed25519 key without a "
            "password. Put the stack's own key folder back and run the command again."
        )
    return key


def _line(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
