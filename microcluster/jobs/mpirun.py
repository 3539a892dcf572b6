"""Horovod over Open MPI: the argv that starts one command on every slot, held to the private network."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

RSH_AGENT = "sh /run/microcluster/ssh"
"""The words of mpirun's remote shell; by `sh`, because Ubuntu mounts /run without the right to execute files there."""
RUN_VARIABLE = "MICROCLUSTER_RUN"
KEEPALIVE = (
    *("-mca", "oob_tcp_keepalive_time", "20", "-mca", "oob_tcp_keepalive_intvl", "5"),
    *("-mca", "oob_tcp_keepalive_probes", "4"),
)
"""A cut network ends the ranks on both sides after 40 s; Open MPI's own five minutes and more cost money."""


@dataclass(frozen=True)
class World:
    """Where the ranks run: private addresses in rank order, slots on each, and the network card between them."""

    addresses: tuple[str, ...]
    slots: int
    interface: str

    def __post_init__(self) -> None:
        """Refuse what mpirun would take for something else: a blank in -H makes an address the program."""
        if not self.addresses or self.slots < 1:
            raise ValueError(f"a world of {len(self.addresses)} hosts with {self.slots} slots has no ranks")
        for address in self.addresses:
            if not ipaddress.IPv4Address(address).is_private:
                raise ValueError(f"{address} is no private address; ranks talk over the private network only")

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.addresses) * self.slots

    @property
    def host_slots(self) -> str:
        """The value of mpirun's -H."""
        return ",".join(f"{address}:{self.slots}" for address in self.addresses)


def environment(world: World) -> dict[str, str]:
    """Return what every rank gets beside the image's own environment and the run's mark."""
    return {"NCCL_SOCKET_IFNAME": world.interface, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8"}


def mpirun(world: World, command: Sequence[str]) -> tuple[str, ...]:
    """Return the argv that starts ``command`` on every slot of ``world``.

    Every line bears its rank, so that a dead rank's last words can be told from the others'. PYTHONUNBUFFERED stays unset: with it the lines of several ranks get mixed up. LD_LIBRARY_PATH and the like of the image
    reach ranks on other hosts by the ssh environment that start.sh writes there.
    """
    given = [f"{name}={value}" for name, value in environment(world).items()]
    exports = [word for export in (*given, "PATH", RUN_VARIABLE) for word in ("-x", export)]
    return (
        *("mpirun", "--allow-run-as-root", "-np", str(world.size), "-H", world.host_slots),
        *("-bind-to", "none", "-map-by", "slot"),
        *("-mca", "plm_rsh_agent", RSH_AGENT),
        *("-mca", "pml", "ob1", "-mca", "btl", "^openib"),
        *("-mca", "btl_tcp_if_include", world.interface, "-mca", "oob_tcp_if_include", world.interface),
        *KEEPALIVE,
        "--tag-output",
        *exports,
        *command,
    )
