import json
import subprocess
import sys

import pytest
import sample_spec

from agent import spec
from microcluster.remote.job import AGENT


def test_what_microcluster_writes_the_agent_reads_as_attributes(tmp_path):
    values = {**sample_spec.VALUES, "processes": [sample_spec.process("train", environment={"A": "b"})]}
    (tmp_path / spec.FILE).write_text(spec.text(values))
    found = spec.read(str(tmp_path / spec.FILE))
    assert (found.version, found.run, found.stall_s) == (spec.VERSION, "abcdef012345", 900)
    assert (found.processes[0].argv, found.processes[0].environment) == (["train"], {"A": "b"})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"slots": "2"}, "slots has to be of type int, not str"),
        ({"mixed": 1}, "mixed has to be of type bool, not int"),
        ({"max_steps": True}, "max_steps has to be of type int, not bool"),
        ({"ssh": "ssh -F"}, "ssh has to be of type list, not str"),
        ({"addresses": ["10.0.0.0", 7]}, "addresses/1 has to be of type str, not int"),
        ({"reader_options": {"pattern": 1}}, "reader_options/pattern has to be of type str, not int"),
        ({"processes": [{"role": "rank"}]}, "processes/0/argv: missing"),
        ({"slot": 2}, "slot: unknown key"),
    ],
)
def test_a_wrong_value_is_named_on_both_sides(changes, problem):
    values = {**sample_spec.VALUES, **changes}
    with pytest.raises(spec.SpecError, match=problem):
        spec.text(values)
    with pytest.raises(spec.SpecError, match=problem):
        spec.parse({**values, "version": spec.VERSION}, "job.json")


def test_every_missing_key_is_named_in_one_sentence():
    values = {key: value for key, value in sample_spec.VALUES.items() if key not in ("run", "ssh")}
    with pytest.raises(spec.SpecError, match="^reading job.json: run: missing; ssh: missing$"):
        spec.parse({**values, "version": spec.VERSION}, "job.json")


@pytest.mark.parametrize("document", [{"run": "a", "max_steps": 1}, {"version": 99}, [], None])
def test_a_document_of_another_version_is_a_sentence_with_the_next_step(document):
    with pytest.raises(spec.SpecError, match=r"another version of microcluster wrote it .* \(make up\)"):
        spec.parse(document, "job.json")


def test_a_supervisor_that_finds_another_version_says_so_and_does_not_start(tmp_path):
    (tmp_path / spec.FILE).write_text(json.dumps({"run": "a", "max_steps": 1}))
    argv = (sys.executable, str(AGENT), "supervise.supervisor", "start", str(tmp_path))
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "")
    assert "another version of microcluster wrote it" in done.stdout
