"""A guest's ssh host key: made here, sent with the order as cloud-init data, so that the first connection is already checked."""

from dataclasses import dataclass, field

import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class HostKey:
    """An ed25519 host key; the private part leaves this process only inside the order."""

    private: str = field(repr=False)
    public: str


def make_host_key() -> HostKey:
    """Make a fresh host key."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return HostKey(private.decode(), _public_line(key))


def cloud_config(key: HostKey, owner: str, hostname: str) -> str:
    """Write the user data: the mark first, then the host key.

    ``disable_root`` off, because the order's ssh keys are meant for root. No image has to obey ``ssh_pwauth``:
    microcluster/remote/access.py turns passwords off and proves it.
    """
    settings = {
        "ssh_deletekeys": True,
        "disable_root": False,
        "ssh_pwauth": False,
        "ssh_keys": {"ed25519_private": key.private, "ed25519_public": key.public},
    }
    return f"#cloud-config\n# microcluster {owner} {hostname}\n{yaml.safe_dump(settings, sort_keys=True)}"


def public_part(user_data: str) -> str | None:
    """Derive the public host key from user data that was read back; None when it holds no key of ours.

    Derived from the private part, since that is what the machine will really use.
    """
    try:
        settings = yaml.safe_load(user_data)
        private = settings["ssh_keys"]["ed25519_private"]
        key = serialization.load_ssh_private_key(private.encode(), password=None)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, UnsupportedAlgorithm):
        return None
    return _public_line(key) if isinstance(key, Ed25519PrivateKey) else None


def _public_line(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
