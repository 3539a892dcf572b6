"""Logistic regression on made-up data with Horovod: an example of a program of one's own for the kind `horovod`.

It prints its progress as JSON lines, saves under another name and renames, and goes on from a checkpoint that it is given.
"""

import argparse
import json
import os
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

FEATURES, SAMPLES, RATE = 32, 512, 0.5


def main():
    options = parse()
    hvd.init()
    samples, labels = data(hvd.rank())
    weights, step = load(options.resume) if hvd.rank() == 0 else (np.zeros(FEATURES, "float32"), 0)
    weights, step = hvd.broadcast_object((weights, step), root_rank=0)
    while step < options.steps:
        started = time.monotonic()
        predicted = 1 / (1 + np.exp(-samples @ weights))
        gradient = samples.T @ (predicted - labels) / len(labels)
        loss = -np.mean(np.log(np.where(labels > 0, predicted, 1 - predicted) + 1e-7))
        accuracy = np.mean((predicted > 0.5) == (labels > 0))
        figures = np.concatenate([gradient, [loss, accuracy]]).astype("float32")
        mean = hvd.allreduce(tf.constant(figures), name="figures").numpy()
        weights, step = weights - RATE * mean[:FEATURES], step + 1
        if hvd.rank() == 0 and (step % options.every == 0 or step == options.steps):
            print(json.dumps({"step": step, "loss": float(mean[-2]), "accuracy": float(mean[-1])}), flush=True)
            save(options.folder, weights, step)
        time.sleep(max(0.0, options.pace - (time.monotonic() - started)))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--folder", required=True, help="for the checkpoints")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument(
        "--pace", type=float, default=0.0, help="seconds that a step takes at least, to have time to watch"
    )
    return parser.parse_args()


def data(rank):
    """Return the samples of one rank and their labels; the same weights have labeled all of them."""
    truth = np.random.default_rng(0).normal(size=FEATURES)
    samples = np.random.default_rng(1 + rank).normal(size=(SAMPLES, FEATURES)).astype("float32")
    return samples, (samples @ truth > 0).astype("float32")


def load(path):
    if not path:
        return np.zeros(FEATURES, "float32"), 0
    with np.load(path) as saved:
        return saved["weights"], int(saved["step"])


def save(folder, weights, step):
    """Write the checkpoint under another name first, so that one of this name is always whole."""
    path = os.path.join(folder, f"model-{step}.npz")
    with open(path + ".new", "wb") as file:
        np.savez(file, weights=weights, step=step)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


if __name__ == "__main__":
    main()
