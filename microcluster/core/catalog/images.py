"""Drivers and GPUs that public training images need, as dated data, by name and tag. Other images are not known.

Sources: NVIDIA's release notes of its images, which bring a package for older drivers of Tesla cards (release 22.02 still names branch 418,
22.05 excludes it, 24.05 everything below 470, 25.08 every card before Turing; 22.03 and 22.04 were not read), its page on minor version
compatibility, the release notes of CUDA 9 to 10.2, and PyTorch's matrix of releases (its issues 172352 and 190385). Read in November 2026.
"""

import re

from microcluster.core.catalog.gpus import Gpu

IMAGE = re.compile(
    r"nvcr\.io/nvidia/[a-z0-9_-]+:(?P<release>\d\d\.\d\d)\b.*|"
    r"docker\.io/pytorch/pytorch:(?P<torch>\d+\.\d+)[0-9.]*-cuda(?P<cuda>\d+\.\d+)\b.*"
)
NEEDS = (
    ({"release": (25, 8)}, 470, 7.5),
    ({"release": (24, 5)}, 470, 0),
    ({"release": (22, 5)}, 450, 0),
    ({"cuda": (13, 0)}, 580, 7.5),
    ({"cuda": (12, 8), "torch": (2, 11)}, 525, 7.5),
    ({"cuda": (12, 8), "torch": (2, 8)}, 525, 7.0),
    ({"cuda": (12, 8), "torch": (2, 7)}, 525, 7.5),
    ({"cuda": (12, 0)}, 525, 0),
    ({"cuda": (11, 0)}, 450, 0),
    ({"cuda": (10, 2)}, 440, 0),
    ({"cuda": (10, 1)}, 418, 0),
    ({"cuda": (10, 0)}, 410, 0),
    ({"cuda": (9, 2)}, 396, 0),
    ({"cuda": (9, 0)}, 384, 0),
)
"""Versions from which an image needs the given driver branch and compute capability (0: any). The first row that fits holds."""


def why_unusable(image: str, gpu: Gpu, driver: int | None) -> str:
    """Return why an image cannot compute on a GPU, or an empty text where it can or nobody knows.

    Args:
        driver: its branch on the machine; None where that is not known.
    """
    found = IMAGE.fullmatch(image)
    tags = found.groupdict() if found else {}
    versions = {name: tuple(map(int, text.split("."))) for name, text in tags.items() if text}
    fitting = (row for row in NEEDS if all(versions.get(name, ()) >= since for name, since in row[0].items()))
    _, branch, capability = next(fitting, ({}, 0, 0))
    card = f"it is built for GPUs of compute capability {capability} or more, and a {gpu.name} has {gpu.capability}"
    old = f"its CUDA needs an NVIDIA driver of branch {branch} or newer, and a {gpu.name} gets {driver} here"
    reasons = {card: capability > gpu.capability, old: driver is not None and branch > driver}
    return "; ".join(reason for reason, holds in reasons.items() if holds)
