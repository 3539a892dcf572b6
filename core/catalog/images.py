"""What public training images need of a GPU and its driver, as dated data, by name and tag alone; of any other nothing is known here.

Sources: NVIDIA's release notes of its images, which bring a package for older drivers of Tesla cards (release 22.02 still names branch 418,
22.05 excludes it, 24.05 everything below 470, 25.08 every card before Turing; 22.03 and 22.04 were not read), its page on minor version
compatibility, the release notes of CUDA 9 to 10.2, and PyTorch's matrix of releases (its issues 172352 and 190385).
"""

import re
from collections.abc import Mapping

from core.catalog.gpus import Gpu

AS_OF = "2026-11"
Version = tuple[int, ...]
IMAGE = re.compile(
    r"nvcr\.io/nvidia/[a-z0-9_-]+:(?P<release>\d\d\.\d\d)\b.*|"
    r"docker\.io/pytorch/pytorch:(?P<torch>\d+\.\d+)[0-9.]*-cuda(?P<cuda>\d+\.\d+)\b.*"
)
NVIDIAS_DRIVERS: Mapping[Version, int] = {(22, 5): 450, (24, 5): 470}
"""The oldest driver branch from a release of NVIDIA's images on, for a card of a data center."""
NVIDIAS_CARDS: Mapping[Version, float] = {(25, 8): 7.5}
"""The least compute capability from a release on."""
CUDA_DRIVERS: Mapping[Version, int] = {
    **{(9, 0): 384, (9, 2): 396, (10, 0): 410, (10, 1): 418, (10, 2): 440},
    **{(11, 0): 450, (12, 0): 525, (13, 0): 580},
}
"""The oldest driver branch from a version of CUDA on, in an image without that package."""
PYTORCHS_CARDS = (((12, 8), (2, 7), 7.5), ((12, 8), (2, 8), 7.0), ((12, 8), (2, 11), 7.5), ((13, 0), (2, 9), 7.5))
"""The least compute capability from a version of CUDA and of PyTorch on; a later row before an earlier."""


def why_unusable(image: str, gpu: Gpu, driver: int | None) -> str:
    """Return why an image cannot compute on a GPU, or an empty text where it can or nobody knows.

    Args:
        driver: its branch on the machine; None where that is not known.
    """
    found, reasons = IMAGE.fullmatch(image), []
    least_driver, least_card = (
        _needs(**{name: _version(text) for name, text in found.groupdict().items()}) if found else (0, 0)
    )
    if least_card > gpu.capability:
        reasons.append(
            f"it is built for GPUs of compute capability {least_card} or more, and a {gpu.name} has {gpu.capability}"
        )
    if driver is not None and least_driver > driver:
        reasons.append(
            f"its CUDA needs an NVIDIA driver of branch {least_driver} or newer, and a {gpu.name} gets {driver} here"
        )
    return "; ".join(reasons)


def _version(text: str | None) -> Version:
    return tuple(map(int, text.split("."))) if text else ()


def _needs(release: Version, torch: Version, cuda: Version) -> tuple[int, float]:
    """Return the oldest driver branch and the least compute capability; 0 for none. A version that is not named is empty."""
    cards = (card for since, torch_since, card in reversed(PYTORCHS_CARDS) if cuda >= since and torch >= torch_since)
    drivers = _from(CUDA_DRIVERS, cuda) or _from(NVIDIAS_DRIVERS, release)
    return int(drivers), next(cards, 0) or _from(NVIDIAS_CARDS, release)


def _from(rows: Mapping[Version, float], version: Version) -> float:
    """Return what the newest row says that is not newer than ``version``; 0 before the first."""
    return next((needed for since, needed in reversed(rows.items()) if since <= version), 0)
