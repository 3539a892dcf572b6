"""Every verb ends with a sentence and an exit code, however the account fails and whatever nobody foresaw."""

import dataclasses
import inspect
import io
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import invoke
import pytest
from breaking_server import answer, breaking_server
from command_samples import CLUSTER
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fake_machine import FACTS

import fabfile
from microcluster.accounts.shared import api_calls
from microcluster.command_line import parts
from microcluster.command_line.command import command
from microcluster.commands import logs, ssh
from microcluster.core import stack_keys as keys
from microcluster.remote.host import wait_for_ssh
from microcluster.run import cluster as run_cluster
from microcluster.run import watch

pytestmark = pytest.mark.timeout(60)
LOCAL = ("setup", "engine", "images", "emulator", "preview", "up", "down")
"""They install and start programs; tests/commands and tests/e2e run them."""
COMMANDS = fabfile.commands(("step.",) + tuple(fabfile.MODULES))
VERBS = sorted(set(COMMANDS.task_names) - set(LOCAL))


API_KEY = "c0ffee0123456789c0ffee0123456789"
CONTROLS = "\x9b31m\u202e"
"""What XML lets through of all that a terminal obeys."""


def refuses(code: str, text: str) -> bytes:
    return xmlrpc.client.dumps(xmlrpc.client.Fault(code, text)).encode()


def answers(value: object) -> bytes:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True).encode()


WAYS: dict[str, bytes | None] = {
    "refuses the key": refuses("SoftLayer_Exception_Public", "Invalid API token."),
    "refuses everything": refuses("SoftLayer_Exception_Public", f"no [/b] for {API_KEY} {CONTROLS}"),
    "breaks inside": refuses("SoftLayer_Exception", "Internal Error"),
    "is a gateway's page": b"<html><body>502 Bad Gateway</body></html>",
    "answers with something else": answers([{"surprise": CONTROLS}]),
    "answers with an object everywhere": answers({"id": 1, "companyName": CONTROLS}),
    "answers with rows that lack everything": answers([{}, {}]),
    "hangs up": None,
}


@contextmanager
def failing(way: str, folder: Path) -> Iterator[Path]:
    """Serve an account that fails in this way, and give the file with its key."""
    content = WAYS[way]
    act = answer(200, content, "Content-Type: text/xml\r\n") if content else lambda connection: None
    with breaking_server(act) as server:
        file = folder / "softlayer.conf"
        folder.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        known = f"username = somebody\napi_key = {API_KEY}\nendpoint_url = {server.endpoint('/xmlrpc/v3.1/')}"
        file.write_text(f"[softlayer]\n{known}\ntimeout = 5\n")
        yield file


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(api_calls, name, 0.001)
    keys.ensure(tmp_path / "keys" / "local", "local")
    return tmp_path


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text"
    file.write_text("one sentence\n")
    return str(file)


def stands(monkeypatch, account_file: Path, home: Path) -> None:
    """Let the stack be up, with a machine that does not answer."""
    key = Ed25519PrivateKey.generate().public_key()
    line = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    here = dataclasses.replace(FACTS, public_address="127.0.0.1", host_key=line)
    up = dataclasses.replace(
        CLUSTER,
        hosts=(here,),
        key_file=str(home / "keys" / "local" / "id_ed25519"),
        rank_key_file=str(home / "keys" / "local" / "rank_ed25519"),
        account_config_file=str(account_file),
    )
    monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {run_cluster.pulumi.OUTPUT: up.to_json()})
    monkeypatch.setattr(watch, "LOST_LIMIT_S", -1)
    monkeypatch.setattr(logs, "LOST_LIMIT_S", -1)
    monkeypatch.setattr(wait_for_ssh, "__defaults__", (0.1,))
    monkeypatch.setattr(ssh.os, "execvp", lambda *_: (_ for _ in ()).throw(FileNotFoundError(2, "ssh")))


def run(name: str, text: str, **more: object) -> int:
    task = COMMANDS[name]
    wanted = inspect.signature(task.body).parameters
    known = {"node": FACTS.name, "file": text, "yes": True, "cancel": True, "port": "16006", **more}
    with pytest.raises(SystemExit) as end:
        task.body(invoke.Context(), **{key: value for key, value in known.items() if key in wanted})
    return end.value.code


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["receipt", "recover", "sweep", "status"])
def test_a_verb_that_asks_the_account_ends_with_a_sentence_however_that_fails(  # noqa: PLR0917
    name, way, home, text, monkeypatch, capsys
):
    with failing(way, home / "emulator") as file:
        if name == "status":
            stands(monkeypatch, file, home)
        else:
            monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {})
        code = run(name, text)
    said = capsys.readouterr()
    assert code in (1, 2, 3), said
    assert said.err.strip()
    for bad in ("Traceback", API_KEY, "\x9b", "\u202e"):
        assert bad not in said.out + said.err


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_ends_with_a_sentence_when_account_and_machines_fail(name, home, text, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    with failing("answers with rows that lack everything", home / "emulator") as file:
        stands(monkeypatch, file, home)
        code = run(name, text)
    said = capsys.readouterr()
    assert code == 0 if name in ("explain", "plan", "rotate", "step.stop-job") else code in (1, 2, 3), said
    assert "Traceback" not in said.out + said.err
    assert (said.out + said.err).strip()


def test_a_stack_that_is_up_keeps_its_key_whatever_its_account_leaves_out(home, text, monkeypatch, capsys):
    with failing("answers with rows that lack everything", home / "emulator") as file:
        stands(monkeypatch, file, home)
        before = (home / "keys" / "local" / "id_ed25519").read_text()
        assert run("rotate", text) == 0
    assert f"{FACTS.name} ({FACTS.guest_id})" in capsys.readouterr().out
    assert (home / "keys" / "local" / "id_ed25519").read_text() == before


def test_an_unexpected_error_names_command_type_and_the_file_with_its_traceback(home, monkeypatch, capsys):
    monkeypatch.setattr(parts, "kept", lambda: {"SL_API_KEY": API_KEY})

    def cancel_all():
        raise TypeError(f"unsupported \x1b[2J {API_KEY}")

    assert command(cancel_all).code() == 1
    said, file = capsys.readouterr().err, home / "cache" / "logs" / "fab-cancel-all-error.log"
    assert said.startswith("fab cancel-all: TypeError: unsupported  (secret). This is a mistake in the program")
    assert str(file) in said and "fab receipt" in said
    kept = file.read_text()
    assert "Traceback" in kept and API_KEY not in kept and "\x1b" not in kept
    file.unlink()
    file.parent.rmdir()
    file.parent.write_text("a file where a folder should be")
    told = parts.unforeseen("fab sweep", KeyError("id"))
    assert "KeyError: 'id'" in told and "could not be written" in told
