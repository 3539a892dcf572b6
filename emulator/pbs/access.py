"""Who may log in to the site and how: the user's key, the login host's key, and the file for ssh that names both."""

import secrets
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from emulator.machines.host_tools import kept_text, write_private
from emulator.machines.machine_mount import CLOUD_CONFIG
from emulator.pbs.settings import LOGIN, LOGIN_ID, Settings

CLIENT_FILE = "ssh_config"
USER, USER_KEY, HOST_KEY, MUNGE_KEY = "researcher", "researcher_ed25519", "login_host_ed25519", "munge.key"
MUNGE_KEY_BYTES = 96
# As a person has it in ~/.ssh/config; the address is that of the site's first machine.
SSH_CONFIG = """Host {alias}
    HostName {address}
    User {user}
    IdentityFile {key}
    UserKnownHostsFile {known}
    IdentitiesOnly yes
"""
KNOWN_HOSTS = "known_hosts"


def write_client_file(settings: Settings) -> Path:
    """Write the file for ssh, with everything that it names."""
    address = settings.address_of(LOGIN_ID)
    write_private(settings.state / KNOWN_HOSTS, f"{address} {_public(_private(settings, HOST_KEY))}\n")
    named = {"key": settings.state / USER_KEY, "known": settings.state / KNOWN_HOSTS}
    _private(settings, USER_KEY)
    path = settings.state / CLIENT_FILE
    write_private(path, SSH_CONFIG.format(alias=LOGIN, address=address, user=USER, **named))
    return path


def authorized_key(settings: Settings) -> str:
    """The public line of the user's key."""
    return _public(_private(settings, USER_KEY))


def login_host_key(settings: Settings) -> str:
    """The login host's private key, as cloud-init takes it."""
    return f"{CLOUD_CONFIG}\n" + yaml.safe_dump({"ssh_keys": {"ed25519_private": _private(settings, HOST_KEY)}})


def munge_key(settings: Settings) -> str:
    """The secret by which the site's daemons know each other."""
    return kept_text(settings.state / MUNGE_KEY, lambda: secrets.token_hex(MUNGE_KEY_BYTES))


def _private(settings: Settings, name: str) -> str:
    """A private key of the site, made when it is first asked for.

    Its text is that of the file: writing the same key again gives another text, and a machine with another text is another one.
    """
    return kept_text(settings.state / name, _new_key)


def _new_key() -> str:
    private = Ed25519PrivateKey.generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    return private.private_bytes(*form).decode()


def _public(private: str) -> str:
    key = serialization.load_ssh_private_key(private.encode(), password=None).public_key()
    return key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
