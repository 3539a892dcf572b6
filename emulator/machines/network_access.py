"""Set a running machine's rules, routes and speeds from outside its network."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from emulator.machines.firewall import PRIVATE, PUBLIC
from emulator.machines.host_tools import in_network_of
from emulator.machines.spec import MachineError

LISTENING = "0A"  # The state column of /proc/net/tcp.
LEAST_BURST_BYTES = 64 * 1024  # At least one segment that the kernel has not yet split.
BURST_S = 0.002


@dataclass(frozen=True)
class Access:
    """What a machine may send and receive; a speed of 0 is none of its own."""

    firewall: str
    private_mbps: int
    public_mbps: int


@dataclass(frozen=True)
class Attachment:
    """How a running machine is attached: its first process, its addresses, and the account's services."""

    guest_id: int
    pid: int
    private_address: str
    public_address: str | None
    private_gateway: str
    services: str


def this_start(pid: int) -> str:
    """A name for this start of a machine; its init computes the same one."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{os.readlink(f'/proc/{pid}/ns/net')} {started}"


def apply(machine: Attachment, access: Access) -> None:
    """Set everything; a machine lacks the rights to change it."""
    _check_names(machine)
    doing = f"Setting up the network of machine {machine.guest_id}"
    in_network_of(machine.pid, doing, ("iptables-restore", "-w", "10"), stdin=access.firewall)
    if machine.services != machine.private_gateway:
        route = ("ip", "route", "replace", machine.services, "via", machine.private_gateway, "dev", PRIVATE)
        in_network_of(machine.pid, doing, route)
    if access.private_mbps:
        in_network_of(machine.pid, doing, shaping_argv(PRIVATE, access.private_mbps))
    if machine.public_address and access.public_mbps:
        in_network_of(machine.pid, doing, shaping_argv(PUBLIC, access.public_mbps))


def shaping_argv(interface: str, mbps: int) -> tuple[str, ...]:
    """The argv that holds ``interface`` to ``mbps`` megabits per second, whatever held it before."""
    burst = max(LEAST_BURST_BYTES, int(mbps * 1e6 / 8 * BURST_S))
    limits = ("rate", f"{mbps}mbit", "burst", str(burst), "latency", "50ms")
    return ("tc", "qdisc", "replace", "dev", interface, "root", "tbf", *limits)


def listens(pid: int, port: int) -> bool:
    """Whether a machine's service listens, without a connection: the machine's rules might refuse one."""
    tables = (Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = (line.split() for table in tables for line in table)
    return any(row[1].endswith(f":{port:04X}") and row[3] == LISTENING for row in rows)


def _check_names(machine: Attachment) -> None:
    found = {
        link["ifname"]: {address["local"] for address in link["addr_info"]}
        for link in json.loads(
            in_network_of(machine.pid, f"Reading the network of machine {machine.guest_id}", ("ip", "-j", "-4", "addr"))
        )
    }
    for name, address in ((PRIVATE, machine.private_address), (PUBLIC, machine.public_address)):
        if address and address not in found.get(name, ()):
            raise MachineError(
                f"Setting up the network of machine {machine.guest_id}: Docker did not make {name} the interface of"
                f" {address}. Use Debian's docker.io (20.10) or a Docker of version 28 or newer."
            )
