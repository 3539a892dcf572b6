"""Causes of failures, read from a line of any program: the cause, and the path, device, port or host concerned."""

import re
from typing import NamedTuple, Optional

DISK_FULL, QUOTA, SHARED_MEMORY = "disk-full", "quota-exceeded", "shared-memory-full"
GPU_MEMORY, PORT_TAKEN, HOST_UNKNOWN, LAUNCHER_LOST = "gpu-memory", "port-taken", "host-unknown", "launcher-lost"
SENTENCES = {
    DISK_FULL: "no space is left on a disk that a rank writes to",
    QUOTA: "a disk quota is used up",
    SHARED_MEMORY: "no space is left in shared memory (/dev/shm)",
    GPU_MEMORY: "a GPU has too little memory for what a rank asks of it",
    "gpu-lost": "a GPU does not answer its machine any more",
    "gpu-reset": "a GPU or its driver has to be restarted",
    "driver-too-old": "the driver is too old for the CUDA that the program was built with",
    PORT_TAKEN: "another process listens on a port that the program needs",
    HOST_UNKNOWN: "the name of a host has no address",
    LAUNCHER_LOST: "what starts the ranks could not start or reach its own process on another node",
}
"""Each cause, the one that explains most first."""
LONGEST = 4000  # Characters of a line that are looked at.
SIGNS = [
    "space",
    "memory",
    "shm",
    "torch_",
    "quota",
    "enospc",
    "bus",
    "lost",
    "reset",
    "ecc",
    "nvlink",
    "version",
    "driver",
    "toolchain",
    "compatib",
    "alloc",
    "use",
    "bind",
    "resol",
    "known",
    "associ",
    "daemon",
    "c10d",
]
"""Parts of words, at least one for each cause: most lines have none, and need no more than this look."""
PATH = re.compile(r"(?<![\w.:/-])/[^\s'\"<>:;,()]+")
CAUSES = [
    (cause, re.compile(text))
    for cause, text in [
        # NCCL calls posix_fallocate for shared memory only; PyTorch shares tensors by files named /torch_PID_NUMBER.
        (
            SHARED_MEMORY,
            r"fallocate failed ?: No space|(?:/dev/shm/|/torch_\d).{0,200}No space left|No space left.{0,200}/dev/shm/",
        ),
        (SHARED_MEMORY, r"(?:failed to extend|not enough space for|shared memory segment) /dev/shm/(?!.{0,200}\(2\)$)"),
        (
            SHARED_MEMORY,
            r"shared memory segment nccl-shm-|unable to write to file </torch_|(?:insufficient|out of) shared memory",
        ),
        (QUOTA, r"(?i)disk quota exceeded|\bEDQUOT\b"),
        (DISK_FULL, r"(?i)no space left on device|\bENOSPC\b"),
        ("gpu-lost", r"(?i)fallen off the bus|GPU is lost|Xid \(PCI:(?P<named>[0-9a-f:.]+)\): 79,"),
        (
            "gpu-reset",
            r"(?i)GPU requires reset|uncorrectable (?:ECC|NVLink) error|Driver/library version mismatch|does not match DSO version",
        ),
        (
            "driver-too-old",
            r"(?i)driver version is insufficient|NVIDIA driver on your system is too old(?: \(found version (?P<named>\d+)\))?",
        ),
        (
            "driver-too-old",
            r"(?i)compiled with an unsupported toolchain|SYSTEM_DRIVER_MISMATCH|forward compatibility was attempted",
        ),
        (
            GPU_MEMORY,
            r"CUDA out of memory(?:.{0,200}?\b(?P<named>GPU \d+))?|CUDA error: out of memory|cudaMalloc (?:retry )?failed: out of memory",
        ),
        (
            GPU_MEMORY,
            r"OOM when allocating (?!.{0,200}device:CPU)(?:.{0,200}/device:(?P<named>GPU:\d+))?|Cuda failure '?(?:\d+ ')?out of memory",
        ),
        (
            GPU_MEMORY,
            r"(?i)PrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory",
        ),
        (GPU_MEMORY, r"Check failed: e == cudaSuccess.{0,200}CUDA: out of memory"),
        (
            PORT_TAKEN,
            r"(?i)(?:(?:port:? |\]:|\b\d+\.\d+\.\d+\.\d+:)(?P<named>\d{2,5})\b.{0,200})?(?:address (?:is )?already in use|\bEADDRINUSE\b)",
        ),
        (PORT_TAKEN, r"my_node_\.port\)? != \(?-1\)? bind failed"),
        (HOST_UNKNOWN, r"(?i)(?:could not resolve host(?:name|:)|failed to resolve) '?(?P<named>[\w.-]+)"),
        (
            HOST_UNKNOWN,
            r"(?:network addresses of \((?P<named>[\w.-]+),.{0,200})?(?:Name or service not known|Temporary failure in name resolution|No address associated)",
        ),
        (
            LAUNCHER_LOST,
            r"unable to reliably start one or more daemons|daemon \(pid \d+\) died unexpectedly|lost communication with its daemon",
        ),
        (LAUNCHER_LOST, r"(?:PRTE|ORTE) daemon has unexpectedly failed|The connection to the C10d store has failed"),
    ]
]
"""The first that is found counts. Of room for files, the line's last absolute path is named."""


BEFORE = r"(?:\[[^\]]{1,40}\]:? )?"
RAISED = re.compile(
    BEFORE + r"(?=[\w.]*(?:Error|Exception)\b(?::|$))(?!.*(?:ChildFailed|[Cc]onnect|[Tt]ime(?:d )?out|Dist))"
)
"""The last line of a traceback; not torchrun's own, and none of ranks that have lost the one that failed."""
CHAINED = re.compile(BEFORE + "(?:During handling of the above exception|The above exception was the direct cause)")
"""The line between the traceback of an error and that of an error which it has caused."""
Sign = NamedTuple("Sign", [("cause", str), ("named", str)])
"""A cause in a line, and what the line says that it is about or an empty text."""


def cause_in(line: str) -> Optional[Sign]:
    """Return the first cause that a line names, or None."""
    line = line[:LONGEST]
    signs = any(map(line.lower().count, SIGNS))
    for cause, found in ((cause, pattern.search(line)) for cause, pattern in CAUSES if signs):
        if found:
            paths = PATH.findall(line) if cause in (DISK_FULL, QUOTA, SHARED_MEMORY) else []
            return Sign(cause, found.groupdict().get("named") or "".join(paths[-1:]))
    return None


def sentence(cause: str, named: str) -> str:
    return SENTENCES[cause] + (": " + named if named else "")
