"""A cluster at Paperspace: machines on one private network with a shared drive; the processes run on the machines."""

from dataclasses import dataclass, replace

import pulumi

from components.cluster import TrainingCluster, TrainingClusterArgs, step
from microcluster.jobs.cluster_facts import Drive, Host
from providers.paperspace.specs import (
    DriveSpec,
    Ledger,
    LedgerSpec,
    Machine,
    MachineSpec,
    NetworkSpec,
    PrivateNetwork,
    SharedDrive,
)

NETWORK, DRIVE = "private", "data"


@dataclass(frozen=True)
class PreparedMachineArgs:
    """What one machine of a cluster needs; ``drive`` is None without one."""

    cluster: TrainingClusterArgs
    hostname: str
    network: PrivateNetwork
    drive: pulumi.Output[Drive] | None


class PreparedMachine(pulumi.ComponentResource):
    """A machine with its own firewall, logins by key and the mounted drive."""

    machine: Machine
    host: pulumi.Output[Host]
    ready: pulumi.Resource

    def __init__(self, name: str, args: PreparedMachineArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:PreparedMachine", name, {}, opts)
        # Never two machines of one name at a time: quota, and adoption by mark needs a unique name.
        alone = pulumi.ResourceOptions(parent=self, delete_before_replace=True)
        self.machine = machine = Machine(f"{name}-machine", machine_spec(args), alone)
        known = pulumi.Output.all(machine.id, machine.public_ip, machine.private_ip, machine.host_key)
        self.host = known.apply(lambda values: Host(args.hostname, *values))
        own = pulumi.ResourceOptions(parent=self, deleted_with=machine)
        facts = pulumi.Output.all(self.host, args.network.subnet, args.drive).apply(
            lambda known: replace(args.cluster.facts, hosts=(known[0],), private_subnet=known[1], drive=known[2])
        )
        stdin = facts.apply(lambda node: replace(node, drive=None).to_json())
        self.ready = step(f"{name}-prepared", "prepare-machine", stdin, [machine.id], own)
        if args.drive is not None:
            after = pulumi.ResourceOptions(parent=self, deleted_with=machine, depends_on=[self.ready])
            mounted = facts.apply(lambda node: node.to_json())
            drive_id = args.drive.apply(lambda drive: drive.id)
            self.ready = step(f"{name}-mounted", "mount-drive", mounted, [machine.id, drive_id], after)
        self.register_outputs({"machineId": machine.id, "privateAddress": machine.private_ip})


class Cluster(TrainingCluster):
    """Machines, their network and their drive."""

    def __init__(self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        stack, owner, cluster = args.stack, args.owner, args.stack.cluster
        super().__init__(name, stack, opts)
        child = pulumi.ResourceOptions(parent=self)
        whole = LedgerSpec.declare(mark=owner.mark, stack=stack.name, nodes=cluster.nodes, **cluster.order())
        ledger = Ledger(f"{name}-ledger", whole, child)
        # Everything depends on the ledger: it checks the account before the first order, and is deleted last.
        after = pulumi.ResourceOptions(parent=self, depends_on=[ledger])
        common = {"mark": owner.mark, "region": cluster.region, "keep": cluster.keep_drive}
        network = PrivateNetwork(f"{name}-network", NetworkSpec.declare(name=NETWORK, **common), after)
        drive = None
        if cluster.drive_gb:
            wanted = DriveSpec.declare(name=DRIVE, size_gb=cluster.drive_gb, network_id=network.id, **common)
            shared = SharedDrive(f"{name}-drive", wanted, after)
            facts_of_drive = pulumi.Output.all(shared.id, shared.address, shared.share, shared.username)
            drive = facts_of_drive.apply(lambda values: Drive(*values))
        nodes = [
            PreparedMachine(f"{name}-{host}", PreparedMachineArgs(args, host, network, drive), after)
            for host in stack.cluster.hostnames
        ]
        hosts = pulumi.Output.all(*(node.host for node in nodes))
        self.facts = pulumi.Output.all(hosts, drive).apply(
            lambda known: replace(args.facts, hosts=tuple(known[0]), drive=known[1])
        )
        self.price_per_hour, self.price_source = ledger.price_per_hour, ledger.price_source
        self.machine_ids = [node.machine.id for node in nodes]
        self.ready = [node.ready for node in nodes]
        if drive is not None:
            own = pulumi.ResourceOptions(parent=self, depends_on=self.ready)
            stdin = self.facts.apply(lambda facts: facts.to_json())
            self.ready = [step(f"{name}-compared", "compare-drive", stdin, self.machine_ids, own)]
        self.register_outputs({"pricePerHour": self.price_per_hour})


def machine_spec(args: PreparedMachineArgs) -> MachineSpec:
    """Return the order of one machine."""
    cluster, owner = args.cluster.stack.cluster, args.cluster.owner
    return MachineSpec.declare(
        mark=owner.mark,
        hostname=args.hostname,
        region=cluster.region,
        machine_type=cluster.machine_type,
        template_id=cluster.template,
        disk_gb=cluster.disk_gb,
        network_id=args.network.id,
        public_key=owner.public_key,
        public_ip_type=cluster.public_ip,
    )
