"""A regression on the devices of all machines with jax.distributed: an example for the kind `command`, one process on each node.

Process 0 is where all others meet, prints the progress as JSON lines, and saves; every process goes on from the same checkpoint.
"""

import argparse
import json
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

FEATURES, SAMPLES, RATE = 64, 512, 0.02


def main():
    options = parse()
    where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    jax.distributed.initialize(where, num_processes=options.processes, process_id=options.process)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    split, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    samples, wanted = (jax.make_array_from_process_local_data(split, part) for part in data(options.process))
    weights, step = load(options.resume)
    weights = jax.device_put(weights, everywhere)

    @jax.jit
    def update(weights, samples, wanted):
        loss, gradient = jax.value_and_grad(squared_error)(weights, samples, wanted)
        return weights - RATE * gradient, loss

    while step < options.steps:
        started = time.monotonic()
        weights, loss = update(weights, samples, wanted)
        step += 1
        if options.process == 0 and (step % options.every == 0 or step == options.steps):
            print(json.dumps({"step": step, "loss": float(loss)}), flush=True)
            save(options.folder, np.asarray(weights), step)
        time.sleep(max(0.0, options.pace - (time.monotonic() - started)))
    multihost_utils.sync_global_devices("the end")


def squared_error(weights, samples, wanted):
    return jnp.mean((samples @ weights - wanted) ** 2)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--process", type=int, required=True, help="the number of this process")
    parser.add_argument("--processes", type=int, required=True, help="how many there are")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--folder", required=True, help="for the checkpoints")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument(
        "--pace", type=float, default=0.0, help="seconds that a step takes at least, to have time to watch"
    )
    return parser.parse_args()


def data(process):
    """Return the samples of one process and what they are to become, by weights that are the same for all."""
    truth = np.random.default_rng(0).normal(size=FEATURES)
    samples = np.random.default_rng(1 + process).normal(size=(SAMPLES, FEATURES)).astype("float32")
    return samples, (samples @ truth).astype("float32")


def load(path):
    if not path:
        return np.zeros(FEATURES, "float32"), 0
    with np.load(path) as saved:
        return saved["weights"], int(saved["step"])


def save(folder, weights, step):
    """Write the checkpoint under another name first, so that one of this name is always whole."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"model-{step}.npz")
    with open(path + ".new", "wb") as file:
        np.savez(file, weights=weights, step=step)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


main()
