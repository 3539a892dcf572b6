"""What a machine runs as root at its first boot: it lets the stack's key in and takes the host key that we know.

A script is an object of its own. Its text is never shown again, so that its name carries a digest of what it does.
"""

import hashlib
import re
import shlex
from collections.abc import Mapping
from typing import Any

from providers.paperspace import names
from providers.paperspace.account import SCRIPTS, Account
from providers.paperspace.host_key import HostKey
from providers.paperspace.machine_spec import MachineSpec
from providers.rental.backend import Thing
from providers.rental.owner_mark import Owner

KIND = "script"
VERSION = "1"
"""Of the text below: a machine that booted with another one is another machine."""
NAME = re.compile(r"boot-(?P<hostname>.+)-(?P<digest>[0-9a-f]{8})")
TEXT = """#!/bin/bash
# microcluster {owner} {hostname}
(
set -eu
umask 077
home=/home/paperspace
install -d -m 700 -o paperspace -g paperspace "$home/.ssh"
touch "$home/.ssh/authorized_keys"
grep -qxF {public_key} "$home/.ssh/authorized_keys" || printf '%s\\n' {public_key} >>"$home/.ssh/authorized_keys"
chown paperspace:paperspace "$home/.ssh/authorized_keys"
rm -f /etc/ssh/ssh_host_*
printf '%s' {host_key} >/etc/ssh/ssh_host_ed25519_key
printf '%s\\n' {host_key_public} >/etc/ssh/ssh_host_ed25519_key.pub
chmod 644 /etc/ssh/ssh_host_ed25519_key.pub
systemctl restart ssh 2>/dev/null || systemctl restart sshd 2>/dev/null || kill -HUP "$(cat /run/sshd.pid)"
)
"""


def text(spec: MachineSpec, owner: Owner, key: HostKey) -> str:
    """Write the script; it holds the private host key and goes nowhere but into its order."""
    own = TEXT.format(
        owner=owner,
        hostname=spec.hostname,
        public_key=shlex.quote(spec.public_key.strip()),
        host_key=shlex.quote(key.private),
        host_key_public=shlex.quote(key.public),
    )
    return own + spec.startup_script


def full_name(spec: MachineSpec, owner: Owner) -> str:
    """Name the script of a machine."""
    return names.full(f"boot-{spec.hostname}-{digest(spec)}", owner)


def label(hostname: str) -> str:
    """Name it without the digest: what it is looked for by."""
    return f"boot-{hostname}"


def digest(spec: MachineSpec) -> str:
    """Name what the script does, without the host key, which follows from host name and mark."""
    content = "\0".join([VERSION, spec.public_key.strip(), spec.startup_script])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def digest_of(row: Mapping[str, Any]) -> str | None:
    """Read the digest in a script's name."""
    named = names.read(row.get("name"))
    found = NAME.fullmatch(named.label) if named else None
    return found["digest"] if found else None


def thing(row: Mapping[str, Any]) -> Thing:
    """Read a script object."""
    named = names.read(row.get("name"))
    found = NAME.fullmatch(named.label) if named else None
    name = label(found["hostname"]) if found else named.label if named else ""
    script_id = str(row["id"])
    return Thing(KIND, script_id, name, named.owner if named else None, f"startup script {script_id}", row=row)


def of_machine(account: Account, owner: Owner, hostname: str) -> list[Thing]:
    """List the scripts of a machine."""
    found = [thing(row) for row in account.under(SCRIPTS, owner)]
    return [each for each in found if each.name == label(hostname)]
