"""Inputs of each SoftLayer resource, for program and provider alike, and the order of a guest."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import pydantic
import yaml

from microcluster.accounts.shared.account import OrderRequest
from microcluster.accounts.shared.api_calls import at, text_at
from microcluster.accounts.shared.errors import CallError
from microcluster.accounts.shared.spec import Limited, Mark, Spec
from microcluster.accounts.softlayer import catalog
from microcluster.core.catalog.billing_rules import Prices
from microcluster.core.home import Owner, owner_in_domain
from microcluster.core.ssh_key import KeyPair

ObjectId = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9]+$")]
Name = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$", max_length=63)]
STOCK_SYSTEM = "UBUNTU_LATEST_64"
FIRST_DATA_DEVICE = 2
"""Device 0 is the flavor's boot disk, 1 the swap."""
KEY, GROUP, GUEST = "key", "group", "guest"
Template = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """A call that orders something."""

    service: str
    method: str
    content: dict[str, Any]
    image_id: str | None = None
    """Image of the account that the guest boots instead of the stock system."""


class Hardware(Spec):
    """Hardware of a guest, and its place: behind a router of the private network, or in one of its VLANs."""

    datacenter: str
    flavor: str
    os: str | None = None
    image_id: ObjectId | None = None
    data_disks_gb: tuple[int, ...] = ()
    port_speed_mbps: int
    backend_router_id: ObjectId | None = None
    """The router to insist on; without it the Ledger chooses one and keeps it."""
    private_vlan_id: ObjectId | None = None
    """The VLAN to insist on, which brings its router."""


class GuestSpec(Hardware):
    """One hourly guest with SAN disks, ordered once."""

    mark: Mark
    hostname: Name
    domain: str
    ssh_key_ids: tuple[ObjectId, ...] = ()
    public_security_group_ids: tuple[ObjectId, ...] = ()
    private_security_group_ids: tuple[ObjectId, ...] = ()
    tags: tuple[str, ...] = ()

    @pydantic.model_validator(mode="after")
    def _marked(self) -> Self:
        owner = owner_in_domain(self.domain)
        if owner is None or owner.mark != self.mark:
            raise ValueError(f"the domain {self.domain} is not that of owner mark {self.mark}")
        return self

    def request(self, owner: Owner) -> OrderRequest:
        """Write down what the order of a guest asks for, with a fresh host key."""
        key = KeyPair.fresh()
        template = guest_template(self, cloud_config(key, owner, self.hostname))
        return OrderRequest(
            GUEST,
            owner,
            self.hostname,
            Order("Virtual_Guest", "createObject", template, self.image_id),
            advice=lambda error: where_else(owner.stack, self, error) or error.advice,
            hostname=self.hostname,
            is_billed=True,
            key_ids=self.ssh_key_ids,
            outputs={"hostKey": key.public},
        )


class LedgerSpec(Hardware, Limited):
    """The whole planned cluster, to be checked and priced before the first order."""

    mark: Mark
    stack: str
    nodes: int = pydantic.Field(ge=1, le=64)

    def prices(self) -> Prices | None:
        """Price the cluster by the catalog."""
        return catalog.prices(self.flavor, self.data_disks_gb, self.port_speed_mbps, self.nodes)

    def planned(self, router: str | None, count: int) -> list[GuestSpec]:
        """Describe nodes to come, as far as their order can be verified before keys and groups exist."""
        hardware = self.model_dump(include=set(Hardware.model_fields))
        # What is verified is a stock system in the image's place.
        hardware |= {"backend_router_id": router, "image_id": None}
        domain = Owner(self.stack, self.mark).domain
        return [
            GuestSpec.model_construct(hostname=f"planned-{each}", mark=self.mark, domain=domain, **hardware)
            for each in range(count)
        ]


class KeySpec(Spec):
    """A public key for the order; only the stack's own is ever adopted or deleted."""

    mark: Mark
    label: str
    public_key: str

    @pydantic.field_validator("public_key")
    @classmethod
    def _well_formed(cls, line: str) -> str:
        if "PRIVATE" in line or key_material(line) is None:
            raise ValueError("is no public key line such as 'ssh-ed25519 AAAA...'")
        return line


class RuleSpec(Spec):
    """One rule of a security group: it permits; a group without rules lets nothing pass."""

    direction: Literal["ingress", "egress"]
    protocol: Literal["tcp", "udp", "icmp"] | None = None
    port_min: int | None = pydantic.Field(None, ge=0, le=65535)
    port_max: int | None = pydantic.Field(None, ge=0, le=65535)
    remote_cidr: str | None = None
    remote_self: bool = False
    """The remote side is any other member of this group."""

    def template(self, group_id: int) -> dict[str, Any]:
        """Write the rule as the API takes it."""
        rule = {
            "direction": self.direction,
            "ethertype": "IPv6" if self.remote_cidr and ":" in self.remote_cidr else "IPv4",
            "protocol": self.protocol,
            "portRangeMin": self.port_min,
            "portRangeMax": self.port_max if self.port_max is not None else self.port_min,
            "remoteIp": self.remote_cidr,
            "remoteGroupId": group_id if self.remote_self else None,
        }
        return {key: value for key, value in rule.items() if value is not None}


class GroupSpec(Spec):
    """A firewall for guest interfaces."""

    mark: Mark
    name: str
    description: str
    rules: tuple[RuleSpec, ...] = pydantic.Field((), max_length=50)

    def head(self, owner: Owner) -> dict[str, Any]:
        """Write the group without its rules."""
        return {"name": self.name, "description": f"{owner.notes}: {self.description}"}

    def request(self, owner: Owner) -> OrderRequest:
        """Write down a group without its rules."""
        order = Order("Network_SecurityGroup", "createObject", self.head(owner))
        return OrderRequest(GROUP, owner, self.name, order)


def key_material(line: str) -> bytes | None:
    """Return the material of a public key; None where a line is no key."""
    fields = line.split()
    try:
        return base64.b64decode(fields[1], validate=True) if len(fields) >= 2 else None
    except (binascii.Error, ValueError):
        return None


def cloud_config(key: KeyPair, owner: Owner, hostname: str) -> str:
    """Write the user data: the mark first, then the host key.

    ``disable_root`` off, because the order's ssh keys are meant for root. No image has to obey ``ssh_pwauth``:
    microcluster/remote/login_and_firewall.py turns passwords off and proves it.
    """
    settings = {
        "ssh_deletekeys": True,
        "disable_root": False,
        "ssh_pwauth": False,
        "ssh_keys": {"ed25519_private": key.private, "ed25519_public": key.public},
    }
    return f"#cloud-config\n# microcluster {owner} {hostname}\n{yaml.safe_dump(settings, sort_keys=True)}"


def guest_template(spec: GuestSpec, user_data: str) -> Template:
    """Write the create template of a guest with a stock system: everything rides in one order.

    With an image the system's place is taken by a stock one, see ``image_container``.
    """
    return {
        "hostname": spec.hostname,
        "domain": spec.domain,
        "datacenter": {"name": spec.datacenter},
        "hourlyBillingFlag": True,
        "localDiskFlag": False,
        "supplementalCreateObjectOptions": {"flavorKeyName": spec.flavor},
        "operatingSystemReferenceCode": spec.os or STOCK_SYSTEM,
        "blockDevices": _disks(spec.data_disks_gb),
        "networkComponents": [{"maxSpeed": spec.port_speed_mbps}],
        "primaryNetworkComponent": _component(spec.public_security_group_ids),
        "primaryBackendNetworkComponent": _component(spec.private_security_group_ids) | _place(spec),
        "sshKeys": [{"id": int(key)} for key in spec.ssh_key_ids],
        "userData": [{"value": user_data}],
    }


def image_container(container: dict[str, Any], template: Template, image: dict[str, Any]) -> dict[str, Any]:
    """Put an image in the stock system's place, and put back what the generated container has lost.

    The service refuses an image together with disks, and its generated containers lose user data, port speed and network.
    """
    guest = {**(container.get("virtualGuests") or [{}])[0], **lost_of(template)}
    prices = [price for price in container["prices"] if not _is_system(price)]
    return {
        **container,
        "prices": prices,
        "imageTemplateId": image["id"],
        "virtualGuests": [{**guest, "blockDeviceTemplateGroup": {"globalIdentifier": image["globalIdentifier"]}}],
    }


def where_else(stack: str, spec: GuestSpec, error: CallError) -> str | None:
    """Say where the flavor is sold, where its datacenter is full; None for any other error."""
    if not error.is_no_room:
        return None
    flavor = catalog.FLAVORS.get(spec.flavor)
    others = [each for each in flavor.datacenters if each != spec.datacenter] if flavor else []
    start = f"{spec.datacenter} has no room for {spec.flavor} now"
    if not others:
        return f"{start}, and the catalog knows no other that sells it. Run the command again later, or choose another flavor."
    return (
        f"{start}; it is also sold in {', '.join(others)} (catalog of {catalog.AS_OF}). Change it with 'pulumi config set "
        f"--path microcluster:cluster.datacenter {others[0]} -s {stack}' (cluster.datacenter in the stack file) and run the "
        "command again: all nodes move there. Or wait, and run it again as it is."
    )


def lost_of(template: Template) -> dict[str, Any]:
    """Return of an order what the service's generated containers lose."""
    kept = ("userData", "networkComponents", "primaryNetworkComponent", "primaryBackendNetworkComponent")
    return {name: template[name] for name in kept if template.get(name)}


def _is_system(price: dict[str, Any]) -> bool:
    codes = [category.get("categoryCode") for category in price.get("categories") or []]
    codes.append(at(price, "item.itemCategory.categoryCode"))
    return "os" in codes or text_at(price, "item.keyName").startswith("OS_")


def _disks(sizes: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"device": str(device), "diskImage": {"capacity": size}}
        for device, size in enumerate(sizes, start=FIRST_DATA_DEVICE)
    ]


def _component(group_ids: Sequence[str]) -> dict[str, Any]:
    groups = [{"securityGroup": {"id": int(group)}} for group in group_ids]
    return {"securityGroupBindings": groups} if groups else {}


def _place(spec: GuestSpec) -> dict[str, Any]:
    # A VLAN hangs on its router already, and the service refuses both together.
    if spec.private_vlan_id:
        return {"networkVlan": {"id": int(spec.private_vlan_id)}}
    return {"router": {"id": int(spec.backend_router_id)}} if spec.backend_router_id else {}
