"""SoftLayer (IBM Cloud Classic): guests with a SAN disk, billed by the hour, in which a container runs."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from core.catalog import softlayer as catalog
from microcluster.accounts.account import AccountKind, ClusterSection, Hardware, SlowPort
from microcluster.accounts.validators import AdminCidrs, Nodes, account_image, known, one_of, problem_of_example
from microcluster.jobs.contract import Origin

LARGEST_ID = 2**31 - 1
FAST_MBPS = 1000
"""The slowest port speed between machines that exchange gradients."""


class Cluster(ClusterSection):
    """The hardware, and who may log in."""

    datacenter: Annotated[StrictStr, known("a datacenter that sells GPUs", catalog.DATACENTERS)]
    flavor: Annotated[StrictStr, known("a flavor", catalog.FLAVORS)]
    admin_cidrs: AdminCidrs
    nodes: Nodes = 2
    port_speed_mbps: Annotated[StrictInt, one_of("a port speed that is sold", catalog.PORT_SPEEDS_MBPS)] = 1000
    data_disk_gb: Annotated[StrictInt, one_of("a disk size that is sold", catalog.DATA_DISK_SIZES_GB)] = 2000
    os: Annotated[StrictStr, known("a system for GPU flavors", catalog.OPERATING_SYSTEMS)] | None = None
    image: Annotated[StrictStr, AfterValidator(account_image)] | None = None
    router: Annotated[StrictInt, Field(ge=1, le=LARGEST_ID)] | None = None
    private_vlan: Annotated[StrictInt, Field(ge=1, le=LARGEST_ID)] | None = None

    @property
    def hardware(self) -> Hardware:
        """The size of each machine."""
        return _hardware(catalog.FLAVORS[self.flavor])


class SoftLayer(AccountKind):
    """See `microcluster.accounts.account.AccountKind`."""

    title, section, runtime = "SoftLayer", Cluster, "container"
    key_setting = "configFile"
    key_setting_meaning = (
        "the client's usual sources",
        "file with user, key and endpoint, in the official client's format, readable by you alone",
    )
    credentials = ("apiKey", "api_key", "key", "password", "username", "token", "secret")
    credentials_advice = (
        "Put user and key into a 0600 file and name it in softlayer:configFile, or export SL_USERNAME and SL_API_KEY"
    )
    examples = MappingProxyType(
        {"datacenter": "lon04", "flavor": "AC2_16X120X100", "adminCidrs": "[198.51.100.7/32]"},
    )
    ranges = MappingProxyType(
        {
            "datacenter": ", ".join(catalog.DATACENTERS),
            "flavor": ", ".join(f"{name} ({flavor.gpus}x {flavor.gpu})" for name, flavor in catalog.FLAVORS.items()),
            "portSpeedMbps": ", ".join(map(str, catalog.PORT_SPEEDS_MBPS)) + "; with more than one node 1000",
            "dataDiskGb": ", ".join(map(str, catalog.DATA_DISK_SIZES_GB)),
            "os": ", ".join(catalog.OPERATING_SYSTEMS) + "; not with `image`",
            "image": "id or global identifier of an image of the account; not with `os`",
            "router": "id of a backend router; not with `privateVlan`",
            "privateVlan": "id of a VLAN; not with `router`",
        }
    )
    machine_type = "softlayer:index:VirtualGuest"
    resource_types = MappingProxyType(
        {machine_type: "guest", "softlayer:index:SshKey": "key", "softlayer:index:SecurityGroup": "group"}
    )
    prices_as_of = catalog.AS_OF
    order_takes, cancel_takes = "10 min", "5 min"

    def defaults(self, cluster: Mapping[str, Any]) -> Mapping[str, Origin]:
        """Choose the newest system, unless an image of the account is named."""
        if "image" in cluster:
            return {}
        return {
            "cluster.os": Origin(catalog.OPERATING_SYSTEMS[0], f"newest system of the catalog of {catalog.AS_OF}"),
        }

    def problems(self, cluster: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Check rules between values; the validation checks their types."""
        flavor = catalog.FLAVORS.get(str(cluster.get("flavor")))
        found = [*_place(flavor, cluster.get("datacenter")), *_disks(flavor)] if flavor else []
        for one, other in (("os", "image"), ("router", "privateVlan")):
            if cluster.get(one) is not None and cluster.get(other) is not None:
                found.append(f"cluster/{other}: cannot be given together with cluster/{one}; leave one of them out")
        return found + problem_of_example(cluster.get("adminCidrs"), ordering=ordering)

    def hardware(self, cluster: Mapping[str, Any]) -> Hardware | None:
        """Return the flavor of a section."""
        flavor = catalog.FLAVORS.get(str(cluster.get("flavor")))
        return _hardware(flavor) if flavor else None

    def slow_port(self, cluster: Mapping[str, Any]) -> SlowPort | None:
        """Return a port of less than 1 Gb/s between several nodes."""
        nodes, speed = cluster.get("nodes", 2), cluster.get("portSpeedMbps", FAST_MBPS)
        is_slow = isinstance(speed, int) and speed in catalog.PORT_SPEEDS_MBPS and speed < FAST_MBPS
        if not is_slow or not isinstance(nodes, int) or nodes < 2:
            return None
        return SlowPort("port_speed_mbps", "portSpeedMbps", speed, FAST_MBPS)

    def price_per_hour(self, cluster: Cluster) -> Decimal | None:
        """Return the price of one guest with its disk and its port."""
        return catalog.price_per_hour(cluster.flavor, (cluster.data_disk_gb,), cluster.port_speed_mbps)

    def billing(self, cluster: Cluster) -> str:
        """Say what is billed how."""
        return f"by the hour: {cluster.nodes} guests, each with its disk of {cluster.data_disk_gb} GB; nothing by the month"

    def facts(self, cluster: Cluster) -> Mapping[str, Any]:
        """Return the guest's port and disk."""
        return {"port_speed_mbps": cluster.port_speed_mbps, "data_disk_gb": cluster.data_disk_gb}


def _hardware(flavor: catalog.Flavor) -> Hardware:
    return Hardware(flavor.name, flavor.gpu, flavor.gpus)


def _place(flavor: catalog.Flavor, datacenter: Any) -> list[str]:
    known_place = isinstance(datacenter, str) and datacenter in catalog.DATACENTERS
    if not known_place or datacenter in flavor.datacenters:
        return []
    places, offered = ", ".join(flavor.datacenters), ", ".join(catalog.sold_in(datacenter))
    return [
        f"cluster/datacenter: {datacenter} does not sell {flavor.describe()}; sold in {places}. {datacenter} sells {offered}"
    ]


def _disks(flavor: catalog.Flavor) -> list[str]:
    if flavor.san:
        return []
    return [
        f"cluster/flavor: {flavor.name} has local disks, which take no SAN data disk; use {flavor.name.replace('ACL', 'AC')}"
    ]


ACCOUNT = SoftLayer()
