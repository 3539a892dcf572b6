"""The run document as both sides read it, and the files of its folder, which arrive in one go."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import sample_spec

from agent.run import document
from microcluster.remote.job import AGENT, PLACE

FROZEN = Path(__file__).parents[1] / "frozen"


def test_what_microcluster_writes_the_agent_reads_as_attributes(tmp_path):
    written = sample_spec.parsed(processes=[sample_spec.process("train", environment={"A": "b"})])
    (tmp_path / document.FILE).write_text(document.text(written))
    found = document.read(str(tmp_path / document.FILE))
    assert found == written
    assert (found.version, found.run, found.limits.stall_s) == (document.VERSION, "abcdef012345", 900)
    assert (found.program.processes[0].argv, found.program.processes[0].environment) == (["train"], {"A": "b"})


def test_every_missing_and_unknown_key_is_named_in_one_sentence():
    values = sample_spec.values()
    del values["run"], values["machines"]["ssh"]
    values["limits"]["slot"] = 2
    with pytest.raises(
        document.SpecError, match="^reading job.json: run: missing; machines/ssh: missing; limits/slot: "
    ):
        document.parse(values, "job.json")


@pytest.mark.parametrize("part", [None, [], "x", 3])
def test_a_part_that_is_no_object_is_refused(part):
    with pytest.raises(document.SpecError, match="machines/addresses: missing"):
        document.parse({**sample_spec.values(), "machines": part}, "job.json")


@pytest.mark.parametrize("given", [{"run": "a", "max_steps": 1}, {"version": 99}, [], None])
def test_a_document_of_another_version_is_a_sentence_with_the_next_step(given):
    with pytest.raises(document.SpecError, match=r"another version of microcluster wrote it .* \(make up\)"):
        document.parse(given, "job.json")


@pytest.mark.parametrize("version", document.EARLIER)
def test_a_flat_document_of_an_earlier_version_is_read_in_parts(version):
    flat = json.loads((FROZEN / "flat.torchrun-v100.json").read_text())
    found = document.parse({**flat, "version": version}, "job.json")
    for part, kind in document.PARTS:
        values = document.plain(getattr(found, part))
        for key in kind._fields:
            name = sample_spec.flat_name(part, key)
            assert values[key] == flat.get(name, document.LACKING.get(name)), name
    assert (found.run, found.kind, found.folder) == (flat["run"], "torchrun", "")
    del flat["ssh"]
    with pytest.raises(document.SpecError, match="machines/ssh: missing"):
        document.parse({**flat, "version": version}, "job.json")


def test_a_supervisor_that_finds_another_version_says_so_and_does_not_start(tmp_path):
    (tmp_path / document.FILE).write_text(json.dumps({"run": "a", "max_steps": 1}))
    argv = (sys.executable, str(AGENT), "supervise.supervisor", "start", str(tmp_path))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")
    assert "another version of microcluster wrote it" in done.stdout


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
