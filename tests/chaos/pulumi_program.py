"""The program that the command line runs: the project's cluster without its steps over ssh, which need machines behind the guests."""

import pulumi

from components.cluster import TrainingClusterArgs
from components.softlayer import GpuNodeArgs, PrivateNetwork, PrivateNetworkArgs, guest_spec, key_spec
from microcluster.accounts.softlayer.declared import Ledger, SshKey, VirtualGuest
from microcluster.accounts.softlayer.specs import LedgerSpec
from microcluster.config import stack as config


def main() -> None:
    """Declare the ledger, the key, the network and the guests of the stack."""
    stack = config.load()
    args = TrainingClusterArgs(stack, config.keys_of(stack.name))
    ledger = Ledger("ledger", LedgerSpec.declare(**args.whole_order))
    after = pulumi.ResourceOptions(depends_on=[ledger])
    key = SshKey("key", key_spec(args), after)
    network = PrivateNetwork("network", PrivateNetworkArgs(args, ledger.backend_router_id), after)
    alone = pulumi.ResourceOptions(depends_on=[ledger], delete_before_replace=True)
    for host in stack.cluster.hostnames:
        VirtualGuest(host, guest_spec(GpuNodeArgs(args, host, key.id, network)), alone)
