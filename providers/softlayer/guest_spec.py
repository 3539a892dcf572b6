"""What is ordered when a guest is ordered, and which of it can stand together."""

from __future__ import annotations

from typing import Annotated, Self

import pydantic

from microcluster.catalog import softlayer as catalog
from providers.grpc.spec import MARK_PATTERN, ObjectId, Placed
from providers.rental import owner_mark as marks

GROUPS_PER_INTERFACE = 5
_Name = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$", max_length=63)]


class GuestSpec(Placed):
    """What is ordered."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    hostname: _Name
    domain: str
    datacenter: str
    flavor: str
    os: str | None = None
    image_id: ObjectId | None = None
    data_disks_gb: tuple[int, ...] = pydantic.Field((), max_length=catalog.MAX_DATA_DISKS)
    port_speed_mbps: int
    ssh_key_ids: tuple[ObjectId, ...] = ()
    public_security_group_ids: tuple[ObjectId, ...] = pydantic.Field((), max_length=GROUPS_PER_INTERFACE)
    private_security_group_ids: tuple[ObjectId, ...] = pydantic.Field((), max_length=GROUPS_PER_INTERFACE)
    tags: tuple[str, ...] = ()

    @property
    def owner(self) -> marks.Owner:
        """The stack and mark in the domain."""
        found = marks.owner_in_domain(self.domain)
        assert found is not None, "the domain was checked"
        return found

    @pydantic.field_validator("data_disks_gb")
    @classmethod
    def _sold(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        odd = [size for size in sizes if size not in catalog.DATA_DISK_SIZES_GB]
        if odd:
            raise ValueError(
                f"no disk of {odd[0]} GB is sold; one of {', '.join(map(str, catalog.DATA_DISK_SIZES_GB))}"
            )
        return sizes

    @pydantic.model_validator(mode="after")
    def _sold_there(self) -> Self:
        flavor = catalog.FLAVORS.get(self.flavor)
        if flavor is None:
            raise ValueError(f"no flavor {self.flavor} is in the catalog of {catalog.AS_OF}")
        if self.datacenter not in flavor.datacenters:
            raise ValueError(
                f"{self.flavor} is not sold in {self.datacenter}; it is in {', '.join(flavor.datacenters)}"
            )
        if self.data_disks_gb and not flavor.san:
            raise ValueError(
                f"{self.flavor} has local disks, to which no SAN disk of {self.data_disks_gb[0]} GB can be added"
            )
        return self

    @pydantic.model_validator(mode="after")
    def _one_system(self) -> Self:
        if (self.os is None) == (self.image_id is None):
            raise ValueError("name either os or imageId, and not both")
        if not marks.domain_is(self.domain, self.mark):
            raise ValueError(f"the domain {self.domain} does not end in -{self.mark}.{marks.ZONE}, the owner mark")
        return self
