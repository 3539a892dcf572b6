"""Security groups become the packet filter that the words of the rules promise."""

import pytest

from emulator.machines.network_access import firewall_text
from emulator.machines.spec import Rule

SSH = Rule("ingress", "tcp", 22, 22, ("203.0.113.1/32",))


def rules(private, public) -> list[str]:
    lines = firewall_text(private, public).splitlines()
    assert lines[0] == "*filter"
    assert lines[-1] == "COMMIT"
    return [line for line in lines if line.startswith("-A") and "ESTABLISHED" not in line]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (SSH, "-A INPUT -i eth0 -s 203.0.113.1/32 -p tcp --dport 22:22 -j ACCEPT"),
        (
            Rule("egress", "udp", 1000, 2000, ("10.0.0.0/8",)),
            "-A OUTPUT -o eth0 -d 10.0.0.0/8 -p udp --dport 1000:2000 -j ACCEPT",
        ),
        (Rule("ingress", None, None, None, ()), "-A INPUT -i eth0 -s 0.0.0.0/0 -j ACCEPT"),
        (Rule("ingress", "icmp", 8, 0, ()), "-A INPUT -i eth0 -s 0.0.0.0/0 -p icmp --icmp-type 8/0 -j ACCEPT"),
        (Rule("ingress", None, None, None, ("::/0",)), "-A INPUT -i eth0 -j DROP"),
    ],
)
def test_a_rule_becomes_a_line_of_the_filter_and_one_for_ipv6_alone_none(rule, line):
    assert rules((rule,), None)[0] == line


def test_an_interface_without_a_group_is_open_an_empty_group_closes_it_both_ways_and_rules_come_before_the_drops():
    assert rules(None, ()) == ["-A INPUT -i eth1 -j DROP", "-A OUTPUT -o eth1 -j DROP"]
    assert [line.split()[-1] for line in rules((SSH,), (SSH,))] == ["ACCEPT", "DROP", "DROP"] * 2


def test_established_connections_pass_in_both_directions_before_anything_is_dropped():
    lines = firewall_text((), ()).splitlines()
    for chain in ("INPUT", "OUTPUT"):
        established = lines.index(f"-A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT")
        assert established < min(
            i for i, line in enumerate(lines) if line.startswith(f"-A {chain} ") and "DROP" in line
        )


def test_every_remote_gets_a_line_and_ranges_lose_their_host_bits():
    members = Rule("ingress", None, None, None, ("10.112.7.10/32", "10.112.7.11/26"))
    assert [line.split()[5] for line in rules((members,), None)[:2]] == ["10.112.7.10/32", "10.112.7.0/26"]
