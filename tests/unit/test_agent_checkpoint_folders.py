"""Folders of checkpoints as public programs lay them out: their names, and the texts of their pointers."""

import struct

from agent.checkpoints import file_formats
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


@recorded("checkpoint_folder")
def test_a_programs_own_folder_is_read_and_its_pointers_set(answer: Recorded, tmp_path) -> None:
    lay_out(tmp_path, answer.answer)
    there = file_formats.Format(str(tmp_path), {"pattern": answer.asked["pattern"]})
    names = [name for _, name in there.found()]
    doubts = {name: there.suspicion_of(name) for name in names}
    (step, chosen) = there.newest_whole()
    back_to = answer.asked.get("back_to", chosen)
    needed = there.prepare(back_to)
    pointers = {name: (tmp_path / name).read_text() for name in there.shared_files(back_to)}
    found = {
        "found": [list(one) for one in there.found()],
        "doubted": {name: why for name, why in doubts.items() if why},
        "chosen": chosen,
        "needed": needed,
        "pointers": pointers,
    }
    assert {key: found[key] for key in answer.expected} == answer.expected
    assert there.pointers_elsewhere(back_to) == []
