"""Refusals of the provider before any call, and the cost of a change."""

import pytest

from microcluster.accounts.paperspace.machine import Machines
from microcluster.accounts.shared.plugin_servicer import changed
from microcluster.accounts.shared.spec import UNKNOWN
from microcluster.accounts.softlayer.guest import Guests
from microcluster.accounts.softlayer.ledger import Ledgers
from microcluster.accounts.softlayer.security_group import Groups
from microcluster.accounts.softlayer.ssh_key import Keys
from microcluster.core.ssh_key import KeyPair
from tests.chaos.provider import STACK
from tests.chaos.softlayer import DOMAIN, MARK, PUBLIC_KEY, SIZE

GUEST = {"mark": MARK, "hostname": "gpu-0", "domain": DOMAIN, **SIZE, "backendRouterId": "1", "sshKeyIds": ["7"]}
LEDGER = {"mark": MARK, "stack": STACK, "nodes": 2, **SIZE}
GROUP = {"mark": "1f3a9c42", "name": "n", "description": "d", "rules": [{"direction": "egress"}]}


def test_good_inputs_pass():
    assert Guests().check(GUEST, {}) == []
    assert Ledgers().check(LEDGER, {}) == []
    assert Groups().check(GROUP, {}) == []
    assert Keys().check({"mark": "1f3a9c42", "label": "l", "publicKey": PUBLIC_KEY}, {}) == []


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"privateVlanId": "bcr01a.lon06.1234"}, "privateVlanId", "pattern"),
        ({"mark": "xyz"}, "mark", "pattern"),
        ({"mark": "1f3a9c43"}, "", "owner mark"),
        ({"hostname": "gpu 0; reboot"}, "hostname", "pattern"),
        ({"colour": "red"}, "colour", "no property"),
        ({"portSpeedMbps": "fast"}, "portSpeedMbps", "integer"),
    ],
)
def test_bad_guest_inputs_are_named(change, key, words):
    problems = Guests().check({name: value for name, value in {**GUEST, **change}.items() if value is not None}, {})
    assert [problem.key for problem in problems] == [key]
    assert words in problems[0].reason


def test_what_a_preview_cannot_know_yet_is_never_judged():
    unknown = {**GUEST, "backendRouterId": UNKNOWN, "sshKeyIds": [UNKNOWN], "portSpeedMbps": UNKNOWN}
    assert Guests().check(unknown, {}) == []
    rule = {"direction": "ingress", "remoteCidr": UNKNOWN}
    assert Groups().check({**GROUP, "rules": [rule, rule]}, {}) == []


def test_a_second_mark_is_refused_with_both_marks_in_the_sentence():
    (problem,) = Ledgers().check({**LEDGER, "mark": "00000000"}, LEDGER)
    assert problem.key == "mark"
    assert "1f3a9c42" in problem.reason and "00000000" in problem.reason


def test_another_ssh_key_than_the_rentals_is_refused_and_replaces_nothing():
    key = {"mark": "1f3a9c42", "label": "l", "publicKey": PUBLIC_KEY}
    other = {**key, "publicKey": KeyPair.fresh().public}
    (problem,) = Keys().check(other, key)
    assert (problem.key, "with another ssh key of the stack" in problem.reason) == ("publicKey", True)
    assert Machines().check(other, key)[0].key == "publicKey"
    assert Keys().check({**key, "publicKey": f"{PUBLIC_KEY} with a comment"}, key) == []


@pytest.mark.parametrize(
    "rule",
    [
        {"direction": "sideways"},
        {"direction": "ingress", "protocol": "tcp", "portMin": 70000},
    ],
)
def test_a_rule_that_cannot_work_is_refused(rule):
    assert Groups().check({**GROUP, "rules": [rule]}, {})


@pytest.mark.parametrize("line", ["", "ssh-ed25519", "ssh-ed25519 ***", "-----BEGIN OPENSSH PRIVATE KEY-----"])
def test_what_is_no_public_key_is_refused(line):
    assert Keys().check({"mark": "1f3a9c42", "label": "l", "publicKey": line}, {})


GROUP_KEYS = ("publicSecurityGroupIds", "privateSecurityGroupIds")
REPLACING = ("flavor", "datacenter", "dataDisksGb", "backendRouterId", "privateVlanId", "sshKeyIds")


@pytest.mark.parametrize("key", [*REPLACING, "tags", "portSpeedMbps", *GROUP_KEYS])
def test_only_what_cannot_be_changed_in_place_replaces_the_guest(key):
    assert changed(GUEST, {**GUEST, "dataDisksGb": [2000]}) == []
    assert changed(GUEST, {**GUEST, key: "other"}) == [key]
    assert (key in Guests().REPLACE_ON) == (key in REPLACING)


def test_a_preview_prices_the_cluster_and_keeps_its_datacenters_router():
    old = {**LEDGER, "backendRouterId": "5", "accountId": "9"}
    kept = Ledgers().known_outputs({**LEDGER, "nodes": 4}, old)
    assert (kept["backendRouterId"], kept["accountId"]) == ("5", "9")
    assert "backendRouterId" not in Ledgers().known_outputs({**LEDGER, "datacenter": "lon04"}, old)
    assert float(kept["pricePerHour"]) == 2 * float(Ledgers().known_outputs(LEDGER, {})["pricePerHour"])
    vlan = old | {"privateVlanId": "1234"}
    assert Ledgers().known_outputs({**LEDGER, "privateVlanId": "1234"}, vlan)["backendRouterId"] == "5"
    assert "backendRouterId" not in Ledgers().known_outputs({**LEDGER, "privateVlanId": "99"}, vlan)
    assert not Ledgers().REPLACE_ON


def test_a_preview_prices_no_cluster_that_it_does_not_know_yet():
    inputs, old = {**LEDGER, "nodes": UNKNOWN}, {"backendRouterId": "5", "accountId": "9"}
    for kept in (Ledgers().known_outputs(inputs, old), Ledgers().previewed(None, inputs, old)):
        assert (kept["accountId"], kept.get("pricePerHour"), kept.get("priceSource")) == ("9", None, None)
