"""Logistic regression on made-up data with Horovod: an example of a program of one's own for the kind `horovod`.

What differs from a program for one GPU has the numbers of docs/one-gpu-to-many.md. It prints its progress as JSON lines, saves under
another name and renames, and goes on from a checkpoint that it is given.
"""

import argparse
import json
import os
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

FEATURES, SAMPLES, RATE = 32, 2048, 0.125


def main():
    options = parse()
    hvd.init()  # 1
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")  # 2
    samples, labels = data(hvd.rank(), hvd.size())
    saved, begun = load(options.resume) if hvd.rank() == 0 else load(None)
    weights, step = tf.Variable(saved, name="weights"), tf.Variable(begun, name="step")
    hvd.broadcast_variables([weights, step], root_rank=0)  # 3
    step, rate = int(step), RATE * hvd.size()  # 4
    while step < options.steps:
        started = time.monotonic()
        with tf.GradientTape() as tape:
            scores = tf.linalg.matvec(samples, weights)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, scores))
        tape = hvd.DistributedGradientTape(tape)  # 4
        (gradient,) = tape.gradient(loss, [weights])
        weights.assign_sub(rate * gradient)
        step += 1
        if step % options.every == 0 or step == options.steps:
            accuracy = tf.reduce_mean(tf.cast((scores > 0) == (labels > 0), tf.float32))
            mean = hvd.allreduce(tf.stack([loss, accuracy]), name="figures").numpy()
            if hvd.rank() == 0:  # 5
                print(json.dumps({"step": step, "loss": float(mean[0]), "accuracy": float(mean[1])}), flush=True)
                save(options.folder, weights.numpy(), step)
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


def data(rank, ranks):
    """Return one rank's part of the samples and their labels: of all ranks' together no sample is missing or there twice."""
    truth = np.random.default_rng(0).normal(size=FEATURES)
    samples = np.random.default_rng(1).normal(size=(SAMPLES, FEATURES)).astype("float32")[rank::ranks]
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
