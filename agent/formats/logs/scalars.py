"""Reads one scalar out of the event files that TensorBoard shows.

An event file is a row of records: length (8 bytes), checksum of the length (4), content, checksum of the content (4). The
content is a protocol buffer of TensorFlow's type Event. Arguments: the log folder, the scalar's name.
"""

import glob
import json
import math
import os
import struct
from typing import Iterator, List, Tuple

from agent import inside
from agent.formats.checkpoints.tensorflow import fields

HEADER, TRAILER_BYTES, FLOAT = struct.Struct("<QI"), 4, struct.Struct("<f")
LONGEST_BYTES = 1 << 16
"""A record of scalars has a few hundred bytes; the graph, of megabytes, is passed over."""
STEP, SUMMARY, VALUE, TAG, SIMPLE_VALUE = 2, 5, 1, 1, 2
"""Fields of Event, Summary and Summary.Value."""
Point = Tuple[int, float]


def scalar(logdir: str, tag: str) -> List[Point]:
    """Return [(step, value)] in the order in which they were written."""
    paths = sorted(glob.glob(os.path.join(logdir, "events.out.tfevents.*")), key=os.path.getmtime)
    return [point for path in paths for content in records(path) for point in points(content, tag)]


def records(path: str) -> Iterator[bytes]:
    """Yield the contents of the short records; the last one may just be being written."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        while file.tell() + HEADER.size <= size:
            length, _ = HEADER.unpack(file.read(HEADER.size))
            after = file.tell() + length + TRAILER_BYTES
            if after > size:
                return
            if length <= LONGEST_BYTES:
                yield file.read(length)
            file.seek(after)


def points(event: bytes, tag: str) -> List[Point]:
    """Return (step, value) of each value with this tag in one event."""
    found, step = [], 0
    for field, content in fields(event):
        if field == STEP:
            step = content
        elif field == SUMMARY:
            values = [dict(fields(value)) for number, value in fields(content) if number == VALUE]
            found += [FLOAT.unpack(value[SIMPLE_VALUE])[0] for value in values if value.get(TAG) == tag.encode()]
    return [(step, value) for value in found if math.isfinite(value)]


def main(logdir: str, tag: str) -> None:
    folder, name = os.path.split(logdir)
    print(json.dumps(scalar(os.path.join(inside(folder), name), tag)))
