"""One rank's place in a world of Open MPI, and a sum over all ranks by its C interface: not every image has a binding for Python."""

import ctypes
import os
import sys
import time

MPI_LIBRARY = "libmpi.so.40"
"""Open MPI 3 and 4."""


def place():
    """Return the rank in the world, and on its node."""
    return int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])


def versions():
    """Return what has to be the same on every node; mpirun compares its own."""
    return {}


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
    return seconds
