"""Classify small images with MXNet on one machine or over a parameter server: an example for the kind `mxnet`.

It takes the arguments of MXNet's own example/image-classification that have a meaning here, and MXNet itself writes the lines of its
log. Beyond that example it ends at the end of an epoch once any worker sees the file that MICROCLUSTER_STOP_FILE names.
"""

import argparse
import logging
import math
import os
import time

import mxnet as mx
from networks import NETWORKS


class Stopped(Exception):
    """All workers have agreed to end."""


def main():
    options = parse()
    store = mx.kv.create(options.kv_store)
    if options.gc_type != "none":
        store.set_gradient_compression({"type": options.gc_type, "threshold": options.gc_threshold})
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)-15s Node[{store.rank}] %(message)s")
    logging.info("digits_mxnet, MXNet %s, worker %d of %d", mx.__version__, store.rank, store.num_workers)
    mx.random.seed(0)
    batches = max(1, math.ceil(options.num_examples / store.num_workers / options.batch_size))
    train = mx.io.ResizeIter(records(options, options.data_train, store, shuffle=True), batches)
    validation = records(options, options.data_val, store, shuffle=False)
    network = NETWORKS[options.network](options.num_classes)
    weights = load(options, store.rank)
    model = mx.mod.Module(symbol=network, context=devices(options.gpus))
    metrics = mx.metric.CompositeEvalMetric(["accuracy", *options.loss.split(",")] if options.loss else ["accuracy"])
    stop = StopFile(store)

    def epoch_over(epoch, symbol, arguments, auxiliary):
        prefix = own_prefix(options.model_prefix, store.rank)
        mx.model.save_checkpoint(prefix, epoch + 1, symbol, arguments, auxiliary)
        for name, value in model.score(validation, metrics):
            logging.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
        stop.check()

    rate, schedule = rates(options, batches)
    try:
        model.fit(
            train,
            eval_metric=metrics,
            kvstore=store,
            optimizer="sgd",
            optimizer_params={
                "learning_rate": rate,
                "lr_scheduler": schedule,
                "momentum": options.mom,
                "wd": options.wd,
                "multi_precision": True,
            },
            initializer=mx.init.Xavier(),
            arg_params=weights[0],
            aux_params=weights[1],
            begin_epoch=options.load_epoch or 0,
            num_epoch=options.num_epochs,
            batch_end_callback=[mx.callback.Speedometer(options.batch_size, options.disp_batches), pause(options.pace)],
            epoch_end_callback=epoch_over,
        )
    except Stopped:
        logging.info("stopped at the end of an epoch")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=sorted(NETWORKS), default="mlp")
    parser.add_argument("--data-train", required=True, help="RecordIO")
    parser.add_argument("--data-val", required=True, help="RecordIO")
    parser.add_argument("--image-shape", default="1,8,8")
    parser.add_argument("--num-classes", type=int, default=10)
    parser.add_argument("--num-examples", type=int, required=True, help="of the training")
    parser.add_argument("--batch-size", type=int, default=128, help="of one worker")
    parser.add_argument("--kv-store", default="local")
    parser.add_argument("--gc-type", choices=("none", "2bit"), default="none")
    parser.add_argument("--gc-threshold", type=float, default=0.5)
    parser.add_argument("--num-epochs", type=int, required=True)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--lr-factor", type=float, default=0.1)
    parser.add_argument("--lr-step-epochs", default="30,60")
    parser.add_argument("--mom", type=float, default=0.9)
    parser.add_argument("--wd", type=float, default=0.0001)
    parser.add_argument(
        "--dtype", choices=("float32",), default="float32", help="processors have no other that is fast"
    )
    parser.add_argument("--loss", default="", help="ce: log the cross-entropy too")
    parser.add_argument("--disp-batches", type=int, default=20)
    parser.add_argument("--data-nthreads", type=int, default=4)
    parser.add_argument("--model-prefix", required=True)
    parser.add_argument("--load-epoch", type=int)
    parser.add_argument("--gpus", default="", help="such as 0,2; empty for processors")
    parser.add_argument(
        "--pace", type=float, default=0.0, help="seconds to wait after each batch, to have time to watch"
    )
    return parser.parse_args()


def records(options, path, store, shuffle):
    """Return the worker's share of a file."""
    return mx.io.ImageRecordIter(
        path_imgrec=path,
        data_shape=tuple(int(one) for one in options.image_shape.split(",")),
        batch_size=options.batch_size,
        shuffle=shuffle,
        scale=1 / 255,
        preprocess_threads=options.data_nthreads,
        num_parts=store.num_workers,
        part_index=store.rank,
    )


def devices(gpus):
    return [mx.gpu(int(one)) for one in gpus.split(",")] if gpus else mx.cpu()


def rates(options, batches):
    """Return the rate to begin with, and what lowers it after the epochs that are still to come."""
    begin = options.load_epoch or 0
    epochs = [int(one) for one in options.lr_step_epochs.split(",")]
    rate = options.lr * options.lr_factor ** sum(begin >= epoch for epoch in epochs)
    steps = [batches * (epoch - begin) for epoch in epochs if epoch > begin]
    schedule = (
        mx.lr_scheduler.MultiFactorScheduler(step=steps, factor=options.lr_factor, base_lr=rate) if steps else None
    )
    return rate, schedule


def own_prefix(prefix, rank):
    """Return where a worker saves: all have the same weights, and each its own file."""
    return f"{prefix}-{rank}" if rank else prefix


def load(options, rank):
    """Return weights and auxiliary states of the epoch that is gone on from."""
    if not options.load_epoch:
        return None, None
    own = own_prefix(options.model_prefix, rank)
    prefix = own if os.path.exists(own + "-symbol.json") else options.model_prefix
    _, weights, auxiliary = mx.model.load_checkpoint(prefix, options.load_epoch)
    logging.info("Loaded model %s_%04d.params", prefix, options.load_epoch)
    return weights, auxiliary


def pause(seconds):
    """Return what waits after each batch."""
    return lambda parameters: time.sleep(seconds)


class StopFile:
    """Lets all workers end after the same epoch: one that ends alone would leave the others waiting in the next.

    Each pushes whether it sees the file to the servers, which answer when all have: a value that is not zero has met one who does.
    """

    KEY = "stop"

    def __init__(self, store):
        self.store, self.path = store, os.environ.get("MICROCLUSTER_STOP_FILE", "")
        self.begun = False

    def check(self):
        seen = mx.nd.full((1,), float(bool(self.path) and os.path.exists(self.path)))
        if not self.begun:
            self.store.init(self.KEY, mx.nd.zeros((1,)))
            self.begun = True
        self.store.push(self.KEY, seen)
        self.store.pull(self.KEY, out=seen)
        if seen.asscalar():
            raise Stopped


if __name__ == "__main__":
    main()
