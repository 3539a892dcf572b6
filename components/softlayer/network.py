"""The private network of a cluster: one backend router or VLAN, and the security groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from core.catalog import softlayer as catalog
from providers.softlayer.pulumi_resources import RuleArgs, SecurityGroup, SecurityGroupArgs


@dataclass(frozen=True)
class PrivateNetworkArgs:
    """Either router or VLAN is fixed before the first order: guests behind different routers cannot talk."""

    mark: str
    admin_cidrs: Sequence[str]
    backend_router_id: pulumi.Input[str] | None = None
    private_vlan_id: str | None = None


class PrivateNetwork(pulumi.ComponentResource):
    """One backend router or VLAN and the two security groups of every node, one on each interface."""

    backend_router_id: pulumi.Input[str] | None
    private_vlan_id: str | None
    public_group_id: pulumi.Output[str]
    private_group_id: pulumi.Output[str]

    def __init__(self, name: str, args: PrivateNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:PrivateNetwork", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        public = SecurityGroup(
            f"{name}-public",
            SecurityGroupArgs(args.mark, f"{name}-public", "ssh from the operator", public_rules(args.admin_cidrs)),
            child,
        )
        private = SecurityGroup(
            f"{name}-private",
            SecurityGroupArgs(args.mark, f"{name}-private", "members and the vendor's services", private_rules()),
            child,
        )
        self.backend_router_id, self.private_vlan_id = args.backend_router_id, args.private_vlan_id
        self.public_group_id, self.private_group_id = public.group_id, private.group_id
        self.register_outputs(
            {
                "backendRouterId": self.backend_router_id,
                "privateVlanId": self.private_vlan_id,
                "publicGroupId": self.public_group_id,
                "privateGroupId": self.private_group_id,
            }
        )


def public_rules(admin_cidrs: Sequence[str]) -> tuple[RuleArgs, ...]:
    """Allow everything out, and ssh in from the operator."""
    ssh = [RuleArgs("ingress", "tcp", 22, 22, remote_cidr=cidr) for cidr in admin_cidrs]
    return (RuleArgs("egress"), *ssh)


def private_rules() -> tuple[RuleArgs, ...]:
    """Allow everything out, and members and the vendor's services in."""
    services = [RuleArgs("ingress", remote_cidr=cidr) for cidr in catalog.SERVICE_NETWORKS]
    return (RuleArgs("egress"), RuleArgs("ingress", remote_self=True), *services)
