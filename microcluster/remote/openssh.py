"""OpenSSH on this computer: the login host that the person's own configuration names, and the argv of its client."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import paramiko

from microcluster.jobs import cluster_facts
from microcluster.remote import host_key
from microcluster.remote.connection import MACHINE_SSH_PORT, known_name
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host

KEYS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp521", "ssh-rsa")
"""Types of host keys, the best first."""
SSH = shlex.split("""ssh -F /dev/null -o IdentitiesOnly=yes -o IdentityAgent=none -o GlobalKnownHostsFile=/dev/null
-o StrictHostKeyChecking=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=4""")


def login_host(config_file: str, stack_key_file: str | None) -> Host:
    """Return the login host of a site, not yet connected: the first `Host` of an OpenSSH configuration, as `ssh ALIAS` would use it.

    Args:
        stack_key_file: the key for a configuration that names none.

    Raises:
        RemoteError: the file, the host in it or its host key is missing.
    """
    doing = f"reading the login host in {config_file}"
    try:
        config = paramiko.SSHConfig.from_path(config_file)
    except OSError as error:
        raise RemoteError(f"{doing}: {error.strerror}. Write it as ssh reads it: Host, HostName, User.") from error
    except paramiko.SSHException as error:
        raise RemoteError(f"{doing}: {error}. Correct the file; `ssh -F {config_file} ALIAS` has to work.") from error
    lines = [line.split() for line in Path(config_file).read_text().splitlines()]
    names = [words[1] for words in lines if len(words) > 1 and words[0].lower() == "host"]
    alias = next((name for name in names if not set(name) & set("*?!")), None)
    if alias is None:
        raise RemoteError(f"{doing}: it has no `Host` with a name. Add one, with HostName and User.")
    found = config.lookup(alias)
    if "user" not in found:
        raise RemoteError(f"{doing}: host {alias} has no `User`. Add the name of your account there.")
    key_file = next((str(Path(word).expanduser()) for word in found.get("identityfile", [])), stack_key_file)
    if key_file is None:
        raise RemoteError(f"{doing}: host {alias} has no `IdentityFile`. Add it.")
    address, port = found["hostname"], int(found.get("port", MACHINE_SSH_PORT))
    known = [Path(word).expanduser() for word in found.get("userknownhostsfile", "~/.ssh/known_hosts").split()]
    facts = cluster_facts.Host(alias, alias, address, address, _host_key(address, port, known, doing))
    return Host(facts, found["user"], key_file, port=port)


def _host_key(address: str, port: int, files: list[Path], doing: str) -> str:
    name = known_name(address, port)
    for file in filter(Path.is_file, files):
        keys = paramiko.HostKeys(str(file)).lookup(name) or {}
        for kind in KEYS:
            if kind in keys:
                return host_key.line(keys[kind])
    raise RemoteError(
        f"{doing}: no host key of {name} is known. Log in once by hand, compare its fingerprint with the site's page, and it is kept."
    )


def ssh_argv(
    host: Host, hosts: Sequence[Host], command: Sequence[str] = (), more: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the argv; writes the pinned keys of all ``hosts`` beside the stack's keys.

    Args:
        more: further options.
    """
    # Not ssh's own name for it: before a queue the key is the person's own, and beside it lie the hosts that they know.
    known_hosts = Path(host.key_file).parent / "pinned_hosts"
    lines = "".join(f"{known_name(one.address, one.port)} {one.pinned_key}\n" for one in hosts)
    if not known_hosts.exists() or known_hosts.read_text() != lines:  # Another client may read it.
        known_hosts.write_text(lines)
    argv = [*SSH, "-o", f"UserKnownHostsFile={known_hosts}", "-i", host.key_file, "-p", str(host.port), *more]
    argv.append(f"{host.user}@{host.address}")
    if command:
        argv.append(shlex.join(command))
    return tuple(argv)
