"""One rule of a security group: as it is declared, as the API takes it, and as the API shows it."""

import ipaddress
from collections.abc import Mapping
from typing import Any, Literal, Self

import pydantic

from providers.grpc.properties import Spec

Rule = dict[str, Any]


class RuleSpec(Spec):
    """What is let through."""

    direction: Literal["ingress", "egress"]
    protocol: Literal["tcp", "udp", "icmp"] | None = None
    port_min: int | None = pydantic.Field(None, ge=0, le=65535)
    port_max: int | None = pydantic.Field(None, ge=0, le=65535)
    remote_cidr: str | None = None
    remote_self: bool = False

    @pydantic.model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.remote_cidr is not None:
            if self.remote_self:
                raise ValueError("name either remoteCidr or remoteSelf")
            ipaddress.ip_network(self.remote_cidr)
        if self.protocol is None and self.port_min is not None:
            raise ValueError("ports need a protocol")
        return self

    def template(self, group_id: int) -> Rule:
        """Write the rule as the API takes it."""
        rule = {
            "direction": self.direction,
            "ethertype": "IPv6" if self.remote_cidr and ":" in self.remote_cidr else "IPv4",
            "protocol": self.protocol,
            "portRangeMin": self.port_min,
            "portRangeMax": self.port_max if self.port_max is not None else self.port_min,
            "remoteIp": self.remote_cidr,
            "remoteGroupId": group_id if self.remote_self else None,
        }
        return {key: value for key, value in rule.items() if value is not None}


def identity(rule: Mapping[str, Any]) -> tuple[str, ...]:
    """Reduce a rule to what makes it this rule, whether we wrote it or the API shows it."""
    # The API answers '' where nothing was given, and numbers or digit strings for ports and ids.
    keys = ("direction", "ethertype", "protocol", "portRangeMin", "portRangeMax", "remoteIp", "remoteGroupId")
    return tuple("" if rule.get(key) is None else str(rule[key]) for key in keys)


def inputs_of(rule: Mapping[str, Any], group_id: int) -> dict[str, Any]:
    """Read back, as inputs, a rule that the API shows."""
    found = {
        "direction": rule.get("direction"),
        "protocol": rule.get("protocol") or None,
        "portMin": rule.get("portRangeMin") if rule.get("portRangeMin") != "" else None,
        "portMax": rule.get("portRangeMax") if rule.get("portRangeMax") != "" else None,
        "remoteCidr": rule.get("remoteIp") or None,
        "remoteSelf": str(rule.get("remoteGroupId")) == str(group_id) or None,
    }
    return {key: value for key, value in found.items() if value is not None}
