"""The operator's verbs: one sentence instead of a traceback, exit codes, and what reaches a machine."""

import dataclasses
import importlib
import io
import json
import runpy
import subprocess
import sys
import time
import types
from pathlib import Path

import invoke
import pytest
from command_samples import CLUSTER
from fake_machine import FACTS, FakeMachine

import fabfile
from microcluster.accounts.shared.errors import AccountError, ProviderError
from microcluster.accounts.shared.key_file import CredentialsError
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.command_line import parts
from microcluster.command_line.command import command
from microcluster.commands import explain, ssh, step
from microcluster.config import stack as config
from microcluster.config.stack import ConfigError
from microcluster.core.polling import NotReadyError
from microcluster.lifecycle import pulumi
from microcluster.remote import job as remote_job
from microcluster.remote.errors import UnreachableError
from microcluster.run import cluster as run_cluster
from microcluster.run import job as run_job
from microcluster.setup import secret_env
from microcluster.setup.errors import CommandFailed, UserMistake

ROOT = Path(__file__).parents[2]
ED25519 = "AAAAC3NzaC1lZDI1NTE5AAAAIP1m8HkPs2YX3BPDd4rXyDKzwKEhIGpyqUXoMzFzbNQa"


def fab(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the real command; it takes a second to import everything."""
    fabric = Path(sys.executable).parent / "fab"
    return subprocess.run([fabric, *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return what runs a verb in this process and gives its exit code, output and errors."""

    def end(name: str, stdin: str = "", **options: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            fabfile.commands([name])[name].body(invoke.Context(), **options)
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return ended.value.code, said.out, said.err

    return end


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserMistake("that is not there"), 2, "That is not there"),
        (ConfigError("stack nope: no such file"), 2, "Stack nope: no such file"),
        (CommandFailed("it did not work"), 1, "It did not work"),
        (ProviderError("a refusal. Do this."), 1, "A refusal. Do this."),
        (ApiError("calling X::y", "E", "no"), 3, "Calling X::y: no"),
        (AccountError("the key opens another account. Do this."), 3, "The key opens another account. Do this."),
        (CredentialsError("there is no key. Do this."), 3, "There is no key. Do this."),
        (OSError(28, "No space left on device", "artifacts/local"), 1, "fab fails: "),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (ImportError("no name 'Live'"), 1, ".venv does not fit (no name 'Live'). `make setup` renews it"),
        (NotReadyError("waiting for ssh: not there."), 1, "Waiting for ssh: not there. Run the same command again."),
        (UnreachableError("connecting to gpu-0: no."), 3, "Connecting to gpu-0: no. Check that the machine is up"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_expected_end_is_a_sentence_with_a_next_command_and_an_exit_code(error, code, said, capsys):
    def fails():
        raise error

    assert command(fails).code() == code
    shown = capsys.readouterr().err
    assert shown.strip().startswith(said) and shown.strip()
    assert "Traceback" not in shown


def test_an_interrupted_verb_says_what_still_goes_on_and_what_takes_it_up(capsys):
    def stopped():
        raise KeyboardInterrupt("`apt-get install` may still run on gpu-0 (guest 101, 198.51.100.7)")

    command(stopped).code()
    said = "Interrupted; `apt-get install` may still run on gpu-0 (guest 101, 198.51.100.7). To continue, run the same"
    assert capsys.readouterr().err.strip().startswith(said)
    with pytest.raises(KeyboardInterrupt):  # What it is a part of does not go on.
        parts.run_part(stopped)


def test_a_command_prints_the_next_one_unless_it_is_part_of_another(capsys, monkeypatch):
    monkeypatch.setattr(run_job, "find_cluster", lambda stack: CLUSTER)
    monkeypatch.setattr(remote_job, "stop_job", lambda hosts, cluster, *, graceful: {})
    assert parts.exit_code(run_job.stop_run, stack="p100") == 0
    assert "Next: `fab resume" in capsys.readouterr().out
    assert parts.run_part(run_job.stop_run, stack="p100") == 0
    said = capsys.readouterr().out
    assert "no process of it is left on any of its machines" in said and "Next:" not in said


def test_the_list_has_what_people_use_and_no_step_of_pulumis():
    listed = [line.split() for line in fab("--list").stdout.splitlines()]
    explained = {words[0] for words in listed if len(words) > 3}
    assert explained >= set(fabfile.MODULES)
    assert not [words for words in listed if words and words[0].startswith("step")]


def test_a_list_whose_reader_has_gone_ends_without_a_word():
    line = f"'{Path(sys.executable).parent / 'fab'}' --list | true"
    done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [("nope",), ("plan", "--budget", "x")])
def test_a_command_line_that_cannot_be_understood_is_the_users_mistake(words):
    done = fab(*words)
    assert done.returncode == 2
    assert done.stderr.endswith("The commands: fab --list. The options of one: fab --help COMMAND\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_command_ends_with_the_exit_code_of_its_verb_and_n_stands_for_its_lines():
    done = fab("logs", "-n", "0")
    assert (done.returncode, "--lines 0 is not a number of lines" in done.stderr) == (2, True)


@pytest.mark.parametrize("word", ["down", "step.start-job"])
def test_only_the_command_that_is_called_is_imported(word):
    script = "import sys; sys.argv[:] = ['fab', sys.argv[1]]; import fabfile; print('microcluster.commands.translate' in sys.modules)"
    argv = [sys.executable, "-c", script, word]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("verb", ["status", "explain", "receipt", "watch"])
def test_an_unknown_stack_is_the_users_mistake(verb, run):
    code, out, err = run(verb, stack="nope")
    assert (code, out, "nope" in err) == (2, "", True)


def test_a_step_with_a_broken_cluster_fails_with_the_key_that_is_missing(run):
    code, _, err = run("step.prepare-node", stdin='{"stack": "local"}')
    assert (code, "mark: Field required" in err) == (1, True)


def test_a_step_that_a_person_starts_by_hand_does_not_wait_for_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(isatty=lambda: True, read=lambda: pytest.fail("it waits")))
    assert step.prepare_node.code() == 2
    assert "make up" in capsys.readouterr().err


def test_stopping_never_fails_and_says_one_line(run):
    nobody = dataclasses.replace(CLUSTER, hosts=(dataclasses.replace(FACTS, public_address="127.0.0.1"),))
    no_key = nobody.to_json()
    for stdin in ("{}", no_key, no_key.replace("ssh-ed25519 AAAA", f"ssh-ed25519 {ED25519}")):
        code, out, err = run("step.stop-job", stdin=stdin)
        assert (code, len(out.splitlines())) == (0, 1), err


def test_a_pulumi_that_hangs_is_a_sentence(monkeypatch, tmp_path):
    slow = tmp_path / "pulumi"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setattr(pulumi, "PULUMI", slow)
    monkeypatch.setattr(run_cluster.pulumi_state, "QUICK_S", 0.2)
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://shared")
    with pytest.raises(CommandFailed, match=r"no answer within 0.2 s. Run the same command again.$"):
        run_cluster.find_cluster("local")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("echo a; echo b",), ["echo a; echo b"]),
        (("grep", "-c", "a b", "job.log"), ["grep -c a b job.log"]),
        (("ls", "/data/*"), ["ls /data/*"]),
        ((), []),
    ],
)
def test_what_stands_after_the_dashes_reaches_the_machines_shell_as_with_ssh(words, line, monkeypatch, tmp_path):
    up = dataclasses.replace(CLUSTER, key_file=str(tmp_path / "key"))
    became = []
    monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {run_cluster.pulumi.OUTPUT: up.to_json()})
    monkeypatch.setattr(sys, "argv", ["fab", "ssh", "gpu-0", *(["--", *words] if words else [])])
    monkeypatch.setattr(ssh.os, "execvp", lambda program, argv: became.extend(argv))
    ssh.ssh.code(node="gpu-0")
    assert became[became.index("root@198.51.100.7") + 1 :] == line


def test_a_running_cluster_is_found_although_its_stack_file_has_changed(tmp_path, monkeypatch):
    text = (ROOT / "stacks" / "Pulumi.local.yaml").read_text().replace("kind: openseq2seq", "kind: something")
    (tmp_path / "Pulumi.local.yaml").write_text(text)
    monkeypatch.setattr(config, "STACKS", tmp_path)
    monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {run_cluster.pulumi.OUTPUT: CLUSTER.to_json()})
    assert run_cluster.find_cluster("local") == CLUSTER
    assert config.read_account("local").config_file.endswith("/emulator/softlayer.conf")
    with pytest.raises(ConfigError, match="job/kind"):
        config.read_file("local")


def test_explain_warns_of_an_interval_that_puts_much_more_at_risk(tmp_path, monkeypatch, capsys):
    text = (ROOT / "stacks" / "Pulumi.v100.yaml").read_text()
    kind = "kind: openseq2seq"
    (tmp_path / "Pulumi.dev.yaml").write_text(text.replace(kind, f"{kind}\n    checkpointSteps: 5000"))
    monkeypatch.setattr(config, "STACKS", tmp_path)
    assert explain.explain.code(stack="dev", as_json=True) == 0
    said = capsys.readouterr()
    assert "36 times the default of 140 steps" in said.err
    assert json.loads(said.out)["plan.atRisk"]["value"] == "2.4 h and $30.60"


def test_an_environment_of_pulumis_own_is_taken_and_explained_as_what_it_is(tmp_path, monkeypatch, capsys):
    text = (ROOT / "stacks" / "Pulumi.v100.yaml").read_text()
    (tmp_path / "Pulumi.dev.yaml").write_text("environment: [team/aws-login]\n" + text)
    monkeypatch.setattr(config, "STACKS", tmp_path)
    assert explain.explain.code(stack="dev", as_json=True) == 0
    found = json.loads(capsys.readouterr().out)["environment"]
    assert found["value"] == '["team/aws-login"]' and "resolved when the engine runs" in found["source"]


def test_stopping_names_the_machine_that_does_not_answer_or_was_not_looked_at(monkeypatch):
    class Silent(FakeMachine):
        says = {"ended": 2, "left": [], "unseen": "Docker does not answer"}
        pause_s = 0.0

        def _python3(self, words, stdin):
            time.sleep(self.pause_s)
            return json.dumps(self.says)

    (answer,) = remote_job.stop_job([Silent()], CLUSTER).values()
    assert answer.endswith(": Docker does not answer")
    monkeypatch.setattr(remote_job, "STOP_ALL_S", 0.2)
    monkeypatch.setattr(Silent, "pause_s", 3.0)
    assert remote_job.stop_job([Silent()], CLUSTER) == {"gpu-0": "no answer in time"}


def test_stopping_what_is_not_up_also_answers_a_program(run, monkeypatch):
    monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {})
    code, out, _ = run("stop", json=True)
    assert code == 0
    assert json.loads(out) == {"stack": "local", "run": None, "stopped": True, "unclear": {}}


def test_an_environment_with_an_older_package_is_a_sentence(monkeypatch):
    def older(name):
        raise ImportError("cannot import name 'Live' from 'rich.live'")

    monkeypatch.setattr(importlib, "import_module", older)
    monkeypatch.setattr(sys, "argv", ["fab", "down"])
    monkeypatch.setattr(secret_env, "withhold", lambda: None)
    with pytest.raises(SystemExit, match="`make setup` renews it"):
        runpy.run_path(str(ROOT / "fabfile.py"))


SWALLOWS = """
import os, signal, sys, time
from microcluster.command_line.command import interrupt_at_end_of_session
interrupt_at_end_of_session()
class Swallows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000): pass
try:
    del [Swallows()][0]
    time.sleep(30)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_that_a_destructor_swallows_is_repeated():
    ended = subprocess.run([sys.executable, "-c", SWALLOWS], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")
