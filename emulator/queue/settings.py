"""The settings that only an emulated site with a queue has, and what follows from them: its machines and their addresses."""

from ipaddress import ip_network
from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from emulator.shared import settings

QUEUE_IMAGE = "microcluster/queue:current"
LOGIN, LOGIN_ID, FIRST_NODE_ID = "login", 1, 2
MOST_NODES = 20


@dataclass(frozen=True, config=settings.KNOWN_ONLY)
class Settings(settings.Settings):
    """Settings of a queue, added to those that every account has."""

    IMAGES: ClassVar[tuple[str, ...]] = (QUEUE_IMAGE,)
    COMMAND: ClassVar[str] = "python -m emulator {} queue"

    port: int = 8190
    private_subnets: tuple[str, ...] = ("10.66.21.0/24",)
    public_subnet: str = "198.18.65.0/28"  # no machine of a site has a public address; the network has to have a range
    registry_name: str = ""
    nodes: Annotated[int, Field(gt=0, le=MOST_NODES)] = 2
    kill_wait_s: int = 5  # between the TERM and the KILL of a job that is deleted or over its time

    @property
    def names(self) -> dict[int, str]:
        """The names of all machines by their number: one login host, then the nodes."""
        return {LOGIN_ID: LOGIN} | {FIRST_NODE_ID + index: f"sn{index + 1:02}" for index in range(self.nodes)}

    def address_of(self, number: int) -> str:
        """A machine's address; the network's first one is the bridge."""
        return str(ip_network(self.private_subnets[0])[number + 1])
