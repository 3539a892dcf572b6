"""A machine arrives as SoftLayer delivers it, with root's password, and takes keys only after the first step."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest
from remote_cluster import facts, machine, shell

from emulator.machines.container_machines import ContainerMachines
from emulator.machines.spec import MachineSpec
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.login_and_firewall import CONFIG, ensure_key_login

pytestmark = [pytest.mark.containers, pytest.mark.timeout(180)]

PASSWORD = "Vt7pQ2xK"


@pytest.fixture
def delivered(machines: ContainerMachines, keys: Path) -> Iterator[MachineSpec]:
    spec = dataclasses.replace(machine(2, keys), root_password=PASSWORD)
    machines.boot(spec)
    yield spec
    machines.destroy(spec.guest_id)


@pytest.fixture
def host(delivered: MachineSpec, keys: Path) -> Iterator[Host]:
    host = Host(facts(2, keys), "root", str(keys / "id_ed25519"))
    yield host
    host.close()


def lets_in(host: Host, password: str) -> bool:
    """Whether root can log in from outside with a password alone."""
    with paramiko.SSHClient() as client:
        client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        only_password = {"password": password, "look_for_keys": False, "allow_agent": False, "timeout": 10}
        try:
            client.connect(host.facts.public_address, username="root", **only_password)
        except paramiko.AuthenticationException:
            return False
        return True


def settings_of(host: Host, where: str) -> set[str]:
    return set(shell(host, f"/usr/sbin/sshd -T -C {where}").splitlines())


def test_the_password_works_before_the_step_and_is_refused_after_it(host, delivered, machines):
    assert lets_in(host, PASSWORD)
    assert not lets_in(host, "another")
    assert ensure_key_login(host)
    assert not lets_in(host, PASSWORD)
    for where in ("user=root,host=a,addr=203.0.113.9", "user=daemon,host=b,addr=10.0.0.1"):
        assert settings_of(host, where) >= {
            "passwordauthentication no",
            "kbdinteractiveauthentication no",
            "permitrootlogin without-password",
            "authenticationmethods publickey",
        }
    assert not ensure_key_login(host)
    host.close()
    machines.power_off(delivered.guest_id)
    machines.boot(delivered)
    assert not lets_in(host, PASSWORD)


def test_a_match_block_that_allows_passwords_is_named_and_lets_nobody_in(host):
    shell(host, f"printf 'Match User root\\n  PasswordAuthentication yes\\n' >> {CONFIG}")
    with pytest.raises(RemoteError, match=r"gpu-2 .*root: passwordauthentication yes.*Match block"):
        ensure_key_login(host)
    assert not lets_in(host, PASSWORD)
