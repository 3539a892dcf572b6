"""Runs as every rank before the training: prints where it is, multiplies on its GPU, and sums as much as the training's gradients.

Arguments: the interface between the ranks, the configuration that the ranks will read, the size of the model in bytes, what started
the rank, one of WORLDS, and how many GPUs were ordered for each node.
"""

import ctypes
import hashlib
import importlib.util
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from typing import Any, Dict, Iterable, Optional, Tuple

from agent.machine import hash_of
from agent.nodes.links import connected, listening
from agent.nodes.node_facts import LONGEST_LINE, address_of, card_of, name_cards

FLOAT_BYTES = 4
MARK = "microcluster-preflight "
"""Prefix of the one line that every rank prints."""
JOIN_TIMEOUT_S = 60
NUMBER_VARIABLE = "MICROCLUSTER_NUMBER"
"""A process's number among all of its role."""
VERSION_VARIABLE = "MICROCLUSTER_MXNET_VERSION"
DATA_VARIABLE = "MICROCLUSTER_DATA_FILES"
COMPARED_BYTES = 1 << 20
"""From both ends of a data file: a whole one may have hundreds of gigabytes."""
# Of matrices of ones, whose product has this number everywhere; and how the line begins that says why a rank cannot have it.
SIDE, UNUSABLE = 8, "microcluster-gpu "
# Where TensorFlow says what it was built for, without an import that takes ten seconds; what a library for GPUs names.
BUILD_FILE, CUDA_BUILD, CUDA_LIBRARY = "python/platform/build_info.py", r"is_cuda_build\W+True", "libcublas.so"


class World(ABC):
    """One rank's place in a world, and a sum over all ranks by what the training will use."""

    rank_variable = ""
    """Environment variable with the rank's number."""

    @abstractmethod
    def summed(self, count: int) -> Tuple[float, Any, Any]:
        """Return the seconds of the sum of ``count`` floats over all ranks, the sum, and what it has to be."""

    def versions(self) -> Dict[str, str]:
        """Return what has to be the same on every node."""
        return {}

    def allreduce(self, count: int) -> float:
        """Return the seconds of the sum of ``count`` floats over all ranks; end the rank where the sum is wrong."""
        seconds, found, wanted = self.summed(count)
        if found != wanted:
            sys.exit("the sum over all ranks is {} instead of {}".format(found, wanted))
        return seconds


class MpiWorld(World):
    """A world of Open MPI, by its C interface: not every image has a binding for Python. mpirun compares its own versions."""

    rank_variable = "OMPI_COMM_WORLD_RANK"

    def summed(self, count: int) -> Tuple[float, Any, Any]:
        mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)  # Of Open MPI 3 and 4.
        world, floats, add = (
            ctypes.byref(ctypes.c_char.in_dll(mpi, name))
            for name in ("ompi_mpi_comm_world", "ompi_mpi_float", "ompi_mpi_op_sum")
        )
        mpi.MPI_Init(None, None)
        mine, total = (ctypes.c_float * count)(), (ctypes.c_float * count)()
        mine[0] = 1.0
        mpi.MPI_Barrier(world)
        began = time.monotonic()
        mpi.MPI_Allreduce(mine, total, ctypes.c_int(count), floats, add, world)
        seconds = time.monotonic() - began
        mpi.MPI_Finalize()
        return seconds, total[0], float(os.environ["OMPI_COMM_WORLD_SIZE"])


class ParameterServerWorld(World):
    """A world of MXNet's workers: the sum is made on the servers and read back.

    The import of MXNet turns a server or scheduler into a loop that ends with the last worker, and with it the program. The store gives
    its own numbers after the start; ours follow the nodes.
    """

    rank_variable = NUMBER_VARIABLE

    def versions(self) -> Dict[str, str]:
        import mxnet  # noqa: PLC0415 - not where ranks are started otherwise

        wanted = os.environ[VERSION_VARIABLE]
        if mxnet.__version__.split(".post")[0] != wanted:
            sys.exit("MXNet {} is installed; job.mxnetVersion says {}".format(mxnet.__version__, wanted))
        found = {"MXNet": mxnet.__version__}
        found.update((os.path.basename(path), digest(path)) for path in shlex.split(os.environ[DATA_VARIABLE]))
        return found

    def summed(self, count: int) -> Tuple[float, Any, Any]:
        import mxnet  # noqa: PLC0415

        store = mxnet.kv.create("dist_sync")
        total, ones = mxnet.nd.zeros((count,)), mxnet.nd.ones((count,))
        store.init(0, total)
        began = time.monotonic()
        store.push(0, ones)
        store.pull(0, out=total)
        found = float(total[count - 1].asscalar())  # Reading the number waits for the store.
        return time.monotonic() - began, found, store.num_workers


class TorchWorld(World):
    """A world of torchrun, with the backend that a program gets: NCCL on GPUs, else gloo."""

    rank_variable = "RANK"

    def versions(self) -> Dict[str, str]:
        import torch  # noqa: PLC0415 - not where ranks are started otherwise

        return {"torch": torch.__version__, "CUDA": torch.version.cuda}

    def summed(self, count: int) -> Tuple[float, Any, Any]:
        import torch  # noqa: PLC0415
        from torch import distributed  # noqa: PLC0415

        on_gpus = torch.cuda.is_available()
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpus else torch.device("cpu")
        distributed.init_process_group("nccl" if on_gpus else "gloo")
        total = torch.zeros(count, device=device)
        total[0] = 1.0
        distributed.barrier()
        began = time.monotonic()
        distributed.all_reduce(total)
        found, wanted = float(total[0]), distributed.get_world_size()  # Reading the number waits for the GPU.
        seconds = time.monotonic() - began
        distributed.destroy_process_group()
        return seconds, found, wanted


class NodeWorld(World):
    """A world of one process on each node, counted by the first one: no framework is known that would sum."""

    rank_variable = "NODE_RANK"

    def summed(self, count: int) -> Tuple[float, Any, Any]:
        where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        nodes, began = int(os.environ["WORLD_SIZE"]), time.monotonic()
        found = self.admit(where, nodes) if os.environ[self.rank_variable] == "0" else self.join(where)
        return time.monotonic() - began, found, str(nodes)

    def admit(self, where: Tuple[str, int], nodes: int) -> str:
        """Wait for every other node, and tell each how many there are."""
        with listening(*where, nodes, JOIN_TIMEOUT_S) as listener:
            others = [listener.accept()[0] for _ in range(nodes - 1)]
        for other in others:
            with other:
                other.sendall(str(nodes).encode())
        return str(len(others) + 1)

    def join(self, where: Tuple[str, int]) -> str:
        """Connect to the first node, which may still be starting; return how many it counts."""
        first = connected(*where, JOIN_TIMEOUT_S)
        with first, first.makefile("rb") as answer:
            return answer.read().decode() or "none"


WORLDS = {"mpi": MpiWorld, "parameter-server": ParameterServerWorld, "torch": TorchWorld, "node": NodeWorld}


def main(interface: str, config: str, size: str, world: str, gpus: str) -> None:
    started = WORLDS[world]()
    name_cards(os.environ)
    facts = {
        "rank": int(os.environ[started.rank_variable]),
        "host": socket.gethostname(),
        "address": address_of(card_of(interface)),
        "config": hash_of(config)[:12],
        "versions": started.versions(),
    }
    if int(gpus) and world in FRAMEWORKS:
        facts["on_gpu"] = multiplies(FRAMEWORKS[world], int(gpus))
    facts["allreduce_s"] = round(started.allreduce(int(size) // FLOAT_BYTES), 3)
    # One write: the lines of several ranks go into one pipe.
    sys.stdout.write(MARK + json.dumps(facts, sort_keys=True) + "\n")
    sys.stdout.flush()


def multiplies(frameworks: Iterable[str], gpus: int) -> bool:
    """Return whether a framework here multiplies on this rank's GPU, False where none is built for GPUs; end the rank where they fail."""
    os.environ.setdefault("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))
    found = [product(name, gpus) for name in filter(importlib.util.find_spec, frameworks)]
    reasons = [one for one in found if isinstance(one, str)]
    if reasons and SIDE not in found:
        sys.exit("{}{}: {}".format(UNUSABLE, socket.gethostname(), " ".join("; ".join(reasons).split())[:LONGEST_LINE]))
    return SIDE in found


def product(name: str, gpus: int) -> Any:
    # SIDE where it is right, else why not; None of a framework that is not built for GPUs.
    try:
        found = PRODUCTS[name](gpus)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return "{}: {}".format(name, str(error).rpartition("Node: ")[2])  # TensorFlow's own trace comes before it.
    return found if found in (None, SIDE) else "{}: a product is {} and not {}".format(name, found, SIDE)


def product_of_torch(_: int) -> Optional[float]:
    import torch  # noqa: PLC0415

    # Where the driver is too old, `device_count` still counts the GPUs; only using one fails.
    return (
        float(torch.ones(SIDE, SIDE, device="cuda:" + os.environ["LOCAL_RANK"]).matrix_power(2)[0, 0])
        if torch.version.cuda
        else None
    )


def product_of_mxnet(gpus: int) -> Optional[float]:
    import mxnet  # noqa: PLC0415

    # Before 1.5 its library alone shows what it is built for. The least counts, of all GPUs of a worker.
    is_built = (
        mxnet.runtime.Features().is_enabled("CUDA")
        if hasattr(mxnet, "runtime")
        else not subprocess.call(["grep", "-qF", CUDA_LIBRARY, mxnet.libinfo.find_lib_path()[0]])
    )
    ones = [mxnet.nd.ones((SIDE, SIDE), ctx=mxnet.gpu(number)) for number in range(gpus) if is_built]
    return min((float(mxnet.nd.dot(one, one)[0, 0].asscalar()) for one in ones), default=None)


def product_of_tensorflow(_: int) -> Optional[float]:
    with open(os.path.join(os.path.dirname(importlib.util.find_spec("tensorflow").origin), BUILD_FILE)) as file:
        if not re.search(CUDA_BUILD, file.read()):
            return None
    from tensorflow.compat import v1  # noqa: PLC0415 - of 1.13 and newer

    # Without options it would take the memory of all GPUs.
    options = v1.GPUOptions(allow_growth=True, visible_device_list=os.environ["LOCAL_RANK"])
    with v1.Graph().as_default(), v1.device("/gpu:0"):
        ones = v1.ones((SIDE, SIDE))
        return float(v1.Session(config=v1.ConfigProto(gpu_options=options)).run(v1.matmul(ones, ones))[0][0])


PRODUCTS = {"torch": product_of_torch, "mxnet": product_of_mxnet, "tensorflow": product_of_tensorflow}
# What a program may use, by what started it; of several one that computes is enough.
FRAMEWORKS = {"mpi": tuple(PRODUCTS), "parameter-server": ("mxnet",), "torch": ("torch",)}


def digest(path: str) -> str:
    """Return a data file's length and the beginning of the hash of its two ends."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            ends = file.read(COMPARED_BYTES)
            file.seek(max(0, size - COMPARED_BYTES))
            return "{} bytes {}".format(size, hashlib.sha256(ends + file.read()).hexdigest()[:12])
    except OSError as error:
        sys.exit("reading the data: {}".format(error))
