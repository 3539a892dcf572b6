"""What is ordered when a block volume is ordered, and which of it is sold."""

from __future__ import annotations

from typing import Annotated, Self

import pydantic

import catalog
from providers.softlayer import mark as marks
from providers.softlayer.spec import MARK_PATTERN, ObjectId, Spec

HOURS_OF_A_MONTH = 657
"""What the vendor's monthly prices are, in hours of the hourly ones."""
Name = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=60)]


class VolumeSpec(Spec):
    """A volume of an endurance tier (``iopsPerGb``), or with so many operations a second (``iops``)."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    name: Name
    datacenter: str
    size_gb: int
    iops_per_gb: float | None = None
    iops: int | None = None
    hourly: bool = False
    guest_ids: tuple[ObjectId, ...] = ()
    description: Annotated[str, pydantic.StringConstraints(max_length=200)] = ""

    @pydantic.field_validator("size_gb")
    @classmethod
    def _size_sold(cls, size: int) -> int:
        if not catalog.SMALLEST_GB <= size <= catalog.LARGEST_GB:
            raise ValueError(f"no volume of {size} GB is sold; from {catalog.SMALLEST_GB} to {catalog.LARGEST_GB}")
        return size

    @pydantic.model_validator(mode="after")
    def _speed_sold(self) -> Self:
        if (self.iops_per_gb is None) == (self.iops is None):
            raise ValueError("name either iopsPerGb (an endurance tier) or iops (performance), and not both")
        if self.iops is not None:
            least, most = catalog.iops_range(self.size_gb)
            if not least <= self.iops <= most:
                raise ValueError(f"iops {self.iops} is not sold with {self.size_gb} GB; from {least} to {most}")
        elif self.iops_per_gb not in catalog.TIER_PER_GB_MONTH:
            tiers = ", ".join(f"{tier:g}" for tier in catalog.TIER_PER_GB_MONTH)
            raise ValueError(f"iopsPerGb {self.iops_per_gb:g} is no tier; one of {tiers}")
        elif self.iops_per_gb == max(catalog.TIER_PER_GB_MONTH) and self.size_gb > catalog.LARGEST_OF_FASTEST_TIER_GB:
            raise ValueError(f"the fastest tier is sold up to {catalog.LARGEST_OF_FASTEST_TIER_GB} GB")
        return self

    @property
    def total_iops(self) -> int:
        """The operations a second of the whole volume."""
        return self.iops if self.iops is not None else int(self.size_gb * (self.iops_per_gb or 0))

    def notes(self, stack: str) -> str:
        """Write what its notes say: the owner mark, the name, and what a person added."""
        head = f"{marks.notes(marks.owner(stack, self.mark))}: {self.name}"
        return f"{head}; {self.description}" if self.description else head


def estimate(spec: VolumeSpec) -> str:
    """Say how a volume is billed and for about how much, by the catalogue."""
    monthly = catalog.volume_per_month(spec.size_gb, spec.iops_per_gb, spec.iops)
    source = f"(estimate from the catalogue of {catalog.AS_OF})"
    if spec.hourly:
        return f"hourly, until it is deleted: {monthly / HOURS_OF_A_MONTH:.4f} USD an hour {source}"
    return f"monthly, at least one whole month: {monthly} USD {source}"
