"""The kind for PyTorch: one agent of torchrun on each node, in a container or on the machine, and Weights & Biases beside it."""

import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import launching
import pytest
import yaml
from launching import on_gpus, run_id

from agent.launch import torchrun
from agent.run import document
from microcluster.config import stack as config
from microcluster.jobs import image
from microcluster.jobs.run_spec import RunFolder
from microcluster.run.job import secrets_for
from microcluster.setup.errors import UserMistake

ROOT = Path(__file__).parents[2]
JOB = {
    **{"kind": "torchrun", "source": "examples/translation_torch", "script": "train.py", "maxSteps": 100},
    **{"arguments": "--model_folder {logdir}", "checkpoints": r"tmodel_(?P<step>\d+)\.pt"},
}
KEY = "0123456789abcdef"
NVIDIA = "nvcr.io/nvidia/pytorch:23.10-py3"
BARE_PYTHON = 'case "$*" in *venv*) mkdir -p "$5/bin" && printf "#!/bin/sh\\nexit 1\\n" >"$5/bin/python" && chmod 755 "$5/bin/python" ;; esac'
"""An interpreter that makes environments in which neither pip nor ensurepip is."""


def launched(
    *, on_machines: bool = False, shared: str | None = None, disk: object = "/data", **job: object
) -> RunFolder:
    """Return the run's folder."""
    stack = on_gpus(JOB | job, "torch")
    return launching.launched(stack, on_machines=on_machines, first=9, shared_mount=shared, mount_point=str(disk))


def test_one_agent_runs_on_each_node_and_all_meet_at_the_first_ones_private_address() -> None:
    folder = launched()
    agents = folder.document.program.processes
    started = ("python", f"{folder.path}/agent", "launch.torchrun")
    where = ("2", "2", f"10.0.0.9:{document.PORT}", document.ATTEMPT)
    assert [(agent.node, agent.argv[:8]) for agent in agents] == [(n, (*started, str(n), *where)) for n in (0, 1)]
    assert {agent.environment["NCCL_SOCKET_IFNAME"] for agent in agents} == {"=eth0"}, "no prefix, which eth01 has too"
    assert {agent.environment[f"{name}_SOCKET_IFNAME"] for agent in agents for name in ("GLOO", "TP")} == {"eth0"}
    program = ("python", f"{folder.path}/program/train.py", "--model_folder", f"{folder.path}/logdir")
    wrapper = ("python3", f"{folder.path}/agent", "launch.rank_wrapper", f"{folder.path}/ranks_ended.jsonl")
    assert agents[0].argv[-len(wrapper) - len(program) :] == (*wrapper, *program), "its node notes its end"


class _NodeDesc:
    """A node, as PyTorch's module of the rendezvous has it."""


def test_an_agent_takes_the_state_of_a_meeting_from_its_store_and_no_program(tmp_path: Path) -> None:
    here = sys.modules[__name__]
    rendezvous = SimpleNamespace(__name__=here.__name__, pickle=pickle)
    torchrun.take_no_program(rendezvous)
    state = {"nodes": [_NodeDesc()], "heard": datetime(2026, 11, 27, tzinfo=None)}  # noqa: DTZ001 - as PyTorch writes it
    found = rendezvous.pickle.loads(rendezvous.pickle.dumps(state))
    assert (type(found["nodes"][0]), found["heard"]) == (_NodeDesc, state["heard"])
    planted = f"cos\nsystem\n(S'touch {tmp_path}/planted'\ntR.".encode()
    with pytest.raises(rendezvous.pickle.PickleError, match="system is no part of it"):
        rendezvous.pickle.loads(planted)
    assert not (tmp_path / "planted").exists()


def options(version: tuple[int, int], node: int) -> dict[str, str]:
    words = torchrun.meeting(version, node, 2, "10.0.0.9:48123")
    return dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize("version", [(2, 0), (2, 6), (2, 13)])
def test_the_first_of_twelve_nodes_hosts_and_all_are_numbered_in_their_order(version: tuple[int, int]) -> None:
    agents = [options(version, node) for node in range(12)]
    assert [agent["--rdzv_conf"].split(",")[0] for agent in agents] == ["is_host=1"] + 11 * ["is_host=0"]
    assert agents[0]["--local_addr"] == "10.0.0.9"
    assert agents == sorted(agents, key=lambda agent: agent["--local_addr"])
    older = options((1, 13), 1)  # It takes no address.
    assert (older["--rdzv_backend"], older["--node_rank"], "--local_addr" in older) == ("static", "1", False)


@pytest.mark.parametrize("on_machines", [False, True])
def test_output_is_unbuffered_and_variables_reach_the_agents_of_all_nodes(on_machines: bool) -> None:
    folder = launched(on_machines=on_machines, environment={"NCCL_IB_DISABLE": 1})
    for agents in (folder.document.program.processes, folder.document.program.collective):
        given = [
            (agent.environment.get("PYTHONUNBUFFERED"), agent.environment.get("NCCL_IB_DISABLE")) for agent in agents
        ]
        assert given == [("1", "1")] * 2


def test_what_the_machines_have_decides_on_the_runtime() -> None:
    own = {"environment": {"PYTHONPATH": "/opt/more"}, "python": "python3.13"}
    folders = [launched(on_machines=there, **own) for there in (False, True)]
    for folder, python in zip(folders, ("python3.13", "python"), strict=True):
        assert {folder.document.program.processes[0].argv[at] for at in (0, -4)} == {python}, "it runs torchrun too"
    inside, outside = (folder.document.program for folder in folders)
    machines = [folder.document.machines for folder in folders]
    assert [(one.runtime, one.container) for one in machines] == [("container", "torchrun"), ("host", None)]
    assert inside.make_environment is None
    assert outside.environment == "/data/runs/abcdef012345/environment"
    assert outside.folder == "/data/runs/abcdef012345/program"
    programs = [f"{folders[0].path}/{name}" for name in ("agent/launch/script_imports.py", "program/train.py")]
    assert inside.imports == ("env", "PYTHONPATH=/opt/more", "python3.13", *programs)


def test_two_stacks_on_one_drive_write_into_folders_of_their_own() -> None:
    one = launched(shared="/mnt/drive")
    other = RunFolder(replace(one.facts, mark="00000000"))
    assert one.shared == "/mnt/drive/microcluster/1f3a9c42/abcdef012345"
    assert other.shared != one.shared
    assert f"ln -s '{one.shared}'" in one.texts()["send_run_folder.sh"]
    assert launched().shared is None


def test_a_repository_is_cloned_and_its_requirements_installed_on_each_machine() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = {"source": "https://example.com/a/program", "commit": commit}
    plain, more = (launched(on_machines=True, **job) for job in ({}, {"requirements": ["wandb==0.15.9"], **repository}))
    script = more.document.program.make_environment[-1]
    assert "--system-site-packages" in script and "install" in script and "wandb==0.15.9" in script
    assert f"checkout --quiet --detach {commit}" in script
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert run_id(plain) != run_id(more)


def test_the_environment_is_made_once_for_real(tmp_path: Path) -> None:
    folder = launched(on_machines=True, disk=tmp_path)
    made, text = Path(folder.path) / "environment", folder.document.program.make_environment[-1]
    written = set()
    for _ in range(2):
        subprocess.run(["sh", "-c", text], check=True, capture_output=True)
        written.add((made / "ready").stat().st_mtime_ns)
    assert (made / "bin" / "python").exists() and Path(folder.path, "program").is_dir()
    assert len(written) == 1


def test_an_environment_on_another_one_has_the_packages_of_both(tmp_path: Path) -> None:
    base = tmp_path / "base"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base], check=True)
    (site,) = base.glob("lib/python*/site-packages")
    (site / "linked.pth").write_text(f"{tmp_path}/linked\n")
    for folder, name in ((site, "brought"), (tmp_path / "linked", "editable")):
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.py").write_text("")
    run, done = prepared(tmp_path, python=str(base / "bin" / "python"))
    assert done.returncode == 0, done.stderr
    python = f"{run.path}/environment/bin/python"
    subprocess.run([python, "-c", "import brought, editable"], check=True)
    below = subprocess.run([python, "-c", "import pip"], check=False, capture_output=True)
    assert below.returncode, "what lies below the other environment is not its own"


def prepared(folder: Path, **job: object) -> tuple[RunFolder, subprocess.CompletedProcess[str]]:
    """Make the environment of a job on this machine, with what the folder holds first in the path."""
    run = launched(on_machines=True, disk=folder)
    job = run.facts.job.model_copy(update=job)
    text = replace(run, facts=replace(run.facts, job=job)).document.program.make_environment[-1]
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    return run, subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False, env=path)


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("python3.99", "there is no python3.99 here; change job.python"),
        ("old", "old is older than Python 3.5; change job.python"),
        ("bare", "bare has no pip here for job.requirements; change job.python, or leave the requirements out"),
    ],
)
def test_an_interpreter_that_cannot_do_is_said_with_its_name(tmp_path: Path, python: str, said: str) -> None:
    for name, text in (("old", "exit 1"), ("bare", BARE_PYTHON)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    folder, done = prepared(tmp_path, python=python, requirements=("six==1.16.0",))
    assert (done.returncode, done.stdout) == (1, f"{said}\n")
    assert not Path(folder.path, "environment/ready").exists()


def test_python_2_is_taken_as_it_is_with_the_packages_that_it_brings(tmp_path: Path) -> None:
    python = tmp_path / "python2.7"
    python.write_text('#!/bin/sh\ncase "$2" in *"version_info[0] != 2"*) exit 0 ;; *) exit 1 ;; esac\n')
    python.chmod(0o755)
    folder, done = prepared(tmp_path, python="python2.7")
    assert done.returncode == 0
    assert Path(folder.path, "environment/bin/python").resolve() == python
    assert Path(folder.path, "environment/ready").exists()


def test_what_a_known_image_lacks_is_said_before_anything_is_ordered() -> None:
    with pytest.raises(config.ConfigError) as refused:
        launched(python="python3.9\x1b")
    assert re.search(
        "job/python: image r.test/microcluster/torch:local has no python3.9[^\x1b]*; it has", str(refused.value)
    )
    assert "python3.13" in str(refused.value)
    assert launched().facts.container.dockerfile.count("RUN") == 0, "the local image has all packages"
    names = [image.local_name(base) for base in ("r.test/microcluster/torch:local", NVIDIA)]
    assert names == ["torch", None]
    assert image.pythons("nvcr.io/nvidia/tensorflow:19.05-py3") == ("python", "python3", "python3.5")
    assert image.pythons("nvcr.io/nvidia/tensorflow:21.05-tf1-py3") == (), "unknown here: the build says it"


def test_the_published_trainers_packages_come_with_those_that_they_imported_in_their_time() -> None:
    values = yaml.safe_load((ROOT / "stacks/Pulumi.paperspace.yaml").read_text())["config"]
    pinned = dict(each.split("==") for each in values["microcluster:job"]["requirements"])
    assert pinned["numpy"].startswith("1."), "wandb 0.15 and torch 2.0 cannot be imported with NumPy 2"
    assert pinned["huggingface-hub"].startswith("0."), "datasets 2.15 imports what 1.0 has removed"
    assert {"pandas", "pyarrow", "setuptools", "tqdm", "lightning-utilities"} <= set(pinned)


def test_requirements_are_installed_for_the_interpreter_and_an_image_without_it_or_its_pip_ends_the_build() -> None:
    chosen = {"requirements": ["six==1.16.0"], "python": "/usr/bin/python3.13"}
    text = launched(**chosen).facts.container.dockerfile
    there, pip, install = (line.removeprefix("RUN ") for line in text.splitlines() if line.startswith("RUN "))
    assert install.endswith(
        "/usr/bin/python3.13 -m pip install --no-cache-dir --disable-pip-version-check six==1.16.0 "
    )
    for line, said in ((there, "has no /usr/bin/python3.99"), (pip, "has no pip for /usr/bin/python3.99")):
        built = subprocess.run(
            ["sh", "-c", line.replace("python3.13", "python3.99")], capture_output=True, text=True, check=False
        )
        assert built.returncode == 1 and said in built.stdout


@pytest.mark.parametrize(
    ("node", "key", "shown"),
    [("0", False, "offline  "), ("0", True, f"online {KEY} "), ("1", True, "disabled  ")],
)
def test_the_first_node_alone_tracks_the_run_and_only_a_key_that_was_given_takes_it_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str, key: bool, shown: str
) -> None:
    folder = launched(requirements=["wandb==0.15.9"])
    monkeypatch.setattr("microcluster.jobs.run_spec.SECRETS", str(tmp_path))
    if key:
        (tmp_path / "WANDB_API_KEY").write_text(KEY)
    (agent, _) = replace(folder, word="0a1b2c").document.program.processes
    assert KEY not in " ".join(agent.argv)
    start = agent.argv[agent.argv.index("env") : agent.argv.index("python", agent.argv.index("env"))]
    told = ("sh", "-c", 'echo "$WANDB_MODE $WANDB_API_KEY $WANDB_RUN_ID$WANDB_RESUME"')
    said = subprocess.run(
        (*start, *told),
        env={"PATH": os.environ["PATH"], "GROUP_RANK": node},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{shown}abcdef012345-0a1b2callow\n"


def test_the_key_in_the_home_is_read_only_from_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    facts = launched(requirements=["wandb==0.15.9"]).facts
    assert secrets_for(facts) == {}
    file = tmp_path / "wandb_api_key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o640)
    with pytest.raises(UserMistake, match="others on this computer may read it") as refused:
        secrets_for(facts)
    assert KEY not in str(refused.value)
    file.chmod(0o600)
    assert secrets_for(facts) == {"WANDB_API_KEY": KEY}
    file.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")
    with pytest.raises(UserMistake, match="a private key"):
        secrets_for(facts)


def test_a_program_without_the_package_gets_no_variables_of_it_and_no_key() -> None:
    folder = launched()
    assert "WANDB" not in " ".join(folder.document.program.processes[0].argv)
    assert folder.document.program.secrets == ()
    tracked = launched(requirements=["wandb==0.15.9"])
    assert tracked.document.program.secrets == ("WANDB_API_KEY",)
    assert tracked.document.program.artifacts == ("wandb",)
