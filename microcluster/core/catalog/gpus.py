"""The GPUs that can be rented, one row each; a new one is one row here and its flavors in the account's own module."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MEASURED_UNITS = 256
"""Samples that the seconds below are for; other batches are proportional, as long as they fill the GPU."""


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: short name, a part of the name that nvidia-smi shows.
        memory_gb: of the smallest that is sold; machine types with more are in LARGER.
        driver: driver branch to install where there is none.
        precision: the fastest one: "fp32" or "mixed".
        capability: NVIDIA's compute capability, for which an image has kernels or not.
        seconds: compute time of one GPU for MEASURED_UNITS samples, by model and precision.
    """

    name: str
    memory_gb: int
    driver: str
    precision: str
    capability: float
    seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)


# Driver: the branch that the 19.05 images were released for; it knows both.
# P100: the published 0.4 s a step of about 50 k tokens on eight of them. V100: NVIDIA's published curves on four GPUs in one box
# (1.63 and 1.07 steps a second), divided by the published scaling of 3.73.
_ROWS = (
    Gpu("P100", 16, "418", "fp32", 6.0, {("transformer-base", "fp32"): 0.998}),
    Gpu("V100", 16, "418", "mixed", 7.0, {("transformer-base", "fp32"): 0.87, ("transformer-base", "mixed"): 0.572}),
    # No step was measured or published on these. Driver: that of Paperspace's own images (ML-in-a-Box 22.04 has 535.129.03).
    Gpu("P4000", 8, "535", "fp32", 6.1),
    Gpu("P5000", 16, "535", "fp32", 6.1),
    Gpu("P6000", 24, "535", "fp32", 6.1),
    Gpu("RTX 4000", 8, "535", "mixed", 7.5),
    Gpu("RTX 5000", 16, "535", "mixed", 7.5),
    Gpu("A4000", 16, "535", "mixed", 8.6),
    Gpu("A5000", 24, "535", "mixed", 8.6),
    Gpu("A6000", 48, "535", "mixed", 8.6),
    Gpu("A100", 40, "535", "mixed", 8.0),
    Gpu("H100", 80, "535", "mixed", 9.0),
)
GPUS = {gpu.name: gpu for gpu in _ROWS}
# GB of each GPU of the machine types that are sold with more memory than the row of their kind says, by their labels without a count.
LARGER = {"V100-32G": 32, "A100-80G": 80}
