"""The script that prepares WMT16, run here with a stand-in for OpenSeq2Seq's own script."""

from __future__ import annotations

import subprocess

import pytest

from launchers.openseq2seq import DATASETS
from launchers.rendering import render

DATA = DATASETS["wmt16-en-de"]


def prepare(tmp_path, pieces=32768, sources=5, targets=5):
    """Let OpenSeq2Seq's script make files of so many lines; return how the preparation ended and whether it is marked."""
    counts = {name: 3 for name in DATA.files}
    counts |= {DATA.vocabulary: pieces, DATA.train_source: sources, DATA.train_target: targets}
    made, folder = tmp_path / "OpenSeq2Seq", tmp_path / "data"
    (made / "scripts").mkdir(parents=True)
    lines = [f'seq {count} > "$1/{name}"' for name, count in counts.items()]
    (made / "scripts" / "get_en_de.sh").write_text("\n".join(lines) + "\n")
    script = render(DATA.script, folder=str(folder), data=DATA)
    script = script.replace("/tmp/get", f"{tmp_path}/get").replace("/opt/OpenSeq2Seq", str(made))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    return done, (folder / "SHA256SUMS").exists()


def test_a_whole_set_is_marked_as_prepared_with_the_sums_of_the_files_that_the_job_reads(tmp_path):
    done, marked = prepare(tmp_path)
    assert (done.returncode, done.stderr, marked) == (0, "", True)
    assert (tmp_path / "data" / "SHA256SUMS").read_text().count("\n") == len(DATA.files)


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ({"targets": 4}, "the train files have 5 and 4 lines, which do not pair"),
        ({"pieces": 236}, "the vocabulary has 236 lines instead of 32768, a multiple of 8"),
    ],
)
def test_files_that_do_not_fit_together_are_refused_and_never_marked_as_prepared(tmp_path, counts, problem):
    done, marked = prepare(tmp_path, **counts)
    assert (done.returncode, done.stderr.strip(), marked) == (1, problem, False)
