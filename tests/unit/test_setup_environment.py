"""The environment of every command: the same by env.sh and by make, and without the account's keys, which cannot be read of fab either."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.vendors import default_state
from microcluster.core.home import Home
from microcluster.run import cluster as run_cluster
from microcluster.setup.environment import PROJECT, PYTHON, VENV, child_environment

SHELLS = [shell for shell in ("sh", "dash", "bash", "zsh") if shutil.which(shell)]
PLAIN = {"PATH": "/usr/bin:/bin", "HOME": "/home/someone"}


def sourced(
    shell: str, environment: dict[str, str], line: str = ". ./env.sh", folder: Path = PROJECT
) -> dict[str, str]:
    answer = subprocess.run(
        [shell, "-c", f"{line} && env -0"], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return dict(pair.split("=", 1) for pair in answer.stdout.split("\0") if pair)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_what_python_gives_its_children(shell: str, tmp_path: Path) -> None:
    environment = PLAIN | {"MICROCLUSTER_HOME": f"{tmp_path}/a home"}
    ours = child_environment(Home.of(environment), environment)
    theirs = sourced(shell, environment)
    names = [name for name in ours if name.startswith(("PULUMI_", "MICROCLUSTER_HOME", "PATH"))]
    assert {name: theirs.get(name) for name in names} == {name: ours[name] for name in names}
    assert len(names) >= 10


@pytest.mark.parametrize("shell", SHELLS)
def test_sourcing_twice_is_sourcing_once(shell: str) -> None:
    once, twice = sourced(shell, PLAIN), sourced(shell, PLAIN, ". ./env.sh; . ./env.sh")
    assert once["PATH"] == twice["PATH"] == f"{PROJECT}/.venv/bin:/usr/bin:/bin"
    assert once["PULUMI_BACKEND_URL"] == "file:///home/someone/.microcluster/state?metadata=skip"


def test_sourced_elsewhere_it_says_where_to_go_and_changes_nothing(tmp_path: Path) -> None:
    answer = subprocess.run(
        ["sh", "-c", f". {PROJECT}/env.sh; env"], cwd=tmp_path, env=PLAIN, capture_output=True, text=True, check=True
    )
    assert "Change to the project folder" in answer.stderr
    assert "PULUMI" not in answer.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_stacks_without_a_state_are_said_with_what_makes_it(shell: str, tmp_path: Path) -> None:
    clone, home = tmp_path / "clone", tmp_path / "a home"
    for name in ("env.sh", "microcluster/setup/environment.env"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, clone / name)
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / "stacks").mkdir()
    states = home / "state" / ".pulumi" / "stacks" / "microcluster"
    states.mkdir(parents=True)

    def said() -> str:
        words = [shell, "-c", ". ./env.sh; echo ${lacking-unset}"]
        environment = PLAIN | {"MICROCLUSTER_HOME": str(home)}
        done = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "unset\n", "it leaves nothing in a person's shell"
        return done.stderr.strip()

    assert said() == "env.sh: nothing is installed in this folder yet. Run: make setup"
    (clone / ".venv" / "bin" / "pulumi").touch(0o755)
    for stack in ("p100", "new"):
        (clone / "stacks" / f"Pulumi.{stack}.yaml").touch()
    (states / "p100.json").touch()
    assert said().startswith("env.sh: 1 of 2 stacks") and said().endswith("Run: make setup")
    (states / "new.json").touch()
    assert said() == ""


def test_a_new_home_is_its_owners_alone_and_several_share_one_cache(tmp_path: Path) -> None:
    home = Home.of({"MICROCLUSTER_HOME": str(tmp_path / "new")})
    home.make()
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert home.state.is_dir() and home.cache == tmp_path / "new" / "cache"
    shared = Home.of({"MICROCLUSTER_HOME": str(tmp_path / "home"), "MICROCLUSTER_CACHE": str(tmp_path / "shared")})
    assert shared.cache == tmp_path / "shared"
    assert child_environment(shared, {})["MICROCLUSTER_CACHE"] == str(tmp_path / "shared")


@pytest.mark.parametrize(
    ("home", "place"),
    [(None, "me/.microcluster"), ("", "me/.microcluster"), ("~/mine", "me/mine"), ("mine", "here/mine")],
)
def test_every_part_finds_the_same_home_and_the_same_paths_in_it(tmp_path, monkeypatch, home, place) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.delenv("MICROCLUSTER_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("MICROCLUSTER_HOME", home)
    root = tmp_path / place
    assert {Home.of().root, default_state().parent} == {root}
    places = {
        "$MICROCLUSTER_HOME/a/b": root / "a" / "b",
        "${MICROCLUSTER_HOME}/a": root / "a",
        "$HOME/a": tmp_path / "me" / "a",
        "~/a": tmp_path / "me" / "a",
        "a/b": tmp_path / "here" / "a" / "b",
        "/a/$NOT_SET": Path("/a/$NOT_SET"),
    }
    assert {path: Home.of().expand(path) for path in places} == places


def test_a_command_reads_own_states_itself_and_asks_pulumi_for_a_teams(monkeypatch, tmp_path):
    asked: list[dict[str, str]] = []
    empty = subprocess.CompletedProcess((), 0, "{}", "")
    monkeypatch.setattr(run_cluster.pulumi, "answer", lambda *_, environment, **__: asked.append(environment) or empty)
    for name in [name for name in os.environ if name.startswith("PULUMI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    run_cluster.find_cluster("local")
    assert asked == [], "its own states are read without Pulumi"
    theirs = {"PULUMI_BACKEND_URL": "s3://shared", "PULUMI_PARALLEL": "3"}
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)
    run_cluster.find_cluster("local")
    settings = {name: value for name, value in child_environment(Home.of(), {}).items() if name.startswith("PULUMI_")}
    assert asked[0].items() >= (settings | theirs).items()


def test_our_programs_get_the_environment_without_an_accounts_keys(tmp_path: Path) -> None:
    keyed = PLAIN | {"MICROCLUSTER_HOME": str(tmp_path), "SL_API_KEY": "c0ffee"}
    argv = [PYTHON, "-m", "microcluster.setup.environment", "/usr/bin/env"]
    done = subprocess.run(argv, cwd=PROJECT, env=keyed, capture_output=True, text=True, check=True)
    assert "SL_API_KEY" not in done.stdout and f"PULUMI_HOME={tmp_path}/pulumi" in done.stdout


def test_a_home_that_cannot_be_made_is_a_sentence_and_no_traceback() -> None:
    environment = {**os.environ, "MICROCLUSTER_HOME": "/proc/nobody"}
    argv = [VENV / "bin" / "fab", "recover", "--yes"]
    ended = subprocess.run(argv, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "/proc/nobody: No such file or directory. Fix that" in ended.stderr
    assert "Traceback" not in ended.stderr


LOOK = """
import os, subprocess
from pathlib import Path
from microcluster.setup import secret_env
secret_env.withhold()
print(secret_env.kept().get("SL_API_KEY") == os.environ["HINT"] + "-key")
own = Path("/proc/self/environ").read_bytes()
child = subprocess.run(["cat", "/proc/self/environ"], capture_output=True, check=True).stdout
print(b"c0ffee-key" in own, b"c0ffee-key" in child, b"SL_API_KEY=" in child, b"HINT=c0ffee" in child)
"""


@pytest.mark.parametrize("name", ["SL_API_KEY", "NGC_API_KEY", "SL_USERNAME", "BLUEMIX_API_KEY"])
def test_what_is_withheld_is_kept_in_memory_and_nowhere_else(name: str) -> None:
    environment = {**os.environ, "HINT": "c0ffee", "SL_API_KEY": "c0ffee-key", name: "c0ffee-key"}
    argv = [sys.executable, "-c", LOOK]
    done = subprocess.run(argv, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "False False False True"]


def test_fab_withholds_before_it_imports_or_starts_anything_else() -> None:
    lines = (PROJECT / "fabfile.py").read_text().splitlines()
    code = [line for line in lines if line and not line.startswith(('"""', "#"))]
    assert code[:2] == ["from microcluster.setup import secret_env", code[1]] and code[1].startswith(
        "secret_env.withhold()"
    )


@pytest.mark.parametrize("forbidden", ["", "1"])
def test_a_command_keeps_what_python_compiles_unless_the_user_forbids_it(forbidden: str) -> None:
    as_invoke = "import sys; sys.dont_write_bytecode = True; import fabfile; print(bool(sys.dont_write_bytecode))"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": forbidden}
    argv = [sys.executable, "-c", as_invoke]
    said = subprocess.run(argv, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(bool(forbidden))


def test_what_fab_starts_does_not_see_the_key(tmp_path: Path) -> None:
    spy = tmp_path / "pulumi"
    spy.write_text(f"#!/bin/sh\ncat /proc/self/environ > {tmp_path}/seen\necho '{{}}'\n")
    spy.chmod(0o755)
    script = (
        "import sys, fabfile; from microcluster.lifecycle import pulumi; pulumi.PULUMI = sys.argv[1]; "
        "fabfile.commands(['status'])['status'].body(None)"
    )
    keys = {"SL_API_KEY": "c0ffee-key", "NGC_API_KEY": "c0ffee-key"}
    environment = {**os.environ, **keys, "PULUMI_BACKEND_URL": "s3://shared"}
    argv = [sys.executable, "-c", script, str(spy)]
    subprocess.run(argv, cwd=PROJECT, env=environment, capture_output=True, check=False)
    seen = (tmp_path / "seen").read_bytes()
    assert b"PATH=" in seen and b"c0ffee" not in seen
