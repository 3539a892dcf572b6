"""GPU flavors of public guests and the datacenters that sell them."""

from __future__ import annotations

from dataclasses import dataclass

# The per-GPU tables of about 2022; the vendor's later pages list both GPUs together and name no withdrawal.
_P100_DATACENTERS = ("dal13", "fra02", "lon04", "lon06", "syd04", "tok02", "wdc07")
_V100_DATACENTERS = ("dal10", "dal12", "fra02", "lon04", "syd04", "tok02", "wdc07")


@dataclass(frozen=True)
class Flavor:
    """One size of guest: ``gpus`` of model ``gpu`` with 16 GB each, ``cores``, ``memory_gb`` and a boot disk of ``boot_gb``."""

    name: str
    gpu: str
    gpus: int
    cores: int
    memory_gb: int
    boot_gb: int
    san: bool
    datacenters: tuple[str, ...]

    def describe(self) -> str:
        """Return the flavor as a person reads it, for example ``AC1_16X120X100 (2x P100)``."""
        return f"{self.name} ({self.gpus}x {self.gpu})"


def _family(prefix: str, gpu: str, datacenters: tuple[str, ...]) -> list[Flavor]:
    sizes = [("8X60X25", 1, 25), ("8X60X100", 1, 100), ("16X120X25", 2, 25), ("16X120X100", 2, 100)]
    san = [
        Flavor(f"{prefix}_{size}", gpu, gpus, 8 * gpus, 60 * gpus, boot, True, datacenters)
        for size, gpus, boot in sizes
    ]
    local_prefix = prefix.replace("AC", "ACL")
    local = [
        Flavor(f"{local_prefix}_{size}", gpu, gpus, 8 * gpus, 60 * gpus, 100, False, datacenters)
        for size, gpus in (("8X60X100", 1), ("16X120X100", 2))
    ]
    return san + local


FLAVORS: dict[str, Flavor] = {
    flavor.name: flavor
    for flavor in _family("AC1", "P100", _P100_DATACENTERS) + _family("AC2", "V100", _V100_DATACENTERS)
}


def sold_in(datacenter: str) -> list[str]:
    """Return the names of the flavors that ``datacenter`` sells."""
    return [flavor.name for flavor in FLAVORS.values() if datacenter in flavor.datacenters]
