"""Checkpoints as TensorFlow writes them: ``model.ckpt-100``, or ``best_models/val_loss=1.6-step-101`` of an evaluation, which holds all variables too.

A checkpoint is `NAME.index`, a sorted table of blocks (LevelDB's format, uncompressed), and the data files of which it gives every
tensor's place. So a torn write shows without TensorFlow and without reading the tensors. As a program in the container it reads
every tensor with the framework, which compares all checksums. Argument: the path without ending.
"""

import os
import re
import struct
from typing import Any, Dict, Iterator, List, Optional, Tuple

from agent.formats.checkpoints.entries import Checkpoint
from agent.formats.checkpoints.log_folder import UNREADABLE, Checkpoints
from agent.machine import write_whole

KINDS = (".index", ".meta", ".data")
REGULAR = re.compile(r"(model\.ckpt-(\d+))\.(?:index|meta|data-\d{5}-of-\d{5})")
BEST = re.compile(r"(best_models/val_loss=.*-step-(\d+))\.(?:index|meta|data-\d{5}-of-\d{5})")
LOSS = re.compile(r"val_loss=(\d+(?:\.\d+)?)-step-")
HALF_WRITTEN = re.compile(r"\.tempstate\d+$")
"""Names of TensorFlow's files until they are whole; a rank that is killed meanwhile leaves one, as large as a checkpoint."""
BEST_FOLDER = "best_models"
POINTER = "checkpoint"
FOOTER_BYTES = 48
MAGIC = 0xDB4775248B80FB57
BLOCK_TRAILER_BYTES = 5
SHARD, OFFSET, SIZE, SHARDS = 3, 4, 5, 1
"""Fields of a tensor's place, and of the entry without a name, which stands for the checkpoint."""
FIXED_BYTES = {1: 8, 5: 4}
"""Bytes of a field in a protocol buffer, by the kinds that have a fixed length."""
GLOBAL_STEP = b"global_step"
DATA = "{}.data-{:05d}-of-{:05d}"


class Format(Checkpoints):
    """The checkpoints in a log folder of TensorFlow."""

    is_read_back = True

    def part_of(self, file: str) -> Optional[Checkpoint]:
        """Return (step, name) of the checkpoint that a file is a part of, or None."""
        match = REGULAR.fullmatch(file) or BEST.fullmatch(file)
        return Checkpoint(int(match.group(2)), match.group(1)) if match else None

    def flaw_of(self, name: str) -> str:
        kinds = [file[len(name) :].partition("-")[0] for file in self.files_of(name)]
        missing = [kind for kind in KINDS if kind not in kinds]
        return name + " lacks " + " and ".join(missing) if missing else flaw(self.path(name))

    def kind_of(self, name: str, file: str) -> str:
        return file[len(name) + 1 :].partition("-")[0]

    def shared_files(self, name: str) -> List[str]:
        """Return the framework's own lists of its checkpoints."""
        return [file for file in (POINTER, BEST_FOLDER + "/" + POINTER) if os.path.exists(self.path(file))]

    def is_best(self, name: str) -> bool:
        return name.startswith(BEST_FOLDER)

    def best(self) -> Optional[str]:
        return min(self.best_whole(), key=loss_of, default=None)

    def step_of(self, name: str, named: int) -> int:
        """Return how many updates a checkpoint holds: OpenSeq2Seq names a best model by the step after its own."""
        try:
            step = global_step(self.path(name))
        except (Torn, OSError, KeyError):
            return named
        return step if step == named - 1 else named

    def half_written(self) -> List[str]:
        return [name for name in self.entries.files() if HALF_WRITTEN.search(name)]

    def prepare(self, name: str) -> List[str]:
        """Point the framework at a checkpoint; the other nodes only look whether this file and the index are there."""
        write_whole(self.path(POINTER), self.pointer(name))
        return [POINTER, name + ".index"]

    def pointer(self, name: str) -> str:
        """Return the text of the file ``checkpoint``, which is all that the framework looks at.

        Best models stay out of the list of those that the framework may remove when newer ones come.
        """
        regular = [old for _, old in reversed(self.found()) if not self.is_best(old)]
        lines = ['model_checkpoint_path: "' + name + '"']
        return "\n".join(lines + ['all_model_checkpoint_paths: "' + old + '"' for old in regular]) + "\n"


def loss_of(name: str) -> float:
    """Return the validation loss in a best model's name."""
    match = LOSS.search(name)
    return float(match.group(1)) if match else float("inf")


class Torn(Exception):
    """The checkpoint cannot be read back; the argument says why."""


def flaw(prefix: str) -> str:
    """Return why the checkpoint with this path prefix cannot be whole, or an empty text."""
    try:
        for path, wanted in sorted(data_sizes(prefix).items()):
            there = os.path.getsize(path) if os.path.exists(path) else None
            if there != wanted:
                found = "missing" if there is None else str(there) + " bytes"
                return os.path.basename(path) + " is " + found + " instead of " + str(wanted) + " bytes"
    except (Torn, OSError, LookupError, TypeError, struct.error) as error:
        return os.path.basename(prefix) + ".index: " + str(error)
    return ""


def data_sizes(prefix: str) -> Dict[str, int]:
    """Return {path of a data file: its size in bytes} as the index says."""
    tensors, ends = table_of(prefix), {}
    shards = tensors.pop(b"", {}).get(SHARDS, 1)
    if not tensors:
        raise Torn("it names no tensor")
    for place in tensors.values():
        shard = place.get(SHARD, 0)
        ends[shard] = max(ends.get(shard, 0), place.get(OFFSET, 0) + place.get(SIZE, 0))
    return dict((DATA.format(prefix, shard, shards), end) for shard, end in ends.items())


def global_step(prefix: str) -> int:
    """Return the number of updates that a checkpoint holds; there is a KeyError where it does not say."""
    tensors = table_of(prefix)
    place = tensors[GLOBAL_STEP]
    with open(DATA.format(prefix, place.get(SHARD, 0), tensors.get(b"", {}).get(SHARDS, 1)), "rb") as file:
        file.seek(place.get(OFFSET, 0))
        written = file.read(8)
    if place.get(SIZE, 0) != 8 or len(written) != 8:
        raise Torn("its step is no whole number")
    return struct.unpack("<q", written)[0]


def table_of(prefix: str) -> Dict[bytes, Dict[int, Any]]:
    """Return {name of a tensor: the fields of its place}; the empty name stands for the checkpoint."""
    with open(prefix + ".index", "rb") as file:
        table = file.read()
    if len(table) < FOOTER_BYTES or struct.unpack("<Q", table[-8:])[0] != MAGIC:
        raise Torn("it has no end")
    footer = table[-FOOTER_BYTES:]
    _, at = varint(footer, varint(footer, 0)[1])
    blocks = [entries(block(table, handle, 0)) for _, handle in entries(block(table, footer, at))]
    return dict((key, dict(fields(value))) for found in blocks for key, value in found)


def block(table: bytes, handle: bytes, at: int) -> bytes:
    """Return the content of the block that a handle (offset, size) points to."""
    offset, at = varint(handle, at)
    size, at = varint(handle, at)
    if offset + size + BLOCK_TRAILER_BYTES > len(table):
        raise Torn("a block is cut short")
    return table[offset : offset + size]


def entries(content: bytes) -> List[Tuple[bytes, bytes]]:
    """Return the (key, value) pairs of a block; keys share their beginning with the one before."""
    restarts = struct.unpack("<I", content[-4:])[0]
    end, at, key, found = len(content) - 4 * (restarts + 1), 0, b"", []
    while at < end:
        shared, at = varint(content, at)
        own, at = varint(content, at)
        size, at = varint(content, at)
        key = key[:shared] + content[at : at + own]
        at += own
        found.append((key, content[at : at + size]))
        at += size
    return found


def fields(content: bytes) -> Iterator[Tuple[int, Any]]:
    """Yield (number, value) of a protocol buffer: numbers for varints, bytes for all else."""
    at = 0
    while at < len(content):
        tag, at = varint(content, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(content, at)
        else:
            size, at = varint(content, at) if kind == 2 else (FIXED_BYTES[kind], at)
            value, at = content[at : at + size], at + size
        yield tag >> 3, value


def varint(content: bytes, at: int) -> Tuple[int, int]:
    """Return a number of seven bits a byte, and where it ends."""
    value, shift = 0, 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def main(prefix: str) -> int:
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
