"""Machines and a drive of the emulated Paperspace account: the user, sudo, the startup script, the network, and Samba.

Their images are no part of `make images`; `make test` builds them, and so does `fab images --only ml-in-a-box drive`.
"""

import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from image_containers import need
from product import account_key, emulator

from emulator.machines.host_tools import wait_until
from emulator.paperspace.settings import BOX_IMAGE, DRIVE_IMAGE
from tests.product import free_port, write_settings
from tests.unit.emulated_paperspace import order

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]
READY_S, LIMIT_S = 120, 120
SCRIPT = "id -un >/root/who; echo >>/root/boots; echo {key} >>/home/paperspace/.ssh/authorized_keys; echo said"
MOUNT = """
set -e
mkdir -p ~/drive
pass=$(printf %s {password} | rclone obscure -)
RCLONE_SMB_PASS=$pass rclone mount :smb:{share} ~/drive --smb-host {address} --smb-user {user} --vfs-cache-mode writes \
    --vfs-write-back 1s --dir-cache-time 1s --daemon
"""


@dataclass(frozen=True)
class Api:
    """The account's API with its key."""

    address: str
    key: str

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = requests.request(method, f"{self.address}{path}", json=body or {}, headers=headers, timeout=LIMIT_S)
        answer.raise_for_status()
        return answer.json()


@dataclass
class Team:
    """A team with two machines and a drive in one network."""

    api: Api
    key: Path
    machines: list[dict[str, Any]]
    drive: dict[str, Any]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.api.ask(method, path, body)

    def ssh(self, machine: dict[str, Any], command: str, user: str = "paperspace") -> subprocess.CompletedProcess[str]:
        known = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
        where = ("-i", str(self.key), "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", f"{user}@{machine['publicIp']}")
        argv = ("ssh", "-F", "none", *known, *where, command)
        return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def told(self, machine: dict[str, Any], command: str) -> str:
        ended = self.ssh(machine, command)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """The account in a process of its own; everything of it goes again."""
    need(BOX_IMAGE, DRIVE_IMAGE, command="fab images --only ml-in-a-box drive")
    folder, port = tmp_path_factory.mktemp("paperspace"), free_port()
    state, key = folder / "state", folder / "login"
    write_settings(state, port, ("10.64.121.0/24", "10.64.122.0/24"), "198.18.67.0/26")
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)), check=True)
    emulator("paperspace", state, "start")
    try:
        yield rented(Api(f"http://127.0.0.1:{port}/v1", account_key(state)), key)
    finally:
        emulator("paperspace", state, "reset")


def rented(api: Api, key: Path) -> Team:
    network = api.ask("POST", "/private-networks", {"name": "train", "region": "ny2"})["id"]
    wanted = {"name": "data", "size": 250, "region": "ny2", "networkId": network}
    drive = api.ask("POST", "/shared-drives", wanted)
    text = SCRIPT.format(key=shlex.quote(key.with_suffix(".pub").read_text().strip()))
    script = api.ask("POST", "/startup-scripts", {"name": "boot", "script": text, "isRunOnce": True})["id"]
    more = {"networkId": network, "publicIpType": "dynamic", "startupScriptId": script}
    made = [api.ask("POST", "/machines", order(name) | more)["data"]["id"] for name in ("node-0", "node-1")]
    return Team(api, key, [ready(api, each) for each in made], drive)


def ready(api: Api, machine: str) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        shown = api.ask("GET", f"/machines/{machine}")
        return shown if shown["state"] == "ready" else None

    return wait_until(f"machine {machine}", probe, READY_S)


def test_the_user_may_do_everything_and_root_cannot_log_in(team):
    first = team.machines[0]
    assert team.told(first, "id -un; sudo -n id -un; hostname").split() == ["paperspace", "root", first["id"]]
    assert team.ssh(first, "true", user="root").returncode != 0
    assert team.told(first, "nvidia-smi -L").count("Quadro P4000 (emulated)") == 2


def test_a_machine_installs_from_this_computers_package_index_and_reaches_nothing_else(team):
    first = team.machines[0]
    team.told(first, "python3 -m venv ~/own && ~/own/bin/pip install --no-cache-dir humanize==4.9.0")
    assert team.told(first, "~/own/bin/python -c 'import humanize; print(humanize.__version__)'") == "4.9.0"
    index = team.told(first, "echo $PIP_INDEX_URL; grep -q ^index-url /etc/pip.conf")
    other = f"{index.rpartition('/')[0]}/files/https/example.com/"
    assert team.told(first, f"curl -s -o /dev/null -w '%{{http_code}}' {other}") == "403"
    for outside in ("https://example.com/", "http://192.0.2.1/"):
        assert team.ssh(first, f"curl -s --max-time 5 {outside}").returncode != 0


def test_systemd_starts_a_service_for_root_alone_and_refuses_in_its_words(team):
    first, begin = team.machines[0], "systemd-run --quiet --unit=microcluster-e2e --uid=paperspace --setenv=MARK=e2e"
    refused = team.ssh(first, f"{begin} true")
    assert refused.returncode != 0
    assert refused.stderr.strip().endswith("Interactive authentication required.")
    team.told(first, f"sudo -n {begin} sh -c 'id -un > ~/who; echo $MARK >> ~/who; exec sleep 600'")
    wait_until(
        "the service", lambda: team.told(first, "cat ~/who 2>/dev/null; true").split() == ["paperspace", "e2e"], 20
    )
    assert "already exists" in team.ssh(first, f"sudo -n {begin} true").stderr


def test_machines_of_one_network_reach_each_other_at_the_apis_addresses(team):
    first, second = team.machines
    assert first["privateIp"] in team.told(first, "ip -4 -o addr show eth0")
    team.told(first, f"ping -c 1 -W 2 {second['privateIp']}")


def test_a_script_to_run_once_runs_as_root_and_never_again(team):
    first = team.machines[0]
    assert team.told(first, "sudo cat /root/who /var/log/startup-script-output.log").split() == ["root", "said"]
    team.ask("PATCH", f"/machines/{first['id']}/stop")
    wait_until("the stop", lambda: team.ask("GET", f"/machines/{first['id']}")["state"] == "off", READY_S)
    team.ask("PATCH", f"/machines/{first['id']}/start")
    team.machines[0] = ready(team.api, first["id"])
    assert team.told(team.machines[0], "sudo cat /root/boots | wc -l") == "1"


def test_the_drive_is_shared_by_the_machines_and_refuses_a_wrong_password(team):
    _, address, share = team.drive["mountPoint"].rsplit("\\", 2)
    given = {"address": address, "share": share, "user": team.drive["username"]}
    mount = MOUNT.format(**given, password=shlex.quote(team.drive["password"]))
    for machine in team.machines:
        team.told(
            machine,
            f"bash -c {shlex.quote(mount)} >/dev/null 2>&1; for i in $(seq 20); do mountpoint -q ~/drive && break; sleep 0.5; done; mountpoint ~/drive",
        )
    team.told(team.machines[0], "echo whole >~/drive/part && sync && mv ~/drive/part ~/drive/whole")
    wait_until("the file", lambda: team.ssh(team.machines[1], "cat ~/drive/whole").stdout == "whole\n", LIMIT_S)
    ls = f"rclone ls :smb:{share} --smb-host {address} --smb-user {given['user']} --retries 1 --low-level-retries 1"
    refused = team.ssh(team.machines[1], f"RCLONE_SMB_PASS=$(rclone obscure wrong) {ls}")
    assert refused.returncode != 0
    assert "invalid" in refused.stderr
