"""One worker's place at a parameter server of MXNet, and a sum over all workers by way of the servers.

The import of MXNet turns a server or scheduler into a loop that ends with the last worker, and with it the program. The store gives
its own numbers after the start; ours follow the nodes.
"""

import hashlib
import os
import shlex
import sys
import time

NUMBER_VARIABLE, LOCAL_VARIABLE = "MICROCLUSTER_NUMBER", "MICROCLUSTER_LOCAL_NUMBER"
"""A process's number among all of its role, and a worker's among those of its node."""
VERSION_VARIABLE = "MICROCLUSTER_MXNET_VERSION"
DATA_VARIABLE = "MICROCLUSTER_DATA_FILES"
COMPARED_BYTES = 1 << 20
"""From both ends of a data file: a whole one may have hundreds of gigabytes."""


def place():
    """Return the worker's number, and that on its node."""
    return int(os.environ[NUMBER_VARIABLE]), int(os.environ[LOCAL_VARIABLE])


def versions():
    """Return what has to be the same on every node; ``gpus`` is None for a build that computes on processors only."""
    import mxnet  # noqa: PLC0415 - not where ranks are started otherwise

    wanted = os.environ[VERSION_VARIABLE]
    if mxnet.__version__.split(".post")[0] != wanted:
        sys.exit("MXNet {} is installed; job.mxnetVersion says {}".format(mxnet.__version__, wanted))
    found = {"MXNet": mxnet.__version__}
    found.update((os.path.basename(path), digest(path)) for path in shlex.split(os.environ[DATA_VARIABLE]))
    return dict(found, gpus=gpus(mxnet))


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


def allreduce(count):
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
