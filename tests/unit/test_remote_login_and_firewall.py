"""Logins by key only, and the firewall of a machine whose vendor has none."""

import dataclasses

import pytest
from fake_machine import FakeMachine

from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.login_and_firewall import (
    BLOCK,
    CONFIG,
    SCRIPT,
    ensure_firewall,
    ensure_key_login,
    with_block,
    wrong_settings,
)

PROVED = """authorizedkeyscommanduser none
passwordauthentication no
kbdinteractiveauthentication no
permitrootlogin without-password
pubkeyauthentication yes
authenticationmethods publickey
"""
DELIVERED = """passwordauthentication yes
kbdinteractiveauthentication no
permitrootlogin yes
pubkeyauthentication yes
authenticationmethods any
"""


class Delivered(FakeMachine):
    """A machine whose sshd takes passwords until it reloads with our block; ``obeys`` says what it makes of the block."""

    def __init__(self, *, obeys: str = PROVED, reloads: bool = True) -> None:
        super().__init__()
        self.files[CONFIG] = "Include /etc/ssh/sshd_config.d/*.conf\nPasswordAuthentication yes\n"
        self.obeys, self.reloads = obeys, reloads
        self.offers = [{"publickey", "password"}]

    def _sh(self, words, stdin):
        if words[3:4] == ("sshd-settings",):
            return "root:\n" + (self.obeys if self.files[CONFIG].startswith(BLOCK) else DELIVERED)
        if words[3:4] == ("replace-sshd-config",):
            self.files[CONFIG] = self.files.pop(words[4])
            self.offers = [UnreachableError("refused"), {"publickey"}] if self.reloads else self.offers
            self.changes.append("reload sshd")
            return ""
        return super()._sh(words, stdin)

    def offered_logins(self):
        offer = self.offers.pop(0) if len(self.offers) > 1 else self.offers[0]
        if isinstance(offer, UnreachableError):
            raise offer
        return frozenset(offer)


def test_a_delivered_machine_is_changed_once_and_proved():
    machine = Delivered()
    assert ensure_key_login(machine)
    assert machine.files[CONFIG].startswith(BLOCK)
    assert not ensure_key_login(machine)
    assert machine.changes.count("reload sshd") == 1


def test_an_ineffective_setting_names_its_user_and_an_unread_one_proves_nothing(monkeypatch):
    machine = Delivered(obeys=PROVED.replace("passwordauthentication no", "passwordauthentication yes"))
    with pytest.raises(RemoteError, match="root: passwordauthentication yes.*Match block.*fab ssh gpu-0"):
        ensure_key_login(machine)
    monkeypatch.setattr("microcluster.remote.login_and_firewall.RELOAD_TIMEOUT_S", 0)
    with pytest.raises(RemoteError, match="running sshd has not read it"):
        ensure_key_login(Delivered(reloads=False))
    assert wrong_settings(""), "an sshd that says nothing proves nothing"


def test_our_block_stands_once_before_everything_else_whatever_was_written_above_it():
    once = with_block("Include x\nPort 22\n")
    assert once == BLOCK + "Include x\nPort 22\n"
    assert with_block("PermitRootLogin yes\n" + once) == BLOCK + "PermitRootLogin yes\nInclude x\nPort 22\n"


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("passwordauthentication no", "passwordauthentication yes"),
        ("kbdinteractiveauthentication no", "kbdinteractiveauthentication yes"),
        ("kbdinteractiveauthentication no", "kbdinteractiveauthentication no\nchallengeresponseauthentication yes"),
        ("permitrootlogin without-password", "permitrootlogin yes"),
        ("authenticationmethods publickey", "authenticationmethods any"),
        ("passwordauthentication no\n", ""),
    ],
)
def test_every_way_around_the_key_is_wrong_for_each_user(line, other):
    assert wrong_settings(f"root:\n{PROVED}guest:\n{PROVED}") == []
    [wrong] = wrong_settings(f"root:\n{PROVED}guest:\n{PROVED.replace(line, other)}")
    assert wrong.startswith("guest: ")


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


def test_ssh_is_open_to_the_operator_and_everything_to_the_network_alone():
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
    machine.active = False  # As after a boot.
    assert ensure_firewall(machine, ["198.51.100.7/32"], SUBNET)


@pytest.mark.parametrize(
    ("caller", "subnet", "said"),
    [
        ("192.0.2.5", SUBNET, "reaches it from 192.0.2.5, which cluster.adminCidrs does not hold"),
        ("198.51.100.7", None, "the account does not say which addresses its private network has"),
    ],
)
def test_an_operator_outside_the_cidrs_or_unknown_network_changes_no_firewall(caller, subnet, said):
    machine = Open(caller=caller)
    with pytest.raises(RemoteError, match=said):
        ensure_firewall(machine, ["198.51.100.7/32"], subnet)
    assert SCRIPT not in machine.files
