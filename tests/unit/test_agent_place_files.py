"""The files of a run's folder arrive in one go."""

import json
import subprocess
import sys

from microcluster.remote.job import PLACE


def place(folder, *files):
    argv = (sys.executable, "-c", PLACE.read_text(), str(folder))
    subprocess.run(argv, input=json.dumps(files), text=True, check=True)


def test_files_are_replaced_only_where_they_differ(tmp_path):
    folder = tmp_path / "runs" / "a"
    place(folder, ("one.py", "grün\n"), ("job.json", "{}\n"))
    before = (folder / "one.py").stat().st_ino
    place(folder, ("one.py", "grün\n"), ("job.json", '{"a": 1}\n'))
    assert (folder / "one.py").stat().st_ino == before
    assert (folder / "one.py").read_text() == "grün\n"
    assert (folder / "job.json").read_text() == '{"a": 1}\n'
    assert sorted(path.name for path in folder.iterdir()) == ["job.json", "logdir", "one.py"]
