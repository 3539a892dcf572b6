"""Checkpoints of any program: the files and folders in the log folder that ``options["pattern"]`` matches, with the group ``step``;
``options["pointers"]`` are names of further files that say which of them the program goes on from.

The pattern is compared with the path below the log folder, and with the bare name at any depth. All that matches one step is one
checkpoint, with everything in a folder that matches, whichever node has written it. It bears the name of the match that sorts first.

A suspicion against it is what its files say: a zip without its end, a distributed checkpoint without its ``.metadata``, fewer files of
the ranks than the checkpoint before. Of other formats only the program knows more.
"""

import contextlib
import json
import os
import re
import struct
import zipfile
from collections import Counter
from typing import BinaryIO, List, Optional, Sequence, Set

from agent.formats.checkpoints.entries import Checkpoint, prefixes
from agent.formats.checkpoints.log_folder import Checkpoints, put_aside_beside
from agent.machine import read_json, write_whole
from agent.run.document import LARGEST_STEP

ZIP, ZIPPED = b"PK\x03\x04", (".npz", ".zip", ".keras")
"""First bytes of a zip, which torch.save writes too, and endings of zips."""
HDF5, END_AT = b"\x89HDF\r\n\x1a\n", {0: 40, 1: 44, 2: 28, 3: 28}
"""First bytes of HDF5, in which Keras writes .h5, and .keras up to 2.12; and the offset of the file's length by version of the head."""
WEIGHTS = ZIPPED + (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".distcp", ".metadata", ".h5")
"""Never empty; a folder may hold other files that are."""
METADATA, SHARD, SHARDS = ".metadata", ".distcp", re.compile(rb"__\d+_\d+\.distcp")
"""Of torch's distributed checkpoints: written last, and it names the files of all ranks."""
TRAINER_STATE, TRAINER = "trainer_state.json", "training_args.bin"
"""The last file of Hugging Face's Trainer, and one that it always writes before; other programs have files like its other ones."""
BEST = "best_model_checkpoint"
"""The key of the best checkpoint's path in the Trainer's state."""
WITH_TRAINER = re.compile(r"optimizer\.pt|scheduler\.pt|rng_state(_\d+)?\.pth")
"""Files of the Trainer in a checkpoint, and not where a model alone is saved."""
OF_RANK = re.compile(r"__\d+_\d+\.distcp|-\d+-of-\d+|(?:rank|shard|rng_state|random_states)[-_]?\d+")
"""Names of files and folders of one rank or shard, of which a checkpoint needs all; samples and plots are numbered too."""
POINTERS = ("latest", "latest_checkpointed_iteration.txt", "last_checkpoint", "checkpoint", "counter")
"""Files in which DeepSpeed, Megatron, Detectron2, TensorFlow and others say which checkpoint they go on from."""
POINTER_BYTES = 1 << 16
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
    RecursionError,
    MemoryError,
)


class Format(Checkpoints):
    """The checkpoints in a log folder."""

    any_node_writes = True

    def part_of(self, file: str) -> Optional[Checkpoint]:
        """Return (step, the path that matches) of the checkpoint that a file belongs to, or None."""
        pattern = re.compile(self.options["pattern"])
        for path in prefixes(file):
            match = pattern.fullmatch(path) or (os.sep in path and pattern.fullmatch(path.rpartition(os.sep)[2]))
            step = match.group("step") if match else None
            if step and re.fullmatch("[0-9]+", step) and int(step) < LARGEST_STEP:
                return Checkpoint(int(step), path)
        return None

    def flaw_of(self, name: str) -> str:
        files = self.names[name]
        for file in files:
            why = self.flaw_in(file)
            if why:
                return "{} {}".format(file, why)
        before, worlds = map(self.within, self.files_of(self.older.get(name))), self.options.get("worlds", ())
        why = lack(self.logdir, files) or fewer(list(map(self.within, files)), list(before), worlds)
        return why and name + why

    def flaw_in(self, file: str) -> str:
        """Return what is wrong with one of the files, or an empty text."""
        return flaw(self.path(file), file == self.part_of(file).name)

    def called_best(self) -> Set[int]:
        """Return the steps of what has "best" in its name, what a link or a text with such a name says, and what Hugging Face's Trainer names."""
        files = self.entries.files()
        named = [file for file in files if "best" in file.lower()]
        said = named + [os.path.realpath(self.path(file)) for file in named]
        said += [line for file in named for line in self.said_in(file).splitlines()]
        states = [(self.part_of(one) or (0,))[:1] + (one,) for one in files if os.path.basename(one) == TRAINER_STATE]
        state = read_json(self.path(max(states)[1])) if states else {}
        words = [path.split(os.sep) for path in said + [str(state.get(BEST) if isinstance(state, dict) else "")]]
        paths = [os.sep.join(path[number:]) for path in words for number in range(len(path))]
        return set(part.step for part in map(self.part_of, paths) if part)

    def shared_files(self, name: str) -> List[str]:
        """Return the pointers: files and links on the way to a checkpoint that say which one the program goes on from."""
        known = list(POINTERS) + self.options.get("pointers", [])
        parts, shape = self.entries.parts(), re.compile(shape_of(self.part_of(name).step, name))
        near = [file for folder in ["", *prefixes(name)] for file in self.entries.files_in(folder)]
        others = [(file, os.path.islink(self.path(file))) for file in near if file not in parts]
        return [
            one
            for one, is_link in others
            if os.path.basename(one) in known or (is_link and shape.search(self.said_in(one)))
        ]

    def said_in(self, file: str) -> str:
        """Return what a pointer says; nothing where that is no short text."""
        path = self.path(file)
        try:
            if os.path.islink(path):
                return os.readlink(path)
            with open(path, "rb") as opened:
                said = opened.read(POINTER_BYTES)
            return said.decode() if len(said) < POINTER_BYTES else ""
        except (OSError, ValueError):
            return ""

    def pointers_elsewhere(self, name: str) -> List[str]:
        self.found()
        step = self.part_of(name).step
        is_named = re.compile(r"(?<!\d)0*{}(?!\d)".format(step)).search
        return [file for file in self.shared_files(name) if not is_named(self.said_in(file))]

    def prepare(self, name: str) -> List[str]:
        """Let every pointer say this checkpoint; return the files that every node needs."""
        step, pointers = self.part_of(name).step, self.shared_files(name)
        places = [Format(place, self.options) for place in [self.logdir] + put_aside_beside(self.logdir)]
        known = set(at for place in places for at, _ in place.found())
        for file in pointers:
            said, path = self.said_in(file), self.path(file)
            text = pointing_at(said, step, name, known)
            if text != said and os.path.islink(path):
                with contextlib.suppress(FileNotFoundError):  # Of a resume that was killed.
                    os.remove(path + ".new")
                os.symlink(text, path + ".new")
                os.rename(path + ".new", path)
            elif text != said:
                write_whole(path, text)
        return self.files_of(name) + pointers


def shape_of(step: int, name: str) -> str:
    """Return the pattern of the part of a checkpoint's name that has its step, with any numbers."""
    named = [part for part in name.split(os.sep) if re.search(r"(?<!\d)0*{}(?!\d)".format(step), part)]
    return re.sub(r"\d+", r"\\d+", re.escape((named or [os.path.basename(name)])[-1]))


def pointing_at(text: str, step: int, name: str, known: Set[int]) -> str:
    """Return a pointer's text with the step or the name of a checkpoint in place of another one's; ``known`` are the steps of all."""
    word, shape = text.strip(), shape_of(step, name)
    if word.isdecimal():
        number = str(step).zfill(len(word) if word.startswith("0") else 0)
        return text.replace(word, number) if int(word) in known else text
    own = [part for part in name.split(os.sep) if re.fullmatch(shape, part)][-1]
    # Detectron2 names the last one "final"; another node, or one that was replaced, has no such file.
    return text if shape == r"\d+" else re.sub(shape.replace(r"\d+", r"(?:\d+|final)"), lambda match: own, text)


def flaw(path: str, is_checkpoint: bool) -> str:
    """Return what is wrong with a file by what its format says, or an empty text."""
    if not os.path.isfile(path):  # A link to a folder, or one that leads to where only the program sees.
        return ""
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


def end_of_tensors(file: BinaryIO) -> int:
    """Return where a file of safetensors has to end, by the header that it begins with."""
    file.seek(0)
    (length,) = struct.unpack("<Q", file.read(8))
    if length > os.fstat(file.fileno()).st_size:
        raise ValueError("its header is cut short")
    tensors = json.loads(file.read(length).decode())
    return 8 + length + max([one["data_offsets"][1] for name, one in tensors.items() if name != "__metadata__"] or [0])


def lack(logdir: str, files: Sequence[str]) -> str:
    """Return which file a folder lacks by what else is in it, or an empty text."""
    for folder in sorted(set(map(os.path.dirname, files))):
        names = set(os.path.basename(file) for file in files if os.path.dirname(file) == folder)
        wanted = set()
        if METADATA in names:
            with open(os.path.join(logdir, folder, METADATA), "rb") as file:
                wanted = set(name.decode() for name in SHARDS.findall(file.read()))
        elif any(name.endswith(SHARD) for name in names):
            wanted = {METADATA}
        if TRAINER in names and any(map(WITH_TRAINER.fullmatch, names)):
            wanted.add(TRAINER_STATE)
        if wanted - names:
            return " lacks " + " and ".join(os.path.join(folder, one) for one in sorted(wanted - names))
    return ""


def fewer(files: Sequence[str], files_before: Sequence[str], worlds: Sequence[int] = ()) -> str:
    """Return what the checkpoint before has more of, or an empty text: the files of some ranks, or what is written last.

    Args:
        worlds: how many files of one kind make a whole checkpoint where the checkpoint before may be of another number of ranks.
    """
    now, before = (Counter(re.sub(r"\d+", "#", name) for name in names) for names in (files, files_before))
    of_ranks = set(re.sub(r"\d+", "#", name) for name in files_before if OF_RANK.search(name))
    for kind, count in sorted(before.items()):
        if (kind in of_ranks and 0 < now[kind] < count and now[kind] not in worlds) or (
            not now[kind] and os.path.basename(kind) in LAST
        ):
            return " has {} of the {} files {} that the checkpoint before has".format(now[kind], count, kind)
    return ""
