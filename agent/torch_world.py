"""One rank's place in a world of torchrun, and a sum over all ranks with the backend that a program gets: NCCL on GPUs, else gloo."""

import os
import sys
import time


def place():
    """Return the rank in the world, and on its node."""
    return int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])


def versions():
    """Return what has to be the same on every node; ``gpus`` is None for a build that computes on processors only."""
    import torch  # noqa: PLC0415 - not where ranks are started otherwise

    cuda = torch.version.cuda
    return {"torch": torch.__version__, "CUDA": cuda, "gpus": torch.cuda.device_count() if cuda else None}


def allreduce(count):
    """Return the seconds of the sum of ``count`` floats over all ranks."""
    import torch  # noqa: PLC0415
    from torch import distributed  # noqa: PLC0415

    on_gpus = torch.cuda.is_available()
    device = torch.device("cuda", place()[1]) if on_gpus else torch.device("cpu")
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
