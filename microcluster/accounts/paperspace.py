"""Paperspace: machines on a private network with a shared drive, on which the processes run themselves."""

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from core.catalog import paperspace as catalog
from microcluster.accounts.account import AccountKind, ClusterSection, Hardware
from microcluster.accounts.validators import AdminCidrs, Nodes, known, one_of, problem_of_example
from microcluster.jobs.contract import Origin

WITH_GPUS = {label: kind for label, kind in catalog.MACHINE_TYPES.items() if kind.gpu}
USER = "paperspace"
"""Of every Linux machine there, with sudo."""
OLDER, NEWER = catalog.TEMPLATES
"""The templates ML-in-a-Box."""
FOR_NEWER = ("A100", "H100")
"""Which run the newer one, and no other GPU does, as the vendor's page on templates says."""
DRIVE = "/mnt/training-data"
"""Where every machine mounts the shared drive."""


class Cluster(ClusterSection):
    """The hardware, and who may log in."""

    region: Annotated[StrictStr, known("a region", catalog.REGIONS)]
    machine_type: Annotated[StrictStr, known("a machine type with GPUs", WITH_GPUS)]
    admin_cidrs: AdminCidrs
    nodes: Nodes = 2
    template: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]{4,20}$")] | None = None
    disk_gb: Annotated[StrictInt, one_of("a disk size that is sold", tuple(catalog.DISKS))] = 100
    drive_gb: Annotated[StrictInt, one_of("a drive size that is sold, or 0 for none", (0, *catalog.DRIVES))] = 250
    keep_drive: StrictBool = False
    public_ip: Literal["dynamic", "static"] = "dynamic"

    @property
    def hardware(self) -> Hardware:
        """The size of each machine."""
        return _hardware(WITH_GPUS[self.machine_type])


class Paperspace(AccountKind):
    """See `microcluster.accounts.account.AccountKind`; every machine has the same port, of 10 Gb/s."""

    title, section, runtime = "Paperspace", Cluster, "host"
    key_setting = "apiKeyFile"
    key_setting_meaning = ("`PAPERSPACE_API_KEY` of the environment", "file with the API key, readable by you alone")
    credentials = ("apiKey", "api_key", "key", "password", "token", "secret")
    credentials_advice = (
        "Put the key into a 0600 file and name it in paperspace:apiKeyFile, or export PAPERSPACE_API_KEY"
    )
    examples = MappingProxyType({"region": "ny2", "machineType": "P4000x2", "adminCidrs": "[198.51.100.7/32]"})
    ranges = MappingProxyType(
        {
            "region": ", ".join(f"{slug} ({name})" for slug, name in catalog.REGIONS.items()),
            "machineType": ", ".join(WITH_GPUS),
            "template": "id of a template",
            "diskGb": ", ".join(map(str, catalog.DISKS)),
            "driveGb": ", ".join(map(str, (0, *catalog.DRIVES))) + "; 0 for none",
            "keepDrive": "whether `make down` leaves the drive and its network, which goes on costing",
        }
    )
    machine_type = "paperspace:index:Machine"
    resource_types = MappingProxyType(
        {machine_type: "machine", "paperspace:index:PrivateNetwork": "network", "paperspace:index:SharedDrive": "drive"}
    )
    attached_kinds = ("script", "claim")
    emulated_by = ("ml-in-a-box", "drive")
    prices_as_of = catalog.AS_OF
    order_takes, cancel_takes = "5 min", "3 min"

    def defaults(self, cluster: Mapping[str, Any]) -> Mapping[str, Origin]:
        """Choose the vendor's machine learning image for the type."""
        kind = WITH_GPUS.get(str(cluster.get("machineType")))
        if kind is None:
            return {}
        template = NEWER if kind.gpu in FOR_NEWER else OLDER
        return {"cluster.template": Origin(template, f"{catalog.TEMPLATES[template]}, for {kind.describe()}")}

    def problems(self, cluster: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Check rules between values; the validation checks their types."""
        found = []
        kind, region = WITH_GPUS.get(str(cluster.get("machineType"))), str(cluster.get("region"))
        if kind and region in catalog.REGIONS and region not in kind.regions:
            sold = ", ".join(label for label in catalog.sold_in(region) if label in WITH_GPUS)
            found.append(
                f"cluster/region: {region} does not sell {kind.describe()}; sold in {', '.join(kind.regions)}. {region} sells {sold}"
            )
        if cluster.get("keepDrive") is True and cluster.get("driveGb") == 0:
            found.append("cluster/keepDrive: there is no drive to keep; leave it out, or set driveGb")
        return found + problem_of_example(cluster.get("adminCidrs"), ordering=ordering)

    def hardware(self, cluster: Mapping[str, Any]) -> Hardware | None:
        """Return the type of a section."""
        kind = WITH_GPUS.get(str(cluster.get("machineType")))
        return _hardware(kind) if kind else None

    def price_per_hour(self, cluster: Cluster) -> Decimal | None:
        """Return the price of one machine with its disk and its address."""
        return catalog.machine_price_per_hour(cluster.machine_type, cluster.disk_gb, cluster.public_ip)

    def billing(self, cluster: Cluster) -> str:
        """Say what is billed how."""
        network, address, disk = catalog.NETWORK, catalog.PUBLIC_IP, catalog.DISKS[cluster.disk_gb]
        monthly = [
            f"{cluster.nodes} disks ${disk.per_month * cluster.nodes}",
            f"{cluster.nodes} addresses ${address.per_month * cluster.nodes}",
            f"network ${network.per_month}",
        ]
        if cluster.drive_gb:
            kept = " (stays after make down)" if cluster.keep_drive else ""
            monthly.append(f"drive of {cluster.drive_gb} GB ${catalog.DRIVES[cluster.drive_gb].per_month}{kept}")
        machines = WITH_GPUS[cluster.machine_type].per_hour * cluster.nodes
        return f"by the hour: {cluster.nodes} machines ${machines}; by the month, at most: {', '.join(monthly)}"

    def facts(self, cluster: Cluster) -> Mapping[str, Any]:
        """Return what steps and verbs need to know of such machines."""
        return {
            "user": USER,
            "admin_cidrs": tuple(cluster.admin_cidrs),
            "shared_mount": DRIVE if cluster.drive_gb else None,
        }


def _hardware(kind: catalog.MachineType) -> Hardware:
    return Hardware(kind.label, str(kind.gpu), kind.gpus)


ACCOUNT = Paperspace()
