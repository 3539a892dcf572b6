"""Paperspace: machines on a private network with a shared drive, on which the processes run themselves."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr

from microcluster.accounts.paperspace import catalog
from microcluster.accounts.shared.cluster_section import (
    AccountFacts,
    AdminCidrs,
    ClusterSection,
    Hardware,
    KeySetting,
    Nodes,
    choice,
    problem_of_example,
    problem_of_place,
)
from microcluster.core.catalog.billing_rules import Prices
from microcluster.jobs.job_section import Origin

USER = "paperspace"
"""Login user of every Linux machine of Paperspace, with sudo."""
OLDER, NEWER = catalog.TEMPLATES
"""The templates ML-in-a-Box."""
FOR_NEWER = ("A100", "H100")
"""GPUs that run the newer template; no other GPU does (the vendor's page on templates)."""
DRIVE = "/mnt/training-data"
"""Mount point of the shared drive on every machine."""


class Cluster(ClusterSection):
    """The hardware, and who may log in; every machine has the same port, of 10 Gb/s."""

    account: Literal["paperspace"]
    region: choice(
        "a region",
        catalog.REGIONS,
        description=", ".join(f"{slug} ({name})" for slug, name in catalog.REGIONS.items()),
        examples=["ny2"],
    )
    machine_type: choice("a machine type with GPUs", catalog.MACHINE_TYPES, examples=["P4000x2"])
    admin_cidrs: AdminCidrs
    nodes: Nodes = 2
    template: Annotated[StrictStr, Field(pattern=r"^[a-z0-9]{4,20}$", description="id of a template")] | None = None
    disk_gb: choice("a disk size that is sold", catalog.DISKS) = 100
    drive_gb: choice("a drive size that is sold, or 0 for none", (0, *catalog.DRIVES), "; 0 for none") = 250
    keep_drive: Annotated[
        StrictBool, Field(description="whether `make down` leaves the drive and its network, which goes on costing")
    ] = False
    public_ip: Literal["dynamic", "static"] = "dynamic"

    @classmethod
    def defaults(cls, written: Mapping[str, Any]) -> Mapping[str, Origin]:
        """Choose the vendor's machine learning image for the type."""
        kind = _kind(written)
        if kind is None:
            return {}
        template = NEWER if kind.gpu in FOR_NEWER else OLDER
        return {"cluster.template": Origin(template, f"{catalog.TEMPLATES[template]}, for {kind.describe()}")}

    @classmethod
    def problems(cls, written: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Check rules between values; the validation checks their types."""
        kind, region, found_problems = _kind(written), str(written.get("region")), []
        if kind:
            found_problems += problem_of_place("region", region, kind.describe(), kind.regions, catalog.sold_in(region))
        if written.get("keepDrive") is True and written.get("driveGb") == 0:
            found_problems.append("cluster/keepDrive: there is no drive to keep; leave it out, or set driveGb")
        return found_problems + problem_of_example(written.get("adminCidrs"), ordering=ordering)

    @classmethod
    def size_of(cls, written: Mapping[str, Any]) -> Hardware | None:
        """Return the type of a section."""
        kind = _kind(written)
        return Hardware(kind.label, kind.gpu, kind.gpus) if kind else None

    @property
    def prices(self) -> Prices:
        """The prices of all machines with their disks and addresses, and of drive and network."""
        return catalog.prices(
            self.machine_type, self.nodes, self.disk_gb, self.public_ip, self.drive_gb, keeps_drive=self.keep_drive
        )

    def variants(self, counts: Collection[int]) -> Iterable[Mapping[str, Any]]:
        """Return every type of machine with GPUs, where it is sold."""
        for kind in catalog.MACHINE_TYPES.values():
            region = self.region if self.region in kind.regions else kind.regions[0]
            for nodes in sorted({*counts, self.nodes}):
                yield {"machineType": kind.label, "region": region, "nodes": nodes}

    def order(self) -> Mapping[str, Any]:
        """Return the machines and the drive."""
        return {
            "region": self.region,
            "machine_type": self.machine_type,
            "template_id": self.template,
            "disk_gb": self.disk_gb,
            "public_ip_type": self.public_ip,
            "drive_gb": self.drive_gb or None,
        }

    def facts(self) -> Mapping[str, Any]:
        """Return the facts of these machines for steps and commands."""
        return {
            "user": USER,
            "admin_cidrs": tuple(self.admin_cidrs),
            "shared_mount": DRIVE if self.drive_gb else None,
        }


def _kind(written: Mapping[str, Any]) -> catalog.MachineType | None:
    return catalog.MACHINE_TYPES.get(str(written.get("machineType")))


MACHINE = "paperspace:index:Machine"
ACCOUNT = AccountFacts(
    title="Paperspace",
    section=Cluster,
    runtime="host",
    key=KeySetting(
        name="apiKeyFile",
        default="`PAPERSPACE_API_KEY` of the environment",
        meaning="file with the API key, readable by you alone",
        mistaken=("apiKey", "api_key", "key", "password", "token", "secret"),
        advice="Put the key into a 0600 file and name it in paperspace:apiKeyFile, or export PAPERSPACE_API_KEY",
    ),
    machine_type=MACHINE,
    resource_types={
        MACHINE: "machine",
        "paperspace:index:PrivateNetwork": "network",
        "paperspace:index:SharedDrive": "drive",
    },
    attached_kinds=("script", "claim"),
    emulated_by=("ml-in-a-box", "drive"),
    prices_as_of=catalog.AS_OF,
    order_takes="5 min",
    cancel_takes="3 min",
    preparation_h=(0.1, 0.25, 0.5),
)
