"""Ed25519 key pairs as OpenSSH writes them."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class KeyPair:
    """A key pair as text; the private part of a host key leaves its process only inside an order."""

    private: str = field(repr=False)
    public: str

    @classmethod
    def fresh(cls) -> "KeyPair":
        """Make a new key pair."""
        return cls.of(Ed25519PrivateKey.generate())

    @classmethod
    def of(cls, key: Ed25519PrivateKey) -> "KeyPair":
        """Write both parts of a key."""
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        return cls(private.decode(), public_line(key))


def public_line(key: serialization.SSHPrivateKeyTypes) -> str:
    """Write the public part of a key as one line."""
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
