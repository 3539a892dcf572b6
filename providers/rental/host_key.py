"""An ssh host key that we made, so that the first connection is already checked."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class HostKey:
    """An ed25519 host key; the private part leaves this process only inside an order."""

    private: str = field(repr=False)
    public: str

    @classmethod
    def of(cls, key: Ed25519PrivateKey) -> "HostKey":
        """Write both parts as OpenSSH does."""
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        return cls(private.decode(), public_line(key))


def public_line(key: Ed25519PrivateKey) -> str:
    """Write the public part of a key as one line."""
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
