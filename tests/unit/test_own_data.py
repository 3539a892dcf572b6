"""Data of a program of one's own: a folder or a tar that lies on every node, whole, where `{data}` says."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from launching import launched, on_gpus, run_id
from test_agent_staging_archive import LINK, tar_of

from agent.machine import read_json, write_json
from microcluster.config import local_files
from microcluster.config import stack as config
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.errors import Completed, RemoteError
from microcluster.remote.file_transfer import send_data
from microcluster.remote.job import AGENT
from microcluster.remote.openssh import NamedHost

CONTENT = bytes(range(256)) * 5000
SOURCE = {"source": "examples/horovod_regression", "script": "train.py"}
WORDS = {"arguments": "--from {data} --to {logdir}"}
ADDRESS = f"https://example.com/sets/a.tar.xz#sha256={'ab' * 32}"
KINDS = {
    "horovod": SOURCE | WORDS,
    "torchrun": SOURCE | WORDS,
    "mxnet": SOURCE | {"arguments": "--data-train {data}/train.rec --model-prefix {logdir}/m", "maxSteps": 5},
    "command": {"source": SOURCE["source"], "command": "python train.py --from {data}"},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder as people have them: folders in it, binary files, a hidden one, odd names, a link, a repository."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    made = tmp_path / "mine"
    for name in (
        "train/0/a.bin",
        "train/1/b.bin",
        ".hidden",
        "SHA256SUMS",
        "ID",
        "-T",
        "* two  blanks",
        "back\\slash",
        "ö",
    ):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_bytes(CONTENT + name.encode())
    (made / "train" / "newest").symlink_to("1/b.bin")
    (made / ".git").mkdir()
    (made / ".git" / "index").write_bytes(CONTENT)
    return made


def stack(kind="torchrun", data=None, **job):
    return on_gpus({"kind": kind, **KINDS[kind], "data": data and str(data), **job}, "torch")


class Login(NamedHost):
    """This computer in place of the first node; it notes what it was given."""

    def __init__(self):
        super().__init__("login.site.edu")
        self.given = 0

    def run(self, argv, *, stdin="", timeout_s=None, accept=(0,), answer_bytes=0):
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode in accept, done.stderr
        return Completed(done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def talk(self, argv, doing):
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:

            def send(piece):
                self.given += len(piece)
                child.stdin.write(piece)
                child.stdin.flush()

            try:
                yield send, child.stdout.read1
            finally:
                child.stdin.close()

    def extend(self, local, path):
        self.run(("mkdir", "-p", path.rpartition("/")[0]))
        shutil.copy(local, path)
        self.given += local.stat().st_size
        yield self.given


def placed(tmp_path, data) -> RunFolder:
    """Return a run on machines without containers, whose agent and texts lie in its folder."""
    run = launched(stack(data=data), on_machines=True, mount_point=str(tmp_path / "disk"))
    shutil.copytree(AGENT, f"{run.path}/agent")
    for name, text in run.texts().items():
        path = Path(run.path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return run


def staged(run):
    """Make the data as the supervisor does; return (exit code, last line)."""
    argv = run.document.data.stage
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout.splitlines()[-1]


def is_whole(run):
    return subprocess.run(["sh", f"{run.path}/bring_data.sh", "whole"], check=False).returncode == 0


def contents(top, *, without=()):
    """Return {name: bytes} of a folder; a link counts as itself."""
    paths = [path for path in Path(top).rglob("*") if path.is_symlink() or path.is_file()]
    found = {str(path.relative_to(top)): path.readlink() if path.is_symlink() else path.read_bytes() for path in paths}
    return {name: one for name, one in found.items() if name.split("/")[0] not in without}


def test_a_folder_lies_whole_where_data_says_and_goes_once(tmp_path, folder):
    run, launcher = placed(tmp_path, folder), Login()
    wanted = contents(folder, without=[".git"])
    assert send_data([launcher], run.facts)
    assert not is_whole(run)
    assert staged(run)[0] == 0
    words = run.document.program.processes[0].argv
    there = words[words.index("--from") + 1]
    assert contents(there) == wanted
    assert is_whole(run)
    given = launcher.given
    shutil.rmtree(folder)
    assert not send_data([launcher], run.facts), "unchanged data need nothing of this computer any more"
    assert launcher.given == given < 2 * sum(len(one) for one in wanted.values() if isinstance(one, bytes))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_of_this_computer_is_unpacked_with_its_folders(tmp_path, folder, mode):
    (folder / "train" / "newest").unlink()
    with tarfile.open(tmp_path / "a.tar", mode) as archive:
        archive.add(folder, "set")
    run = placed(tmp_path, tmp_path / "a.tar")
    send_data([Login()], run.facts)
    assert staged(run)[0] == 0
    assert contents(f"{run.data.content}/set") == contents(folder)
    assert is_whole(run)


def test_a_tar_behind_an_address_is_pinned_and_limited_on_the_machines(folder):
    run = launched(stack(data=ADDRESS))
    made = run.texts()["staging.json"]
    assert all(word in made for word in ('"kind": "whole"', "ab" * 32, "https://example.com/sets/a.tar.xz"))
    assert f'"most_bytes": {10**11}' in made
    assert run.facts.data.id == "ab" * 6
    assert ClusterFacts.from_json(run.facts.to_json()) == run.facts


def test_data_that_the_program_has_changed_are_replaced_as_a_whole(tmp_path, folder):
    run = placed(tmp_path, folder)
    send_data([Login()], run.facts)
    staged(run)
    content = Path(run.data.content)
    (content / "cache").write_text("of the program")
    assert is_whole(run), "what a program writes beside them is nobody's business"
    (content / "train/0/a.bin").write_bytes(b"X")
    assert not is_whole(run)
    assert send_data([Login()], run.facts)
    staged(run)
    assert contents(content) == contents(folder, without=[".git"])


def test_data_that_change_while_they_are_sent_are_refused_in_one_sentence(tmp_path, folder):
    run = placed(tmp_path, folder)
    (folder / "ö").write_bytes(CONTENT)
    with pytest.raises(RemoteError, match="ö has changed while it was sent, so nothing was started"):
        send_data([Login()], run.facts)
    assert not Path(run.data.folder).exists()
    assert staged(run)[0] == 1
    assert not is_whole(run)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_hears_of_the_folder_in_its_words_and_its_environment(folder, kind):
    own = {
        "environment": {"WHERE": "{data}/train:{logdir}"},
        "resume": "--again {data}",
        "checkpoints": r"m-(?P<step>\d+)",
    }
    run = launched(stack(kind, folder, **own))
    there = f"/data/data-{run.facts.data.id}/files"
    for first, again in zip(run.document.program.processes, run.document.program.resume_processes, strict=True):
        assert there in " ".join(first.argv)
        assert again.argv[-2:] == ("--again", there)
        assert first.environment["WHERE"] == f"{there}/train:{run.path}/logdir"


def test_the_preflight_of_mxnet_compares_the_files_in_the_folder(folder):
    run = launched(stack("mxnet", folder))
    assert f"{run.data.content}/train.rec" in run.document.program.collective[0].environment.values()


def test_the_run_follows_the_content_of_its_data_and_not_their_path(tmp_path, folder):
    before = run_id(launched(stack(data=folder)))
    shutil.copytree(folder, tmp_path / "elsewhere", symlinks=True)
    assert run_id(launched(stack(data=tmp_path / "elsewhere"))) == before
    (folder / ".hidden").write_bytes(b"other")
    assert run_id(launched(stack(data=folder))) != before
    assert '"data"' not in launched(stack(arguments="")).files["program.json"], "a run of before keeps its id"


def test_braces_of_a_program_without_data_reach_it_unchanged(folder):
    words = launched(stack(arguments="{{data}} {dataset}")).document.program.processes[0].argv
    assert words[-2:] == ("{{data}}", "{dataset}")
    assert launched(stack(data=folder, arguments="{data} {{data}}")).document.program.processes[0].argv[-1] == "{data}"


def refusal(data, **job):
    with pytest.raises(config.ConfigError) as refused:
        config.with_files(stack(data=data, **job))
    return str(refused.value)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"data": None}, "job/arguments: {data} cannot be filled in, because job.data is not set"),
        (
            {"data": None, "arguments": "", "environment": {"A": "{data}"}},
            "job/environment: {data} cannot be filled in",
        ),
        (
            {"data": "~/mine", "arguments": "--quick"},
            "job/data: nothing names {data}, the folder of the data on every node",
        ),
        ({"data": "mine"}, "job/data: is not the path of a file"),
        ({"data": "http://example.com/a.tar"}, "job/data: 'http' is not https"),
        ({"data": "/nowhere/at/all"}, "job/data: /nowhere/at/all: No such file or directory"),
    ],
)
def test_words_that_do_not_fit_the_data_are_refused(folder, job, said):
    assert said in refusal(**job)


def emptied(folder):
    shutil.rmtree(folder)
    (folder / ".git").mkdir(parents=True)


BAD_FOLDERS = {
    "holds no file": emptied,
    "has links that lead out of it or to no file: out": lambda folder: (folder / "out").symlink_to("../other"),
    "has links that lead out of it or to no file: train/all": lambda folder: (folder / "train" / "all").symlink_to("0"),
    "has links that lead out of it or to no file: lost": lambda folder: (folder / "lost").symlink_to("nothing"),
    "has names that the machines cannot hold": lambda folder: (folder / "two\nlines").touch(),
    "bytes that would travel, more than 100,000,000,000": lambda folder: os.truncate(folder / "ö", 10**11),
}


@pytest.mark.parametrize("said", BAD_FOLDERS)
def test_a_folder_that_no_machine_can_hold_is_refused_with_its_path(folder, said):
    BAD_FOLDERS[said](folder)
    found = refusal(folder)
    assert f"nothing was ordered\n  job/data: {folder} " in found and said in found
    assert ".microclusterignore" not in found, "nothing of data stays behind"


BAD_TARS = {
    "'l' is refused, for it is no plain file": [("a", b"1"), ("l", LINK)],
    "'/a' is refused, for its path leads out of the folder": [("/a", b"1")],
    "'x/../../a' is refused": [("x/../../a", b"1")],
    "is refused, for the machines cannot hold its name": [("a\nb", b"1")],
    "is refused, for it is there twice": [("a", b"1"), ("./a", b"2")],
    "nothing is in it": [("a", {"type": tarfile.DIRTYPE})],
}


@pytest.mark.parametrize("said", BAD_TARS)
def test_a_tar_that_no_machine_would_unpack_is_refused_before_the_order(tmp_path, folder, said):
    found = refusal(tar_of(tmp_path / "a.tar", *BAD_TARS[said]))
    assert "nothing was ordered\n  job/data: " in found and said in found


def test_what_is_no_tar_at_all_is_refused(folder):
    assert "it is no whole tar" in refusal(folder / "ö")


@pytest.mark.parametrize("is_tar", [True, False])
def test_data_that_do_not_fit_the_disk_of_the_machines_are_refused(tmp_path, folder, monkeypatch, is_tar):
    monkeypatch.setattr(local_files, "GB", 1)
    named = tar_of(tmp_path / "a.tar", ("a", CONTENT)) if is_tar else folder
    assert "until the copy there is checked, and the machines have 2000 GB; take larger disks" in refusal(named)


@pytest.mark.parametrize("members", BAD_TARS.values(), ids=BAD_TARS)
def test_a_bad_tar_from_an_address_is_not_used_on_a_machine(tmp_path, folder, members):
    run = placed(tmp_path, ADDRESS)
    plan = read_json(f"{run.path}/staging.json")
    tar = tar_of(tmp_path / "a.tar", *members)
    sha256 = hashlib.sha256(Path(tar).read_bytes()).hexdigest()
    plan["archives"] = [{**plan["archives"][0], "address": f"file://{tar}", "sha256": sha256}]
    write_json(f"{run.path}/staging.json", plan)
    code, said = staged(run)
    assert (code, said.startswith("staging: unpacking finished.tar: ")) == (1, True)
    assert not is_whole(run)
