"""What of a run is fetched already, by the list that the last fetch has left."""

import json
import os
import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from microcluster.command_line.parts import print_json
from microcluster.remote.inventory import Inventory, RemoteFile
from microcluster.run import fetch
from microcluster.setup import environment

FILES = {
    "progress.jsonl": RemoteFile("/r/p", "progress.jsonl", 9, "a", "record", there={"gpu-0": 5}),
    "logdir/step-9.pt": RemoteFile("/r/9", "logdir/step-9.pt", 3000, "b", "newest checkpoint", {"gpu-0": 5}),
    "logdir/x.csv": RemoteFile("/r/x", "logdir/x.csv", 70, "c", "small file", {"gpu-0": 5, "gpu-1": 6}),
}
LARGE = RemoteFile("/r/l", "logdir/all.bin", 5 * 10**8, "", "above the limits", there={"gpu-1": 5})
FOUND = Inventory("abcdef012345", "0a1b2c", 9, tuple(FILES.values()))


def after_fetching(folder: Path, found: Inventory, then: Inventory) -> dict[str, Any]:
    fetch._write_manifest("v100", found, folder, {})
    return fetch.unfetched_of(then, fetch.manifest_in(folder))


def changed(path: str, /, **fields: Any) -> Inventory:
    return replace(FOUND, files=tuple((FILES | {path: replace(FILES[path], **fields)}).values()))


def test_nothing_is_missing_after_a_fetch(tmp_path: Path) -> None:
    facts = after_fetching(tmp_path, FOUND, FOUND)
    assert (facts["unfetched"], facts["gone_on"], facts["fetched_step"]) == ([], False, 9)
    silent = replace(FOUND, silent=("connecting to gpu-1: no answer.",))
    assert after_fetching(tmp_path, silent, silent)["gone_on"], "a node did not answer, so it was no whole one"


def test_all_results_are_missing_before_one() -> None:
    facts = fetch.unfetched_of(replace(FOUND, left=(LARGE,)), {})
    assert facts["unfetched"] == [
        "logdir/step-9.pt (3.0 kB, newest checkpoint on gpu-0)",
        "logdir/x.csv (70 bytes, small file on gpu-0, gpu-1)",
        "logdir/all.bin (500.0 MB, above the limits on gpu-1)",
    ]
    assert facts["gone_on"]


@pytest.mark.parametrize(
    ("path", "fields", "unfetched", "gone_on"),
    [
        ("progress.jsonl", {"size": 10, "there": {"gpu-0": 6}}, 0, True),
        ("logdir/x.csv", {"there": {"gpu-0": 5, "gpu-1": 7}}, 1, False),
        ("logdir/step-9.pt", {"path": "logdir/step-10.pt"}, 1, False),
    ],
    ids=["more steps", "written again on one node", "another checkpoint"],
)
def test_what_was_written_since_is_missing(tmp_path, path, fields, unfetched, gone_on):
    facts = after_fetching(tmp_path, FOUND, changed(path, **fields))
    assert (len(facts["unfetched"]), facts["gone_on"]) == (unfetched, gone_on)


@pytest.mark.parametrize("below", ["nodes/gpu-1/", "nodes/gpu-1/nodes/gpu-1/"])
def test_a_file_of_one_node_that_came_under_a_name_of_its_own_is_known_again(tmp_path: Path, below: str) -> None:
    own = replace(LARGE, path=f"{below}logdir/all.bin")
    found = replace(FOUND, files=(*FOUND.files, own))
    then = replace(FOUND, left=(LARGE,))
    assert after_fetching(tmp_path, found, then)["unfetched"] == []
    fetch._write_manifest("v100", replace(FOUND, files=(*FOUND.files, LARGE)), tmp_path, {})
    assert after_fetching(tmp_path, FOUND, then)["unfetched"] == [], "though this fetch did not ask for it"


def test_what_is_not_fetched_is_summed_up_by_kind_the_most_wanted_first() -> None:
    torn = RemoteFile("/r/10", "logdir/step-10.pt", 2000, "", "suspected checkpoint", {"gpu-0": 5}, "", "it is torn")
    aside = RemoteFile("/r/8", "logdir.torn-1/step-8.pt", 5000, "", "put aside", {"gpu-0": 5})
    facts = fetch.unfetched_of(replace(FOUND, files=(*FOUND.files, torn), left=(aside, LARGE)), {})
    kinds = "1 newest checkpoint, 1 suspected checkpoint, 1 put aside, 1 small file, 1 above the limits"
    assert facts["sum"] == f"5 files of 500.0 MB ({kinds})"
    assert facts["unfetched"][1] == "logdir/step-10.pt (2.0 kB, suspected checkpoint on gpu-0): it is torn"


def test_an_older_checkpoint_that_is_here_is_not_asked_about_once_a_newer_one_was_fetched(tmp_path: Path) -> None:
    older = replace(FILES["logdir/step-9.pt"], what="checkpoint")
    newer = replace(FILES["logdir/step-9.pt"], source="/r/10", path="logdir/step-10.pt")
    later = replace(FOUND, step=10, files=(newer,), left=(older,))
    after_fetching(tmp_path, FOUND, FOUND)
    assert after_fetching(tmp_path, replace(later, left=()), later)["unfetched"] == []
    whats = {one["path"]: one["what"] for one in fetch.manifest_in(tmp_path)["files"]}
    assert (whats["logdir/step-9.pt"], whats["logdir/step-10.pt"]) == ("checkpoint", "newest checkpoint")


def test_two_trainings_of_one_run_have_two_folders_and_no_machine_chooses_where(monkeypatch):
    monkeypatch.setattr(environment, "ARTIFACTS", Path("/home/artifacts"))
    first, again = (environment.fetched_folder("v100", "abcdef012345", word) for word in ("0a1b2c", "3d4e5f"))
    assert first == Path("/home/artifacts/v100/abcdef012345-0a1b2c") != again
    assert environment.fetched_folder("v100", "../../etc", "/../..") == Path("/home/artifacts/v100/ec-")


def test_the_list_that_a_fetch_leaves_is_the_one_that_translating_reads(tmp_path: Path) -> None:
    fetch._write_manifest("v100", FOUND, tmp_path, {})
    manifest = json.loads((tmp_path / fetch.MANIFEST).read_text())
    assert (manifest["run"], manifest["word"], manifest["step"]) == ("abcdef012345", "0a1b2c", 9)
    assert {"path", "size", "sha256", "what", "there"} <= set(manifest["files"][0])


def test_files_are_printed_as_their_fields(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"folder": Path("/a"), "files": FOUND.files}, fetch._as_json)
    assert json.loads(capsys.readouterr().out) == {"folder": "/a", "files": [asdict(file) for file in FOUND.files]}


def test_a_long_list_of_files_is_not_held_as_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w") as nowhere:
        monkeypatch.setattr("sys.stdout", nowhere)
        tracemalloc.start()
        print_json({"files": [LARGE] * 2000}, fetch._as_json)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 1_000_000, "bytes"
