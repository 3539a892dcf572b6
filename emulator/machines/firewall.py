"""Security groups as input of iptables-restore, which replaces all rules in one step."""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from emulator.machines.spec import Rule

PRIVATE, PUBLIC = "eth0", "eth1"


def firewall_text(private: Sequence[Rule] | None, public: Sequence[Rule] | None) -> str:
    """The whole filter table; None leaves an interface open, an empty sequence closes it both ways."""
    lines = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"]
    for chain in ("INPUT", "OUTPUT"):
        lines.append(f"-A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT")
    for interface, rules in ((PRIVATE, private), (PUBLIC, public)):
        if rules is not None:
            lines += _interface(interface, rules)
    return "\n".join([*lines, "COMMIT", ""])


def _interface(interface: str, rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        for remote in _remotes(rule):
            chain, side, address = ("INPUT", "-i", "-s") if rule.direction == "ingress" else ("OUTPUT", "-o", "-d")
            yield " ".join(("-A", chain, side, interface, address, remote, *_protocol(rule), "-j", "ACCEPT"))
    yield f"-A INPUT -i {interface} -j DROP"
    yield f"-A OUTPUT -o {interface} -j DROP"


def _remotes(rule: Rule) -> tuple[str, ...]:
    """The IPv4 ranges; the machines have no IPv6, so a rule for IPv6 alone lets nothing pass."""
    ranges = (ipaddress.ip_network(remote, strict=False) for remote in rule.remote)
    return tuple(str(each) for each in ranges if each.version == 4) if rule.remote else ("0.0.0.0/0",)


def _protocol(rule: Rule) -> tuple[str, ...]:
    if rule.protocol is None:
        return ()
    if rule.port_min is None:
        return ("-p", rule.protocol)
    if rule.protocol == "icmp":  # SoftLayer puts type and code in the fields of the ports.
        code = "" if rule.port_max is None else f"/{rule.port_max}"
        return ("-p", "icmp", "--icmp-type", f"{rule.port_min}{code}")
    last = rule.port_min if rule.port_max is None else rule.port_max
    return ("-p", rule.protocol, "--dport", f"{rule.port_min}:{last}")
