"""The whole staging of a data set on tiny archives of the real layout; the tool that knows sentence pieces is a stand-in."""

import copy
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launching import transformer
from test_agent_staging_archive import tar_of

from agent.data import staging
from agent.data.progress import Refused
from microcluster.core.polling import wait_until
from microcluster.jobs.finished_data import Data, SentFile
from microcluster.jobs.openseq2seq_datasets import DATASETS
from microcluster.jobs.run_spec import sent_folder
from microcluster.jobs.run_spec import staging as staging_of

JOB = transformer(model="transformer-base", batchPerGpu=128, dataset="wmt16-en-de")
VOCABULARY = 64
SGML = '<refset>\n<doc docid="1">\n<seg id="1"> {} one </seg>\n<seg id="2">{} two</seg>\n</doc>\n</refset>\n'


def corpus(language, count):
    lines = [f"{language} sentence number {number}" for number in range(count)]
    return ("\n".join([*lines, "", "word " * 100, f"{language} | the end"]) + "\n").encode()


def planned(tmp_path):
    disk = str(tmp_path / "data")
    return staging_of(JOB.data_of(disk, None), disk)


@pytest.fixture
def plan(tmp_path):
    """Return the plan of WMT16 with archives of this machine, each of the layout of the real one."""
    made = copy.deepcopy(planned(tmp_path))
    made["vocabulary"][1] = VOCABULARY
    parts = {
        "europarl-v7.tgz": {f"europarl-v7.de-en.{one}": corpus(one, 20) for one in ("en", "de")},
        "common-crawl.tgz": {f"commoncrawl.{pair}": corpus(pair, 9) for pair in ("de-en.en", "de-en.de", "fr-en.fr")},
        "news-commentary-v11.tgz": {
            f"training-parallel-nc-v11/news-commentary-v11.de-en.{one}": corpus(one, 5) for one in ("en", "de")
        },
        "wmt13-test.tgz": {f"test/newstest2013-src.{one}.sgm": SGML.format(one, one).encode() for one in ("en", "de")},
        "wmt14-test.tgz": {
            f"test/newstest2014-deen-{one}.sgm": SGML.format(one, one).encode() for one in ("src.en", "ref.de")
        },
    }
    for archive in made["archives"]:
        assert archive["address"].startswith("https://")
        tar_of(tmp_path / archive["name"], *parts[archive["name"]].items(), mode="w:gz")
        archive["address"] = f"file://{tmp_path / archive['name']}"
        archive.pop("md5", None)
    return made


class Pieces:
    """Learns nothing and cuts at blanks; ``fails_at`` names the file at which it breaks off once."""

    def __init__(self, size=VOCABULARY, fails_at=None):
        self.size, self.fails_at, self.jobs, self.flags = size, fails_at, [], None

    def run(self, jobs):
        self.jobs += [job[0] for job in jobs]
        for kind, *words in jobs:
            if kind == "learn":
                self.flags = words[2]
                with open(words[0] + ".vocab", "w") as vocabulary, open(words[0] + ".model", "w"):
                    vocabulary.writelines(f"piece{number}\t0\n" for number in range(self.size))
                continue
            model, source, target = words
            if self.fails_at and self.fails_at in target:
                self.fails_at = None
                raise Refused("broken off")
            with open(source) as text, open(target, "w") as out:
                out.writelines("▁" + line.replace(" ", " ▁") for line in text)


def carried_out(plan, tool=None):
    used = tool or Pieces()
    os.makedirs(plan["work"], exist_ok=True)
    staging.Staging(plan, tool=used).carry_out()
    return used


def lines(plan, name):
    with open(os.path.join(plan["folder"], name)) as file:
        return file.read().splitlines()


def is_sealed(plan):
    return subprocess.call(["sha256sum", "-c", "--status", "SHA256SUMS"], cwd=plan["folder"]) == 0


def test_the_tool_learns_with_the_recipes_flags_and_again_when_they_change(plan):
    broken = Pieces(fails_at="wmt13-en-de.ref")
    with pytest.raises(Refused):
        carried_out(plan, broken)
    assert broken.flags.split() == plan["pieces"]
    plan["pieces"] = plan["pieces"][:-1]
    assert carried_out(plan).flags.split() == plan["pieces"]


def test_the_recipe_makes_the_files_that_the_job_reads_and_those_that_translating_needs(plan):
    carried_out(plan)
    data = DATASETS["wmt16-en-de"]
    assert set(os.listdir(plan["folder"])) == {*data.files, *data.optional, "ID", "SHA256SUMS", "archives.json"}
    assert is_sealed(plan)
    train, (_, translated) = data.pairs
    source, target = (lines(plan, name) for name in train)
    assert len(source) == len(target) == 20 + 9 + 5 + 3
    for one, other in zip(source, target, strict=True):
        assert one.rpartition("▁")[2] == other.rpartition("▁")[2]
    assert source != sorted(source)
    assert lines(plan, translated) == ["▁de ▁one", "▁de ▁two"]
    assert [name for name in os.listdir(plan["work"]) if name in staging.FOLDERS] == []


def test_a_staging_that_was_broken_off_does_only_what_is_missing(plan, capsys):
    tool = Pieces(fails_at="wmt13-en-de.ref")
    with pytest.raises(Refused):
        carried_out(plan, tool)
    assert not is_sealed(plan)
    capsys.readouterr()
    again = carried_out(plan)
    said = capsys.readouterr().out
    for stage in ("europarl-v7.tgz", "cleaned", "shuffled", "pieces"):
        assert f"staging: {stage}: is there already\n" in said
    assert "learn" not in again.jobs
    assert is_sealed(plan)


def test_a_result_that_changed_on_the_disk_is_made_again_with_all_that_follows(plan, capsys):
    with pytest.raises(Refused):
        carried_out(plan, Pieces(fails_at="wmt13"))
    path = os.path.join(plan["work"], "cleaned", "train.en")
    with open(path, "r+b") as file:
        file.write(b"X")
    capsys.readouterr()
    carried_out(plan)
    said = capsys.readouterr().out
    assert "europarl-v7.tgz: is there already" in said
    assert "cleaned: is there already" not in said
    assert "cleaning: 37 pairs" in said


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        (VOCABULARY - 1, "m_common.vocab has 63 lines, which is no multiple of 8"),
        (VOCABULARY + 8, "m_common.vocab has 72 lines instead of 64"),
    ],
)
def test_a_vocabulary_of_another_size_is_refused_with_its_number_and_nothing_is_sealed(plan, size, problem):
    with pytest.raises(Refused, match=f"{problem}. Nothing was trained"):
        carried_out(plan, Pieces(size))
    assert not is_sealed(plan)


def test_a_sum_of_an_earlier_time_does_not_outlive_the_beginning_of_a_new_staging(plan):
    carried_out(plan)
    with pytest.raises(Refused):
        carried_out(plan, Pieces(fails_at="wmt13"))
    assert not os.path.exists(os.path.join(plan["folder"], "SHA256SUMS"))


def text_of(words):
    return "".join(f" word{number} word{number} \n" for number in range(words)).encode()


@pytest.mark.parametrize(("words", "found"), [(9_999, None), (10_000, "10001")])
def test_a_text_is_refused_unless_it_has_as_many_different_words_as_its_program_insists_on(tmp_path, words, found):
    folder = tmp_path / "ptb"
    folder.mkdir()
    (folder / "ptb.train.txt").write_bytes(text_of(words))
    plan = {"pairs": [], "vocabulary": None, "words": ["ptb.train.txt", 10_000]}
    if found is None:
        staging.check(str(folder), plan)
        return
    with pytest.raises(Refused, match=f"ptb.train.txt has {found} different words"):
        staging.check(str(folder), plan)


def finished(count=4, other=4, pieces=2048):
    """Return finished files of the small data set, as another computer has made them."""
    data = DATASETS["debian-en-de"]
    counts = (pieces, count, other, 2, 2)
    return {name: b"x\n" * number for name, number in zip(data.files, counts, strict=True)}


def brought(tmp_path, data, files):
    """Return the plan of data that are brought, and let what was sent lie where it arrives."""
    disk = str(tmp_path / "data")
    wanted = transformer().data_of(disk, data.id)
    sent = sent_folder(wanted.id, disk)
    os.makedirs(sent)
    for name, content in files.items():
        with open(os.path.join(sent, name), "wb") as file:
            file.write(content)
    return staging_of(wanted, disk, data)


def sent_files(files):
    return tuple(SentFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in files.items())


def test_files_that_were_sent_become_the_data_only_if_their_hashes_are_right(tmp_path):
    files, garbled = finished(), {"train.en.tok": b"y"}
    plan = brought(tmp_path, Data(path="/there", is_tar=False, files=sent_files(files)), files)
    carried_out(plan)
    assert sorted(os.listdir(plan["folder"])) == sorted([*files, "ID", "SHA256SUMS"])
    assert is_sealed(plan)
    other = brought(tmp_path / "other", Data(path="/there", is_tar=False, files=sent_files(files)), files | garbled)
    with pytest.raises(Refused, match="train.en.tok: its sha256 is"):
        carried_out(other)


def test_a_tar_that_was_sent_is_unpacked_and_finished_files_of_unequal_lines_are_refused(tmp_path):
    for number, (other, passes) in enumerate([(4, True), (3, False)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with open(tar_of(folder / "t.tar", *finished(other=other).items()), "rb") as file:
            content = file.read()
        plan = brought(folder, Data(path="/t.tar", files=sent_files({"t.tar": content})), {"t.tar": content})
        if passes:
            carried_out(plan)
        else:
            with pytest.raises(Refused, match="train.en.tok and train.de.tok have 4 and 3 lines, which make no pairs"):
                carried_out(plan)
        assert is_sealed(plan) is passes


@pytest.fixture
def program(plan, tmp_path):
    """Return the staging program with a plan whose tool waits for ever, started."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    tool = tmp_path / "tool.py"
    learner = str(tmp_path / "learner")
    tool.write_text(f"import os, time\nopen({learner!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n")
    start = "import sys; from agent.data import staging; staging.PIECES = [sys.executable, sys.argv[2]]; sys.exit(staging.main(sys.argv[1]))"
    folder = Path(staging.__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", start, path, tool], cwd=folder, stdout=subprocess.DEVNULL)
    yield child
    child.kill()
    child.wait()


def wait_for_pieces(folder):
    """Return the process that learns the pieces, once it is at work."""
    learner = folder / "learner"
    wait_until("the learner", lambda: learner.exists() and learner.read_text(), timeout_s=120, every_s=0.05)
    return int(learner.read_text())


def test_a_staging_that_is_told_to_end_takes_its_own_processes_with_it(program, tmp_path):
    learner = wait_for_pieces(tmp_path)
    program.send_signal(signal.SIGTERM)
    assert program.wait(60) == staging.TERMINATED
    assert not os.path.exists(f"/proc/{learner}")


def test_a_second_staging_of_the_same_data_is_refused_and_a_killed_one_is_gone_on_with(program, plan, tmp_path, capsys):
    learner = wait_for_pieces(tmp_path)
    assert staging.main(str(tmp_path / "plan.json")) == staging.REFUSED
    assert "another staging of the same data is at work" in capsys.readouterr().out
    program.kill()
    program.wait()
    os.kill(learner, signal.SIGKILL)
    carried_out(plan)
    assert "shuffled: is there already" in capsys.readouterr().out
    assert is_sealed(plan)


def test_the_last_words_of_the_tool_are_the_reason_and_nothing_of_it_is_left(plan, tmp_path, monkeypatch):
    tool = tmp_path / "tool.py"
    tool.write_text("import sys\nsys.exit('Vocabulary size is too high (32768)')\n")
    monkeypatch.setattr(staging, "PIECES", [sys.executable, str(tool)])
    with pytest.raises(Refused, match="exit code 1. Vocabulary size is too high"):
        carried_out(plan, staging.Tool(plan["work"]))
    carried_out(plan)
    assert os.listdir(plan["work"]) == []
