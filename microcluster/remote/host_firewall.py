"""The firewall of a machine whose vendor has none: ssh from the operator, everything from the private network, nothing else."""

import ipaddress
from collections.abc import Sequence

from microcluster.jobs.rendering import render
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.system import has_systemd

SCRIPT = "/etc/microcluster/firewall.sh"
UNIT = "microcluster-firewall.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
UNIT_TEXT = f"""[Unit]
Description=Firewall of microcluster
Before=network-pre.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh {SCRIPT}

[Install]
WantedBy=multi-user.target
"""
CALLER = 'echo "${SSH_CONNECTION%% *}"'
"""Prints the address from which we reach the machine."""
ACTIVE = ("iptables", "-C", "INPUT", "-j", "MICROCLUSTER")


def ensure_firewall(root: Host, admin_cidrs: Sequence[str], private_subnet: str) -> bool:
    """Let only the operator and the private network reach the machine; return whether anything changed.

    It comes back at every boot where systemd runs the machine.

    Raises:
        RemoteError: it would lock us out.
    """
    _refuse_to_lock_out(root, admin_cidrs, private_subnet)
    text = render("firewall.sh.j2", admin_cidrs=admin_cidrs, private_subnet=private_subnet)
    root.run(("mkdir", "-p", "-m", "755", SCRIPT.rpartition("/")[0]))
    changed = root.put(SCRIPT, text, "0600")
    if has_systemd(root) and root.put(UNIT_FILE, UNIT_TEXT):
        root.run(("systemctl", "daemon-reload"))
        root.run(("systemctl", "enable", UNIT))
    if changed or root.run(ACTIVE, accept=range(256)).exit_code:
        root.run(("sh", SCRIPT))
        return True
    return False


def _refuse_to_lock_out(root: Host, admin_cidrs: Sequence[str], private_subnet: str) -> None:
    caller = root.run(("sh", "-c", CALLER, "caller")).stdout.strip()
    if not any(ipaddress.ip_address(caller) in ipaddress.ip_network(one) for one in (*admin_cidrs, private_subnet)):
        raise RemoteError(
            f"closing the ports of {root}: this computer reaches it from {caller}, which cluster.adminCidrs does not hold, and "
            "would be locked out. Nothing was changed. Add the address to the stack file, then run the same command again."
        )
