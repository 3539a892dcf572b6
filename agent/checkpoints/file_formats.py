"""Checkpoints of any program: the files and folders in the log folder that ``options["pattern"]`` matches, with the group ``step``.

The pattern is compared with the path below the log folder, and with the bare name at any depth. All that matches one step is one
checkpoint, with everything in a folder that matches, whichever node has written it. It bears the name of the match that sorts first.

It is whole once nobody writes to it and its files do not contradict that: a zip without its end, a distributed checkpoint without its
``.metadata``, fewer files than the checkpoint before. Of other formats only the program knows more.
"""

import contextlib
import json
import os
import re
import struct
import zipfile
from collections import Counter

from agent.checkpoints.being_written import being_written
from agent.checkpoints.log_folder import Checkpoints

ZIP, ZIPPED = b"PK\x03\x04", (".npz", ".zip", ".keras")
"""How a zip begins, as torch.save writes it too, and endings of files that are one."""
HDF5, END_AT = b"\x89HDF\r\n\x1a\n", {0: 40, 1: 44, 2: 28, 3: 28}
"""How HDF5 begins, as Keras writes .h5, and .keras up to 2.12; and where each version of its head says the file's length."""
WEIGHTS = ZIPPED + (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".distcp", ".metadata", ".h5")
"""Never empty; a folder may hold other files that are."""
METADATA, SHARD, SHARDS = ".metadata", ".distcp", re.compile(rb"__\d+_\d+\.distcp")
"""Of torch's distributed checkpoints: written last, and it names the files of all ranks."""
TRAINER_STATE, RANDOM_STATE = "trainer_state.json", "rng_state"
"""What Hugging Face's Trainer writes last, and what only the Trainer writes before."""
LAST = (METADATA, TRAINER_STATE, "meta.pt")
BROKEN = (
    zipfile.BadZipFile,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
)


class Format(Checkpoints):
    """The checkpoints in a log folder."""

    any_node_writes = True

    def part_of(self, file):
        """Return (step, the path that matches) of the checkpoint that a file belongs to, or None."""
        parts, pattern = file.split(os.sep), re.compile(self.options["pattern"])
        for number, part in enumerate(parts):
            path = os.sep.join(parts[: number + 1])
            match = pattern.fullmatch(path) or pattern.fullmatch(part)
            step = match.group("step") if match else None
            if step and step.isdecimal():
                return int(step), path
        return None

    def by_step(self):
        """Return {step: {file: the path that matches}}."""
        found = {}
        for folder, _, names in os.walk(self.logdir):
            for name in names:
                file = os.path.relpath(os.path.join(folder, name), self.logdir)
                part = self.part_of(file)
                if part:
                    found.setdefault(part[0], {})[file] = part[1]
        return found

    def found(self):
        """Return [(step, name)], newest first."""
        return sorted(((step, min(files.values())) for step, files in self.by_step().items()), reverse=True)

    def files_of(self, name):
        return sorted(self.by_step().get(self.part_of(name)[0], {}))

    def kinds_of(self, name):
        return {"data": self.files_of(name)}

    def flaw_of(self, name):
        step, steps = self.part_of(name)[0], self.by_step()
        files, older = steps.get(step, {}), [one for one in steps if one < step]
        try:
            writing = being_written(dict((file, os.stat(self.path(file))) for file in files))
            flaws = [flaw(self.path(file), part == file) for file, part in sorted(files.items())] if not writing else []
            lacking = lack(self.path(""), files)
        except FileNotFoundError:
            files = {}
        if not files:
            return name + " is gone"
        if writing:
            return writing[0] + " is being written"
        for file, why in zip(sorted(files), flaws):
            if why:
                return "{} {}".format(file, why)
        return lacking or (fewer(step, files, max(older), steps[max(older)]) if older else "")

    def leave(self, files):
        """Remove the folders that held nothing but these files."""
        for file in sorted(files, reverse=True):
            parts = file.split(os.sep)
            for depth in range(len(parts) - 1, 0, -1):
                with contextlib.suppress(OSError):
                    os.rmdir(self.path(os.sep.join(parts[:depth])))


def flaw(path, is_checkpoint):
    """Return what is wrong with a file by what its format says, or an empty text."""
    name, size = os.path.basename(path), os.path.getsize(path)
    ending = os.path.splitext(name)[1] or name
    if not size:
        return "is empty" if is_checkpoint or ending in WEIGHTS else ""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if head.startswith(HDF5):
                end = struct.unpack_from("<Q", head, END_AT[head[8]])[0]
                if size < end:
                    return "is torn: it has {} bytes in place of {}".format(size, end)
            elif head.startswith(ZIP) or ending in ZIPPED:
                zipfile.ZipFile(path).close()
            if ending == ".safetensors" and size != end_of_tensors(file):
                return "is torn: it has {} bytes in place of {}".format(size, end_of_tensors(file))
            if name == TRAINER_STATE:
                file.seek(0)
                json.loads(file.read().decode())
    except BROKEN as error:
        return "is torn: {}".format(error)
    return ""


def end_of_tensors(file):
    """Return where a file of safetensors has to end, by the header that it begins with."""
    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    if length > os.fstat(file.fileno()).st_size:
        raise ValueError("its header is cut short")
    tensors = json.loads(file.read(length).decode())
    return 8 + length + max([one["data_offsets"][1] for name, one in tensors.items() if name != "__metadata__"] or [0])


def lack(logdir, files):
    """Return which file a folder lacks by what else is in it, or an empty text."""
    for folder in sorted(set(map(os.path.dirname, files))):
        names = set(os.path.basename(file) for file in files if os.path.dirname(file) == folder)
        wanted = set()
        if METADATA in names:
            with open(os.path.join(logdir, folder, METADATA), "rb") as file:
                wanted = set(name.decode() for name in SHARDS.findall(file.read()))
        elif any(name.endswith(SHARD) for name in names):
            wanted = {METADATA}
        if any(name.startswith(RANDOM_STATE) for name in names):
            wanted.add(TRAINER_STATE)
        if wanted - names:
            return "{} lacks {}".format(folder or "it", " and ".join(sorted(wanted - names)))
    return ""


def fewer(step, files, step_before, files_before):
    """Return what the checkpoint before has more of, or an empty text: the files of some ranks, or what is written last."""
    now, before = (Counter(re.sub(r"\d+", "#", name) for name in names) for names in (files, files_before))
    for kind, count in sorted(before.items()):
        if 0 < now[kind] < count or (not now[kind] and os.path.basename(kind) in LAST):
            text = "checkpoint {} has {} of the {} files {} that checkpoint {} has"
            return text.format(step, now[kind], count, kind, step_before)
    return ""
