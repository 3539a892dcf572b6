"""Public host keys in OpenSSH's text formats."""

import base64
import hashlib

import paramiko


def parse(line: str) -> paramiko.PKey:
    """Parse a line such as ``ssh-ed25519 AAAA...``."""
    kind, encoded = line.split()[:2]
    return paramiko.PKey.from_type_string(kind, base64.b64decode(encoded))


def line(key: paramiko.PKey) -> str:
    """Return a key as a line."""
    return f"{key.get_name()} {key.get_base64()}"


def fingerprint(line: str) -> str:
    """Return type and SHA-256 of a key, as OpenSSH prints them."""
    kind, encoded = line.split()[:2]
    digest = hashlib.sha256(base64.b64decode(encoded)).digest()
    return f"{kind} SHA256:{base64.b64encode(digest).decode().rstrip('=')}"
