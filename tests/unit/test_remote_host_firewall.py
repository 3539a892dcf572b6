"""The firewall of a machine whose vendor has none."""

import dataclasses

import pytest
from fake_machine import FakeMachine

from microcluster.remote.access import SCRIPT, ensure_firewall
from microcluster.remote.errors import RemoteError

SUBNET = "10.64.21.0/24"


@dataclasses.dataclass
class Open(FakeMachine):
    """A machine with every port open, which we reach from ``caller``."""

    caller: str = "198.51.100.7"
    active: bool = False

    def _sh(self, words, stdin):
        if words[3:4] == ("caller",):
            return f"{self.caller}\n"
        if words[1] == SCRIPT:
            self.active = True
            self.changes.append("closed")
        return super()._sh(words, stdin)

    def _iptables(self, words, stdin):
        return (0, "") if self.active else (1, "")


def test_ssh_is_open_to_the_operator_everything_to_the_network_and_nothing_to_others():
    machine = Open()
    assert ensure_firewall(machine, ["198.51.100.7/32"], SUBNET)
    rules = [line for line in machine.files[SCRIPT].splitlines() if line.startswith("-A")]
    assert [rule for rule in rules if " -s " in rule] == [
        f"-A MICROCLUSTER -s {SUBNET} -j ACCEPT",
        "-A MICROCLUSTER -s 198.51.100.7/32 -p tcp --dport 22 -j ACCEPT",
    ]
    assert rules[-1] == "-A MICROCLUSTER -j DROP"
    assert not ensure_firewall(machine, ["198.51.100.7/32"], SUBNET)
    assert machine.changes.count("closed") == 1


def test_after_a_boot_without_its_rules_they_are_written_again():
    machine = Open()
    ensure_firewall(machine, ["198.51.100.7/32"], SUBNET)
    machine.active = False
    assert ensure_firewall(machine, ["198.51.100.7/32"], SUBNET)


def test_an_operator_who_would_be_locked_out_is_told_before_anything_changes():
    machine = Open(caller="192.0.2.5")
    with pytest.raises(RemoteError, match="reaches it from 192.0.2.5, which cluster.adminCidrs does not hold"):
        ensure_firewall(machine, ["198.51.100.7/32"], SUBNET)
    assert SCRIPT not in machine.files
