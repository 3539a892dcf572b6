"""The program that the command line runs: the project's cluster without its steps over ssh, which need machines behind the guests."""

import pulumi

from components.softlayer import GpuNodeArgs, PrivateNetwork, guest_spec, key_spec, ledger_spec, network_args
from microcluster.config import stack as config
from providers.softlayer.specs import Ledger, SshKey, VirtualGuest


def main() -> None:
    """Declare the ledger, the key, the network and the guests of the stack."""
    stack = config.load()
    owner = config.owner(stack.name)
    ledger = Ledger("ledger", ledger_spec(stack, owner))
    after = pulumi.ResourceOptions(depends_on=[ledger])
    key = SshKey("key", key_spec(stack, owner), after)
    network = PrivateNetwork("network", network_args(stack, owner, ledger.backend_router_id), after)
    alone = pulumi.ResourceOptions(depends_on=[ledger], delete_before_replace=True)
    for host in stack.cluster.hostnames:
        VirtualGuest(host, guest_spec(GpuNodeArgs(stack.name, owner, host, stack.cluster, key.id, network)), alone)
