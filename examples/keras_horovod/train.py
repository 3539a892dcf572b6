"""A Keras model with Horovod's callbacks, as in Horovod's own guide; the digits are noisy strokes, made here."""

import argparse
import os

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--folder", default=".")
parser.add_argument("--model", help="a saved model to go on from")
parser.add_argument("--initial-epoch", type=int, default=0)
args = parser.parse_args()

hvd.init()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")

shapes = np.random.default_rng(0).random((10, 8, 8))
noise = np.random.default_rng(1 + hvd.rank())
labels = noise.integers(0, 10, 8_000)
images = (shapes[labels] + 0.5 * noise.standard_normal((8_000, 8, 8))).astype("float32")

if args.model:
    model = hvd.load_model(args.model)
else:
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(8, 8)),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10, activation="softmax"),
        ]
    )
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size()))
    model.compile(loss="sparse_categorical_crossentropy", optimizer=optimizer, metrics=["accuracy"])

callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.001 * hvd.size(), warmup_epochs=3, verbose=1),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint(os.path.join(args.folder, "checkpoint-{epoch}.keras")))

model.fit(
    images,
    labels,
    batch_size=32,
    epochs=args.epochs,
    initial_epoch=args.initial_epoch,
    callbacks=callbacks,
    verbose=1 if hvd.rank() == 0 else 0,
)
