"""The registry of job kinds, and that nothing outside it knows what is trained."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from microcluster.jobs.cluster_facts import ClusterFacts, ClusterFactsError
from microcluster.jobs.kind import KINDS, kind_of
from microcluster.jobs.openseq2seq.model import OpenSeq2SeqJob

ROOT = Path(__file__).parents[2]
PROGRAMS = re.compile(r"openseq2seq|horovod|tensorflow|bleu", re.IGNORECASE)
PRODUCT = (
    *("microcluster", "agent", "components", "providers", "emulator", "engine", "templates"),
    *("__main__.py", "fabfile.py", "env.sh", "Makefile"),
)
KINDS_OWN = ("microcluster/jobs/", "agent/readers/", "agent/checkpoints/", "templates/openseq2seq/")
EXCEPTIONS = {
    "microcluster/setup/trainer_source.py": "brings the source of what `make images` builds",
    "microcluster/setup/images.py": "names the folder of that source in the cache",
}
"""Files that may name a program, with the reason."""


def named_in(file: str) -> bool:
    """Return whether a file names a program that a kind trains with."""
    try:
        return bool(PROGRAMS.search((ROOT / file).read_text()))
    except UnicodeDecodeError:
        return False


def test_nothing_outside_the_kinds_names_the_program_that_is_trained() -> None:
    listed = subprocess.run(["git", "ls-files", *PRODUCT], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [file for file in listed.splitlines() if not file.startswith(KINDS_OWN) and (ROOT / file).is_file()]
    assert {file for file in files if named_in(file)} - set(EXCEPTIONS) == set()
    assert {file for file in EXCEPTIONS if not named_in(file)} == set(), "an exception that nothing needs"


def test_no_code_outside_the_registry_asks_which_kind_it_is() -> None:
    for folder in ("microcluster", "components"):
        for file in (ROOT / folder).rglob("*.py"):
            if file.parent.name != "jobs":
                assert not re.search(r"kind(\.name)? (==|!=|in) [\"'(]", file.read_text()), file


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_complete(name: str) -> None:
    kind = kind_of(name)
    assert kind.name == name
    assert kind.runtime in ("container", "host")
    for word in ("section", "facts", "reader", "checkpoints", "metrics", "stop_order", "config_file"):
        assert hasattr(kind, word), word


def test_facts_of_a_kind_that_does_not_exist_are_refused_with_the_names_of_those_that_do() -> None:
    with pytest.raises(ClusterFactsError, match="'tensor2tensor' is no kind of job; one of openseq2seq"):
        ClusterFacts.from_json('{"stack": "s", "mark": "m", "job": {"kind": "tensor2tensor"}}')


def test_a_data_set_that_nobody_has_timed_makes_no_workload() -> None:
    def workload(dataset: str) -> object:
        job = OpenSeq2SeqJob("openseq2seq", "transformer-base", 1, "mixed", 256, 1, 1, dataset)
        return kind_of("openseq2seq").workload(job)

    assert workload("debian-en-de") is None
    assert workload("wmt16-en-de") is not None
