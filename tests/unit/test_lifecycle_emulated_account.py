"""What stands in the way of the account on this machine is told before anything is built or ordered."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from core.home import Home
from emulator.process import port_owner
from microcluster.lifecycle import emulated_account
from microcluster.lifecycle.emulated_account import Emulated
from microcluster.setup.errors import CommandFailed, UserMistake


@pytest.mark.parametrize("begin", [emulated_account.start, emulated_account.answer])
def test_a_program_that_has_the_registrys_port_everywhere_is_named_before_docker_and_images_are_prepared(
    begin, tmp_path: Path
) -> None:
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        (tmp_path / "settings.toml").write_text(f"registry_port = {port}\n")
        said = f"needs port {port}, but process {os.getpid()} .*service docker-registry stop"
        with pytest.raises(CommandFailed, match=said):
            begin(Emulated("softlayer", tmp_path), Home(tmp_path, tmp_path), None)


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


def test_the_owner_of_a_port_on_one_address_is_found_while_it_opens_and_closes_files() -> None:
    argv = [sys.executable, "-c", OPENS_AND_CLOSES]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={"PARENT": str(os.getpid())}) as busy:
        port = int(busy.stdout.readline())
        owners = {str(port_owner(port)).split()[0] for _ in range(20)}
        busy.kill()
    assert owners == {str(busy.pid)}
    with socket.create_server(("127.0.0.1", 0)) as ours:  # The registry listens on one address too: both go together.
        assert port_owner(ours.getsockname()[1], everywhere=True) is None
