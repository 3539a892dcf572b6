"""A run's specification as both sides read it, and the files of its folder, which arrive in one go."""

import json
import subprocess
import sys

import pytest
import sample_spec

from agent.run import document
from microcluster.remote.job import AGENT, PLACE


def test_what_microcluster_writes_the_agent_reads_as_attributes(tmp_path):
    values = {**sample_spec.VALUES, "processes": [sample_spec.process("train", environment={"A": "b"})]}
    (tmp_path / document.FILE).write_text(document.text(values))
    found = document.read(str(tmp_path / document.FILE))
    assert (found.version, found.run, found.stall_s) == (document.VERSION, "abcdef012345", 900)
    assert (found.processes[0].argv, found.processes[0].environment) == (["train"], {"A": "b"})


def test_every_missing_and_every_unknown_key_is_named_in_one_sentence_on_both_sides():
    values = {key: value for key, value in sample_spec.VALUES.items() if key not in ("run", "ssh")}
    problems = "run: missing; ssh: missing; slot: unknown key$"
    with pytest.raises(document.SpecError, match=problems):
        document.text({**values, "slot": 2})
    with pytest.raises(document.SpecError, match=f"^reading job.json: {problems}"):
        document.parse({**values, "slot": 2}, "job.json")


@pytest.mark.parametrize("given", [{"run": "a", "max_steps": 1}, {"version": 99}, [], None])
def test_a_document_of_another_version_is_a_sentence_with_the_next_step(given):
    with pytest.raises(document.SpecError, match=r"another version of microcluster wrote it .* \(make up\)"):
        document.parse(given, "job.json")


def test_a_document_of_the_version_before_is_read_with_what_it_lacks():
    earlier = {key: value for key, value in sample_spec.VALUES.items() if key not in document.LACKING}
    found = document.parse({**earlier, "version": document.EARLIER}, "job.json")
    assert (found.setup, found.run) == ([], "abcdef012345")
    with pytest.raises(document.SpecError, match="setup: missing"):
        document.parse(earlier, "job.json")


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
