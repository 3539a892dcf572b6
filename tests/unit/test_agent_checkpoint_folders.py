"""Folders of checkpoints as public programs lay them out: their names, and the texts of their pointers."""

import json
import re
import struct
import time

from agent.formats.checkpoints import file_formats, rewritten
from tests.recorded import Recorded, recorded

EMPTY_TENSORS = struct.pack("<Q", 2) + b"{}"


def lay_out(folder, listing):
    """Write the files of a listing: a name on each line, and after a colon what a text holds."""
    for line in listing.split("\n"):
        name, _, text = line.partition(": ")
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            content = EMPTY_TENSORS if name.endswith(".safetensors") else b"weights"
            (folder / name).write_bytes(text.encode() or content)


def checkpoints(folder, asked):
    """Return the checkpoints in ``logdir``; what is written over has the step of the last progress line, and a copy."""
    options = {"pattern": asked["pattern"]}
    if "step" not in asked:
        return file_formats.Format(str(folder / "logdir"), options)
    line = {"event": "train", "step": asked["step"], "loss": 2.0, "t": time.time() - 60.0}
    (folder / "progress.jsonl").write_text(json.dumps(line) + "\n")
    found = rewritten.Format(str(folder / "logdir"), options)
    found.records, found.at_work = str(folder), False
    assert found.copy("")
    return found


def plain(name):
    return re.sub(r"-\d{13}/", "-TIME/", name)


@recorded("checkpoint_folder")
def test_a_programs_own_folder_is_read_and_its_pointers_set(answer: Recorded, tmp_path) -> None:
    lay_out(tmp_path / "logdir", answer.answer)
    there = checkpoints(tmp_path, answer.asked)
    names = [name for _, name in there.found()]
    doubts = {name: there.suspicion_of(name) for name in names}
    _, chosen = there.newest_whole()
    back_to = answer.asked.get("back_to", chosen)
    needed = there.prepare(back_to)
    pointers = {name: (tmp_path / "logdir" / name).read_text() for name in there.shared_files(back_to)}
    found = {
        "found": [[step, plain(name)] for step, name in there.found()],
        "doubted": {name: why for name, why in doubts.items() if why},
        "chosen": plain(chosen),
        "needed": needed,
        "pointers": pointers,
    }
    assert {key: found[key] for key in answer.expected} == answer.expected
    assert there.pointers_elsewhere(back_to) == []
