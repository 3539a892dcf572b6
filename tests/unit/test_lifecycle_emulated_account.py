"""What stands in the way of the account on this machine is told before anything is built or ordered."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.home import Home
from emulator.process import port_owner
from microcluster.lifecycle import emulated_account
from microcluster.lifecycle.emulated_account import Emulated
from microcluster.setup.errors import CommandFailed, UserMistake


@pytest.fixture(params=["0.0.0.0", "127.0.0.1"])
def listener(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    with socket.create_server((request.param, 0)) as server:
        yield request.param, server.getsockname()[1]


def test_a_program_that_has_the_registrys_port_everywhere_is_named_and_left_alone(listener, tmp_path: Path) -> None:
    address, port = listener
    (tmp_path / "settings.toml").write_text(f"registry_port = {port}\n")
    assert str(port_owner(port)).startswith(f"{os.getpid()} (")
    account = Emulated("softlayer", tmp_path)
    status = emulated_account._status(account, Home(tmp_path, tmp_path))
    if address == "127.0.0.1":  # Ours listens on one address too, and both go together.
        emulated_account.refuse_taken_port(account, status)
        return
    with pytest.raises(
        CommandFailed, match=f"needs port {port}, but process {os.getpid()} .*service docker-registry stop"
    ):
        emulated_account.refuse_taken_port(account, status)


def test_settings_that_cannot_be_used_are_the_persons_mistake(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("prot = 1\n")
    with pytest.raises(UserMistake, match="settings.toml .*prot: Unexpected"):
        emulated_account.rented(Emulated("softlayer", tmp_path), Home(tmp_path, tmp_path))


OPENS_AND_CLOSES = """
import os, socket
seen_before_the_port = os.open(os.devnull, os.O_RDONLY)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while os.getppid() == int(os.environ["PARENT"]):
    os.close(seen_before_the_port)
    os.open(os.devnull, os.O_RDONLY)
"""


def test_the_owner_of_a_port_is_found_while_it_opens_and_closes_files() -> None:
    argv = [sys.executable, "-c", OPENS_AND_CLOSES]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={"PARENT": str(os.getpid())}) as busy:
        port = int(busy.stdout.readline())
        owners = {str(port_owner(port)).split()[0] for _ in range(40)}
        busy.kill()
    assert owners == {str(busy.pid)}


@pytest.mark.parametrize("begin", [emulated_account.start, emulated_account.answer])
def test_a_port_in_use_is_reported_before_docker_and_images_are_prepared(begin, tmp_path: Path) -> None:
    with socket.create_server(("", 0)) as server:
        (tmp_path / "settings.toml").write_text(f"registry_port = {server.getsockname()[1]}\n")
        with pytest.raises(CommandFailed, match="registry_port"):
            begin(Emulated("softlayer", tmp_path), Home(tmp_path, tmp_path), None)
