"""Catalog: regions, machine types, disks, drives and templates. Facts and sources: catalog.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class Rate:
    """Dollars an hour, and at most a calendar month where that has a limit."""

    per_hour: Decimal
    per_month: Decimal | None = None


@dataclass(frozen=True)
class MachineType:
    """One type of machine, with the number of its GPUs in its label."""

    label: str
    base: str
    gpu: str
    gpu_memory_gb: int
    gpus: int
    cores: int
    memory_gb: float
    rate: Rate
    regions: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """An operating system with what is installed on it."""

    ref: str
    name: str
    label: str
    default_gb: int | None
    types: tuple[MachineType, ...]


@dataclass(frozen=True)
class Catalog:
    """Price list with everything that can be ordered."""

    currency: str
    regions: Mapping[str, str]
    types: Mapping[str, MachineType]
    templates: Mapping[str, Template]
    disks: Mapping[int, Rate]
    drives: Mapping[int, Rate]
    public_ip: Rate
    network: Rate


@cache
def load_catalog() -> Catalog:
    """Read the catalog."""
    tables = tomllib.loads(FILE.read_text())
    types = {each.label: each for base, row in tables["gpu_types"].items() for each in _types(base, row)}
    return Catalog(
        currency=tables["currency"],
        regions=tables["regions"],
        types=types,
        templates={ref: _template(ref, row, types) for ref, row in tables["templates"].items()},
        disks=_rates(tables["disks"]),
        drives=_rates(tables["drives"]),
        public_ip=Rate(Decimal(tables["per_hour_of_public_ip"]), Decimal(tables["per_month_of_public_ip"])),
        network=Rate(Decimal(tables["per_hour_of_network"]), Decimal(tables["per_month_of_network"])),
    )


def _rates(rows: Mapping[str, list[str]]) -> dict[int, Rate]:
    return {int(size): Rate(Decimal(hour), Decimal(month)) for size, (hour, month) in rows.items()}


def _types(base: str, row: list[Any]) -> list[MachineType]:
    gpu, gpu_memory, cores, memory, price, regions, counts = row
    return [
        MachineType(
            label=base if count == 1 else f"{base}x{count}",
            base=base,
            gpu=gpu,
            gpu_memory_gb=gpu_memory,
            gpus=count,
            cores=cores * count,
            memory_gb=memory * count,
            rate=Rate(Decimal(price) * count),
            regions=tuple(regions),
        )
        for count in counts
    ]


def _template(ref: str, row: list[Any], types: Mapping[str, MachineType]) -> Template:
    name, label, default_gb, offers = row
    return Template(ref, name, label, default_gb or None, tuple(each for each in types.values() if each.base in offers))
