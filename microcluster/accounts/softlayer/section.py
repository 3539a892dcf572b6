"""SoftLayer (IBM Cloud Classic): guests with a SAN disk, billed by the hour, in which a container runs."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from microcluster.accounts.shared.cluster_section import (
    AccountFacts,
    AdminCidrs,
    ClusterSection,
    Hardware,
    KeySetting,
    Nodes,
    account_image,
    choice,
    problem_of_example,
    problem_of_place,
)
from microcluster.accounts.softlayer import catalog
from microcluster.core.catalog.billing_rules import Prices
from microcluster.core.catalog.gpus import GPUS
from microcluster.jobs.job_section import Origin

LARGEST_ID = 2**31 - 1
FAST_MBPS = 1000
"""The slowest port speed between machines that exchange gradients."""


def _id(description: str) -> Any:
    return Annotated[StrictInt, Field(ge=1, le=LARGEST_ID, description=description)]


class Cluster(ClusterSection):
    """The hardware, and who may log in."""

    account: Literal["softlayer"] = "softlayer"
    datacenter: choice("a datacenter that sells GPUs", catalog.DATACENTERS, examples=["lon04"])
    flavor: choice(
        "a flavor",
        catalog.FLAVORS,
        description=", ".join(flavor.describe() for flavor in catalog.FLAVORS.values() if flavor.san),
        examples=["AC2_16X120X100"],
    )
    admin_cidrs: AdminCidrs
    nodes: Nodes = 2
    port_speed_mbps: choice("a port speed that is sold", catalog.PORT_SPEEDS_MBPS, "; with more than one node 1000") = (
        1000
    )
    data_disk_gb: choice("a disk size that is sold", catalog.DATA_DISK_SIZES_GB) = 2000
    os: choice("a system for GPU flavors", catalog.OPERATING_SYSTEMS, "; not with `image`") | None = None
    image: (
        Annotated[
            StrictStr,
            AfterValidator(account_image),
            Field(description="id or global identifier of an image of the account; not with `os`"),
        ]
        | None
    ) = None
    router: _id("id of a backend router; not with `privateVlan`") | None = None
    private_vlan: _id("id of a VLAN; not with `router`") | None = None

    @classmethod
    def defaults(cls, written: Mapping[str, Any]) -> Mapping[str, Origin]:
        """Choose the newest system, unless an image of the account is named."""
        if "image" in written:
            return {}
        return {
            "cluster.os": Origin(catalog.OPERATING_SYSTEMS[0], f"newest system of the catalog of {catalog.AS_OF}"),
        }

    @classmethod
    def problems(cls, written: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Check rules between values; the validation checks their types."""
        flavor, place, found_problems = _flavor(written), str(written.get("datacenter")), []
        if flavor:
            found_problems += problem_of_place(
                "datacenter", place, flavor.describe(), flavor.datacenters, catalog.sold_in(place)
            )
        if flavor and not flavor.san:
            found_problems.append(
                f"cluster/flavor: {flavor.name} has local disks, which take no SAN data disk; use {flavor.name.replace('ACL', 'AC')}"
            )
        nodes, speed = written.get("nodes", 2), written.get("portSpeedMbps")
        if isinstance(nodes, int) and nodes > 1 and speed in catalog.PORT_SPEEDS_MBPS and speed < FAST_MBPS:
            found_problems.append(
                f"cluster/portSpeedMbps: {speed} Mb/s between {nodes} nodes makes every step wait for the network; "
                f"use {FAST_MBPS}, or nodes: 1"
            )
        for one, other in (("os", "image"), ("router", "privateVlan")):
            if written.get(one) is not None and written.get(other) is not None:
                found_problems.append(
                    f"cluster/{other}: cannot be given together with cluster/{one}; leave one of them out"
                )
        return found_problems + problem_of_example(written.get("adminCidrs"), ordering=ordering)

    @classmethod
    def size_of(cls, written: Mapping[str, Any]) -> Hardware | None:
        """Return the flavor of a section."""
        flavor = _flavor(written)
        return Hardware(flavor.name, flavor.gpu, flavor.gpus) if flavor else None

    @classmethod
    def installed_driver(cls, written: Mapping[str, Any]) -> int | None:
        """Return that of a flavor's GPU; an image of the account has its own."""
        flavor = _flavor(written)
        return int(GPUS[flavor.gpu].driver) if flavor and not written.get("image") else None

    @property
    def prices(self) -> Prices | None:
        """The price of each guest with its disk and its port."""
        return catalog.prices(self.flavor, (self.data_disk_gb,), self.port_speed_mbps, self.nodes)

    def variants(self, counts: Collection[int]) -> Iterable[Mapping[str, Any]]:
        """Return every flavor with a boot disk of the same size, where it is sold; one machine may have a slow port."""
        boot_gb = catalog.FLAVORS[self.flavor].boot_gb
        for flavor in catalog.FLAVORS.values():
            if not flavor.san or flavor.boot_gb != boot_gb:
                continue
            place = self.datacenter if self.datacenter in flavor.datacenters else flavor.datacenters[0]
            for nodes in sorted({*counts, self.nodes}):
                for speed in (100, FAST_MBPS) if nodes == 1 else (FAST_MBPS,):
                    yield {"flavor": flavor.name, "datacenter": place, "nodes": nodes, "portSpeedMbps": speed}

    def order(self) -> Mapping[str, Any]:
        """Return the hardware of every guest, and its place on the private network."""
        return {
            "datacenter": self.datacenter,
            "flavor": self.flavor,
            "data_disks_gb": (self.data_disk_gb,),
            "port_speed_mbps": self.port_speed_mbps,
            "os": self.os,
            "image_id": self.image,
            "backend_router_id": str(self.router) if self.router else None,
            "private_vlan_id": str(self.private_vlan) if self.private_vlan else None,
        }

    def facts(self) -> Mapping[str, Any]:
        """Return the guest's port and disk."""
        return {"port_speed_mbps": self.port_speed_mbps, "data_disk_gb": self.data_disk_gb}


def _flavor(written: Mapping[str, Any]) -> catalog.Flavor | None:
    return catalog.FLAVORS.get(str(written.get("flavor")))


MACHINE = "softlayer:index:VirtualGuest"
ACCOUNT = AccountFacts(
    title="SoftLayer",
    section=Cluster,
    runtime="container",
    key=KeySetting(
        name="configFile",
        default="the client's usual sources",
        meaning="file with user, key and endpoint, in the official client's format, readable by you alone",
        mistaken=("apiKey", "api_key", "key", "password", "username", "token", "secret"),
        advice="Put user and key into a 0600 file and name it in softlayer:configFile, or export SL_USERNAME and SL_API_KEY",
    ),
    machine_type=MACHINE,
    resource_types={MACHINE: "guest", "softlayer:index:SshKey": "key", "softlayer:index:SecurityGroup": "group"},
    prices_as_of=catalog.AS_OF,
    prices_are="estimates",  # The price of a pair is that of a course's text.
    order_takes="10 min",
    cancel_takes="5 min",
    preparation_h=(0.25, 0.5, 0.75),  # A guest is built in 10 to 25 minutes; driver, image and disks take 5 to 20 more.
)
