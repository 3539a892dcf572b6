"""Runs as every rank before the training: prints where it is, and sums as much as the training's gradients.

Arguments: the interface between the ranks, the configuration that the ranks will
read, the size of the model in bytes.
"""

import ctypes
import hashlib
import json
import os
import socket
import sys
import time

from agent.node_facts import address_of

MPI_LIBRARY = "libmpi.so.40"
"""Open MPI 3 and 4; by its C interface, because not every image has a binding for Python."""
FLOAT_BYTES = 4
MARK = "microcluster-preflight "
"""How the one line begins that every rank prints."""


def main(interface, config, size):
    with open(config, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    facts = {
        "rank": int(os.environ["OMPI_COMM_WORLD_RANK"]),
        "local_rank": int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]),
        "host": socket.gethostname(),
        "address": address_of(interface),
        "config": digest,
        "allreduce_s": allreduce(int(size) // FLOAT_BYTES),
    }
    sys.stdout.write(MARK + json.dumps(facts, sort_keys=True) + "\n")


def allreduce(count):
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
    return round(seconds, 3)
