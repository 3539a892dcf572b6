"""Runs as every rank before the training: prints where it is, and sums as much as the training's gradients.

Arguments: the interface between the ranks, the configuration that the ranks will read, the size of the model in bytes, and
what started the rank, one of WORLDS.
"""

import ctypes
import hashlib
import json
import os
import shlex
import socket
import sys
import time

from agent.machine import hash_of
from agent.nodes.links import connected, listening
from agent.nodes.node_facts import address_of

FLOAT_BYTES = 4
MARK = "microcluster-preflight "
"""How the one line begins that every rank prints."""
JOIN_TIMEOUT_S = 60
MPI_LIBRARY = "libmpi.so.40"
"""Open MPI 3 and 4."""
NUMBER_VARIABLE = "MICROCLUSTER_NUMBER"
"""A process's number among all of its role."""
VERSION_VARIABLE = "MICROCLUSTER_MXNET_VERSION"
DATA_VARIABLE = "MICROCLUSTER_DATA_FILES"
COMPARED_BYTES = 1 << 20
"""From both ends of a data file: a whole one may have hundreds of gigabytes."""


class MpiWorld:
    """One rank's place in a world of Open MPI, and a sum over all ranks by its C interface: not every image has a binding for Python."""

    rank_variable = "OMPI_COMM_WORLD_RANK"

    def versions(self):
        """Return what has to be the same on every node; mpirun compares its own."""
        return {}

    def allreduce(self, count):
        """Return the seconds of the sum of ``count`` floats over all ranks."""
        mpi = ctypes.CDLL(MPI_LIBRARY, ctypes.RTLD_GLOBAL)
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
        if total[0] != float(os.environ["OMPI_COMM_WORLD_SIZE"]):
            sys.exit("the sum over all ranks is {} instead of {}".format(total[0], os.environ["OMPI_COMM_WORLD_SIZE"]))
        return seconds


class ParameterServerWorld:
    """One worker's place at a parameter server of MXNet, and a sum over all workers by way of the servers.

    The import of MXNet turns a server or scheduler into a loop that ends with the last worker, and with it the program. The store gives
    its own numbers after the start; ours follow the nodes.
    """

    rank_variable = NUMBER_VARIABLE

    def versions(self):
        """Return what has to be the same on every node; ``gpus`` is None for a build that computes on processors only."""
        import mxnet  # noqa: PLC0415 - not where ranks are started otherwise

        wanted = os.environ[VERSION_VARIABLE]
        if mxnet.__version__.split(".post")[0] != wanted:
            sys.exit("MXNet {} is installed; job.mxnetVersion says {}".format(mxnet.__version__, wanted))
        found = {"MXNet": mxnet.__version__}
        found.update((os.path.basename(path), digest(path)) for path in shlex.split(os.environ[DATA_VARIABLE]))
        return dict(found, gpus=gpus(mxnet))

    def allreduce(self, count):
        """Return the seconds in which ``count`` floats of every worker are added up on the servers and read back."""
        import mxnet  # noqa: PLC0415

        store = mxnet.kv.create("dist_sync")
        total, ones = mxnet.nd.zeros((count,)), mxnet.nd.ones((count,))
        store.init(0, total)
        began = time.monotonic()
        store.push(0, ones)
        store.pull(0, out=total)
        found = float(total[count - 1].asscalar())  # Reading the number waits for the store.
        seconds = time.monotonic() - began
        if found != store.num_workers:
            sys.exit("the sum over all workers is {} instead of {}".format(found, store.num_workers))
        return seconds


class TorchWorld:
    """One rank's place in a world of torchrun, and a sum over all ranks with the backend that a program gets: NCCL on GPUs, else gloo."""

    rank_variable = "RANK"

    def versions(self):
        """Return what has to be the same on every node; ``gpus`` is None for a build that computes on processors only."""
        import torch  # noqa: PLC0415 - not where ranks are started otherwise

        cuda = torch.version.cuda
        return {"torch": torch.__version__, "CUDA": cuda, "gpus": torch.cuda.device_count() if cuda else None}

    def allreduce(self, count):
        """Return the seconds of the sum of ``count`` floats over all ranks."""
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
        if found != wanted:
            sys.exit("the sum over all ranks is {} instead of {}".format(found, wanted))
        return seconds


class NodeWorld:
    """One node's place in a world of one process on each, and a count of all at the first node: no framework is known that would sum."""

    rank_variable = "NODE_RANK"

    def versions(self):
        """Return what has to be the same on every node."""
        return {}

    def allreduce(self, count):
        """Return the seconds after which every node has heard from the first one that all of them are there."""
        where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        nodes, began = int(os.environ["WORLD_SIZE"]), time.monotonic()
        if os.environ[self.rank_variable] == "0":
            self.admit(where, nodes)
        else:
            self.join(where, nodes)
        return time.monotonic() - began

    def admit(self, where, nodes):
        """Wait for every other node, and tell each how many there are."""
        with listening(*where, nodes, JOIN_TIMEOUT_S) as listener:
            others = [listener.accept()[0] for _ in range(nodes - 1)]
        for other in others:
            with other:
                other.sendall(str(nodes).encode())

    def join(self, where, nodes):
        """Connect to the first node, which may still be starting, and compare what it counts."""
        first = connected(*where, JOIN_TIMEOUT_S)
        with first, first.makefile("rb") as answer:
            found = answer.read().decode()
        if found != str(nodes):
            sys.exit("the first node counts {} nodes instead of {}".format(found or "no", nodes))


WORLDS = {"mpi": MpiWorld, "parameter-server": ParameterServerWorld, "torch": TorchWorld, "node": NodeWorld}


def main(interface, config, size, world):
    started = WORLDS[world]()
    facts = {
        "rank": int(os.environ[started.rank_variable]),
        "host": socket.gethostname(),
        "address": address_of(interface),
        "config": hash_of(config)[:12],
        "versions": started.versions(),
        "allreduce_s": round(started.allreduce(int(size) // FLOAT_BYTES), 3),
    }
    # One write: the lines of several ranks go into one pipe.
    sys.stdout.write(MARK + json.dumps(facts, sort_keys=True) + "\n")
    sys.stdout.flush()


def gpus(mxnet):
    """Return how many GPUs the framework sees; None where it was built without them, or is too old to say."""
    try:
        return mxnet.context.num_gpus() or None
    except (AttributeError, mxnet.base.MXNetError):
        return None


def digest(path):
    """Return a data file's length and the beginning of the hash of its two ends."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            ends = file.read(COMPARED_BYTES)
            file.seek(max(0, size - COMPARED_BYTES))
            return "{} bytes {}".format(size, hashlib.sha256(ends + file.read()).hexdigest()[:12])
    except OSError as error:
        sys.exit("reading the data: {}".format(error))
