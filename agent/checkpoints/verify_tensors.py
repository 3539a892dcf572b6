"""Reads every tensor of a checkpoint with the framework, which compares their checksums; runs in the container.

Argument: the path without ending. Exit code 3 when a tensor cannot be read back;
"""

import os

from agent.checkpoints import UNREADABLE


def main(prefix):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf  # noqa: PLC0415 - what cannot be loaded is another failure than what cannot be read

    no_memory = (MemoryError, tf.errors.ResourceExhaustedError)
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except no_memory:  # It says nothing of the checkpoint.
        raise
    except Exception as error:  # noqa: BLE001 - the framework has a class for each way in which bytes can be wrong
        print("reading " + prefix + " back: " + str(error).splitlines()[0])
        return UNREADABLE
    return 0
