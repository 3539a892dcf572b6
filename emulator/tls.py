"""The certificate of an account that is served over https."""

from pathlib import Path

from emulator.machines.certificates import server_identity
from emulator.machines.host_tools import write_private
from emulator.settings import LOOPBACK

AUTHORITY_FILE, IDENTITY_FILE = "authority.pem", "server.pem"
SERVER_NAME = "localhost"


def write_identity(folder: Path) -> Path:
    """Write a new certificate with its key, and alone, as clients have to trust it."""
    certificate, key = server_identity(SERVER_NAME, LOOPBACK)
    path = folder / IDENTITY_FILE
    write_private(path, certificate + key)
    (folder / AUTHORITY_FILE).write_text(certificate)
    return path
