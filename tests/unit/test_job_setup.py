"""Lines of `job.setup` and files of requirements: how they are taken, and how they run on each node, once."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from launching import launched, on_gpus, run_id
from supervised_run import events_of, write_job
from test_jobs_kind import HOROVOD, own_program

from agent.supervise import prepare, supervisor
from microcluster.config import stack as config
from microcluster.config.local_files import unpinned
from microcluster.jobs import own_program as product
from microcluster.jobs.rendering import render
from microcluster.remote.docker import docker_run

ON_THE_MACHINE = {"runtime": "host", "container": None, "preflight_skipped": "not here", "end": ["true"]}
PINS = ["numpy==1.23.5"]


def lines_of(**job: object) -> list[str]:
    return [line for line, _ in launched(own_program(**job)).document.program.setup]


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Return a folder with the files that these tests name."""
    (tmp_path / "more").mkdir()
    for name in ("train.py", "requirements.txt", "gpu.txt", "more/gpu.txt"):
        (tmp_path / name).touch()
    return str(tmp_path)


def test_the_run_id_stays_without_lines_and_changes_with_each_line() -> None:
    known, one, other = (launched(own_program(**job)) for job in ({}, {"setup": ["make"]}, {"setup": ["make all"]}))
    assert "setup" not in known.texts()["program.json"], "a run of before there was the key keeps its id"
    assert len({run_id(one), run_id(other), run_id(known)}) == 3
    assert known.document.program.setup == ()


def test_a_requirements_file_is_installed_before_the_lines_from_the_same_indexes(source: str) -> None:
    index = "https://download.pytorch.org/whl/cu118"
    job = {"requirements": "requirements.txt", "extraIndex": index, "setup": ["pip install -e ."], "source": source}
    pip = f"python -m pip install --no-cache-dir --extra-index-url {index} -r requirements.txt"
    assert lines_of(**job) == [pip, "pip install -e ."]


def test_pinned_packages_stay_in_the_image_beside_a_file(source: str) -> None:
    folder = launched(own_program(source=source, requirements=[*PINS, "more/gpu.txt"]))
    assert [line.split()[-1] for line, _ in folder.document.program.setup] == ["more/gpu.txt"]
    text = folder.facts.container.dockerfile
    assert "numpy==1.23.5" in text and "gpu.txt" not in text
    alone = launched(own_program(source=source, requirements="gpu.txt"))
    assert "pip install" not in alone.facts.container.dockerfile


def test_other_lines_get_a_new_container_of_the_same_image() -> None:
    one, same, other = (
        launched(own_program(setup=[line], arguments=words)).facts.container
        for line, words in (("make", ""), ("make", "--rate 2"), ("make all", ""))
    )
    assert one.tag == other.tag and one == same
    assert docker_run(one, "/data") != docker_run(other, "/data")
    assert docker_run(replace(one, setup=None), "/data") == docker_run(launched(own_program()).facts.container, "/data")


def test_lines_in_a_container_use_the_package_index_of_the_machine() -> None:
    container = launched(own_program(setup=["pip install -e ."])).facts.container
    assert "-e PIP_INDEX_URL -e PIP_TRUSTED_HOST" in " ".join(docker_run(container, "/data"))
    assert "PIP_" not in " ".join(docker_run(replace(container, setup=None), "/data"))
    assert "PIP" in render("start.sh.j2", folder="/f", address="10.0.0.1").partition("grep -E")[2].partition("=")[0]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            {"setup": ["make", " "]},
            "job/setup/1: ' ' is not a line of shell, which is not empty and whose signs can all be printed",
        ),
        ({"setup": ["a\nb"]}, "job/setup/0: 'a\\nb' is not a line of shell"),
        ({"setup": ["make \u202e"]}, "is not a line of shell"),
        ({"setup": ["x" * 1001]}, "at most 1000 characters"),
        ({"setup": ["true"] * 51}, "at most 50 items"),
        ({"setup": "make"}, "job/setup: 'make' should be a valid tuple"),
        (
            {"requirements": "../requirements.txt"},
            "job/requirements/0: '../requirements.txt' is not a pinned requirement",
        ),
        ({"requirements": ["setup.py"]}, "'setup.py' is not a pinned requirement or a file of the source"),
    ],
)
def test_a_line_that_cannot_run_is_named_before_anything_is_ordered(job: dict[str, object], expected: str) -> None:
    with pytest.raises(config.ConfigError, match=re.escape(expected)):
        own_program(**job)


@pytest.mark.parametrize(
    "line",
    [
        "pip install git+https://me:hunter2@git.test/a",
        f"git clone https://ghp_{'a1' * 18}@git.test/a",
        f"curl -H 'Authorization: Bearer hf_{'aB' * 17}' https://x.test",
        f"huggingface-cli login --token=hf_{'aB' * 17}",
        "HF_TOKEN=hunter2 python fetch.py",
        "export AWS_SECRET_ACCESS_KEY='hunter2'",
    ],
)
def test_a_line_with_a_secret_is_refused_and_not_repeated(line: str) -> None:
    with pytest.raises(config.ConfigError, match="job/setup/1: holds what looks like a secret") as refused:
        own_program(setup=["make", line])
    assert "hunter2" not in str(refused.value) and "aB" not in str(refused.value) and "a1" not in str(refused.value)


def test_what_only_looks_like_a_secret_passes_in_a_line() -> None:
    lines = [
        "HF_TOKEN=$(cat ~/.hf) python fetch.py",
        'export KEY="$OTHER"',
        "sort --sort-key=name a",
        "make MAX_TOKEN=4096 # 1\u20132",
    ]
    assert lines_of(setup=lines) == lines
    assert lines_of(setup=["PAD_TOKEN=pad make"], notSecret=["PAD_TOKEN"])


@pytest.mark.parametrize(
    ("line", "is_open"),
    [
        *(
            (line, True)
            for line in ("numpy", "torch>=2.1", "scipy==1.*", 'a; python_version=="3.8"', "git+https://x.test/a@main")
        ),
        *(
            (line, False)
            for line in ("numpy==1.23.5  # pinned", "a[b]==1; sys_platform=='linux'", "# numpy", "", "-e .")
        ),
        *(
            (line, False)
            for line in ("--extra-index-url https://x.test", "-r more.txt", f"git+https://x.test/a@{'a1' * 20}")
        ),
        ("./wheels/a.whl", False),
    ],
)
def test_the_preview_names_lines_of_a_file_that_leave_the_version_open(
    tmp_path: Path, line: str, is_open: bool
) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "requirements.txt").write_text(f"six==1.16.0\n{line}\n")
    stack = config.with_files(own_program(source=str(tmp_path), requirements="requirements.txt"))
    assert stack.notes == ((f"requirements.txt leaves versions open: {line}",) if is_open else ())


def test_a_missing_or_binary_requirements_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    job = own_program(source=str(tmp_path), requirements="requirements.txt")
    with pytest.raises(
        config.ConfigError, match=f"job/requirements: {tmp_path}/requirements.txt cannot be read: No such"
    ):
        config.with_files(job)
    (tmp_path / "requirements.txt").write_bytes("numpy\n".encode("utf-16"))
    with pytest.raises(ValueError, match="cannot be read: it is no text in UTF-8"):
        unpinned(tmp_path / "requirements.txt")


class Node:
    """One machine's folders, on which the scripts of a plan run as they are."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.environment = folder, folder / "environment"

    def run(self, number: int = 0, **job: object) -> subprocess.CompletedProcess[str]:
        program = launched(on_gpus(HOROVOD | job, "another"), on_machines=True).document.program
        script = program.setup[number][1].replace(program.folder.rpartition("/")[0], str(self.folder))
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    (tmp_path / "program").mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "environment"], check=True)
    return Node(tmp_path)


def test_a_line_runs_in_the_programs_folder_with_the_runs_interpreter(node: Node) -> None:
    package = node.environment.glob("lib/python*/site-packages")
    (next(package) / "pip.py").write_text("import sys; print('pip', *sys.argv[1:], sys.prefix)")
    done = node.run(
        setup=["pwd; pip install -e . && python -c 'import sys; print(sys.prefix)'; echo {logdir}; pip3 list"]
    )
    pip = f"pip install -e . {node.environment}"
    listed = f"pip list {node.environment}"
    assert done.stdout.splitlines() == [
        f"{node.folder}/program", pip, str(node.environment), f"{node.folder}/logdir", listed
    ]  # fmt: skip


def test_in_a_container_python_and_pip_are_the_jobs_interpreter(tmp_path: Path) -> None:
    for name in ("program", "theirs"):
        (tmp_path / name).mkdir()
    own = tmp_path / "theirs" / "python3.9"
    own.write_text('#!/bin/sh\n[ "$1" = -c ] && echo 3 || echo "theirs $*"\n')
    own.chmod(0o755)
    (tmp_path / "theirs" / "tool").symlink_to("/bin/true")
    line = "python a.py; python3 b.py; pip install c; pip3 list; command -v tool"
    program = launched(on_gpus(HOROVOD | {"setup": [line], "python": str(own)}, "another")).document.program
    script = program.setup[0][1].replace(product.IN_CONTAINER, f"{tmp_path}/container")
    script = script.replace(program.folder.rpartition("/")[0], f"{tmp_path}")
    said = subprocess.check_output(["sh", "-c", script], text=True, timeout=60).splitlines()
    ours = [f"theirs {words}" for words in ("a.py", "b.py", "-m pip install c", "-m pip list")]
    assert said == [*ours, f"{tmp_path}/theirs/tool"]


@pytest.mark.parametrize("gone", ["environment/setup", "setup"])
def test_a_new_environment_or_run_folder_gets_its_lines_again(node: Node, gone: str) -> None:
    for _ in range(2):
        node.run(setup=["echo run >> log"])
    shutil.rmtree(node.folder / gone)
    node.run(setup=["echo run >> log"])
    assert (node.folder / "program" / "log").read_text() == "run\n" * 2


def test_a_line_that_went_well_is_not_run_again_there(node: Node) -> None:
    line = "echo run >> log; [ -e mended ]"
    codes = [node.run(setup=[line]).returncode]
    (node.folder / "program" / "mended").touch()
    codes += [node.run(setup=[line]).returncode for _ in range(2)]
    assert codes == [1, 0, 0]
    assert (node.folder / "program" / "log").read_text() == "run\n" * 2


def test_a_line_over_its_limit_is_ended_with_its_children(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "SETUP_LIMIT_S", 1)
    done = node.run(setup=["sleep 300 | sleep 300"])
    assert (done.returncode, done.stdout) == (124, "it was not over after 1 s\n")


def test_an_interpreter_that_is_not_there_is_a_sentence(node: Node) -> None:
    (node.environment / "bin" / "python").unlink()
    done = node.run(setup=["make"])
    assert done.returncode == 1
    assert "there is no" in done.stdout and "change job.python" in done.stdout


@pytest.fixture
def carry_out(folder, ended):
    """Return what carries out a run of two machines, which are folders of this computer, with these lines."""
    made = ["sh", "-c", f"mkdir -p {folder}/environment/bin; ln -sf {sys.executable} {folder}/environment/bin/python"]
    usual = {**ON_THE_MACHINE, "environment": str(folder / "environment"), "program_folder": str(folder)}
    usual |= {"make_environment": made, "ssh": ["sh", "-c", 'AT=$1; export AT; eval "$2"', "ssh"]}

    def carry_out(*scripts, **changes):
        write_job(
            folder, **{"train": ["true"], **usual, "setup": [["the line", script] for script in scripts], **changes}
        )
        return ended(supervisor.carry_out)

    return carry_out


def test_lines_run_one_after_the_other_on_all_nodes_and_are_shown(folder, carry_out):
    assert carry_out(f"echo one $AT >> {folder}/log", f"sleep 0.5; echo two $AT >> {folder}/log") is None
    log = (folder / "log").read_text().splitlines()
    assert (sorted(log[:2]), sorted(log[2:])) == (["one", "one 10.0.0.1"], ["two", "two 10.0.0.1"])
    shown = [one["text"] for one in events_of(folder, "staging")]
    assert "line 2 of job.setup (the line) on gpu-0 and gpu-1: 0 s so far" in shown


def test_lines_find_the_runs_files_on_every_node_before_the_program(folder, carry_out):
    place = ["sh", "-c", f"echo placed $1 >> {folder}/log", "place"]
    assert (
        carry_out(f"echo line >> {folder}/log", place=place, train=["sh", "-c", f"echo trained >> {folder}/log"])
        is None
    )
    assert (folder / "log").read_text().split("\n")[:-1] == ["placed 10.0.0.1", "line", "line", "trained"]


def test_a_line_that_fails_on_one_node_ends_the_run_quoted(carry_out):
    cause, why, lines = carry_out("true", "[ -z $AT ] || { echo no compiler here; exit 3; }")
    assert (cause, lines) == ("setup", ["no compiler here"])
    assert why == "line 2 of job.setup (the line) on gpu-1 ended with exit code 3: no compiler here"


def test_a_line_in_which_nothing_moves_is_ended_and_the_node_named(carry_out, monkeypatch):
    monkeypatch.setattr(prepare, "IDLE_S", 5)
    monkeypatch.setattr(prepare, "LOOK_EVERY_S", 0.2)
    cause, why, lines = carry_out("echo asks a question; [ -z $AT ] || sleep 300")
    assert (cause, lines) == ("setup", ["asks a question"])
    assert why.startswith("line 1 of job.setup (the line) on gpu-1: nothing was read, written or computed for 5 s")


def test_a_line_that_only_another_node_computes_is_left_alone(folder, carry_out, monkeypatch):
    monkeypatch.setattr(prepare, "IDLE_S", 3)
    monkeypatch.setattr(prepare, "LOOK_EVERY_S", 0.2)
    # What a compiler has used there grows by five seconds of a processor with each look.
    usage = f'echo x >> {folder}/looks; echo "[[7, \\"1\\", 0, $(($(wc -l < {folder}/looks) * 500))]]"'
    way = f'case $2 in *run_usage*) {usage} ;; *) AT=$1; export AT; eval "$2" ;; esac'
    assert carry_out("[ -z $AT ] || sleep 8", ssh=["sh", "-c", way, "ssh"]) is None
