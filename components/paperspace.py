"""A cluster at Paperspace: machines on one private network with a shared drive; the processes run on the machines."""

from dataclasses import dataclass

import pulumi

from components.cluster import Node, TrainingCluster, TrainingClusterArgs, completed, step
from microcluster.accounts.paperspace.declared import Ledger, Machine, PrivateNetwork, SharedDrive
from microcluster.accounts.paperspace.specs import DriveSpec, LedgerSpec, MachineSpec, NetworkSpec
from microcluster.jobs.cluster_facts import Drive

NETWORK, DRIVE = "private", "data"


@dataclass(frozen=True)
class PreparedMachineArgs:
    """The cluster of a machine, the machine's name and network, and the drive to mount, None without one."""

    cluster: TrainingClusterArgs
    hostname: str
    network: PrivateNetwork
    drive: pulumi.Output[Drive] | None


class PreparedMachine(Node):
    """A machine with its own firewall, logins by key and the mounted drive."""

    ready: pulumi.Resource
    """Step after which a job can start on the machine."""

    def __init__(self, name: str, args: PreparedMachineArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("PreparedMachine", name, opts)
        self.hold(Machine(f"{name}-machine", machine_spec(args), self.alone), args.hostname, args.cluster)
        alone = completed(self.facts, private_subnet=args.network.subnet)
        self.ready = self.step("prepared", "prepare-machine", alone)
        if args.drive is not None:
            mounted = completed(alone, drive=args.drive)
            drive_id = args.drive.apply(lambda drive: drive.id)
            self.ready = self.step("mounted", "mount-drive", mounted, drive_id, after=[self.ready])
        self.register_outputs({"machineId": self.machine.id, "privateAddress": self.machine.private_ip})


class Cluster(TrainingCluster):
    """Machines, their network and their drive."""

    def __init__(self, name: str, args: TrainingClusterArgs) -> None:
        super().__init__(name, args)
        cluster, child = args.stack.cluster, pulumi.ResourceOptions(parent=self)
        ledger = Ledger(f"{name}-ledger", LedgerSpec.declare(**args.whole_order), child)
        # Everything depends on the ledger: it checks the account before the first order, and is deleted last.
        after = pulumi.ResourceOptions(parent=self, depends_on=[ledger])
        common = {"mark": args.keys.owner.mark, "region": cluster.region, "keep": cluster.keep_drive}
        network = PrivateNetwork(f"{name}-network", NetworkSpec.declare(name=NETWORK, **common), after)
        drive = None
        if cluster.drive_gb:
            wanted = DriveSpec.declare(name=DRIVE, size_gb=cluster.drive_gb, network_id=network.id, **common)
            shared = SharedDrive(f"{name}-drive", wanted, after)
            known = pulumi.Output.all(shared.id, shared.address, shared.share, shared.username)
            drive = known.apply(lambda values: Drive(*values))
        nodes = [
            PreparedMachine(f"{name}-{host}", PreparedMachineArgs(args, host, network, drive), after)
            for host in cluster.hostnames
        ]
        self.hold(ledger, nodes)
        self.ready = [node.ready for node in nodes]
        if drive is not None:
            self.facts = completed(self.facts, drive=drive)
            own = pulumi.ResourceOptions(parent=self, depends_on=self.ready)
            self.ready = [step(f"{name}-compared", "compare-drive", self.facts, self.machine_ids, own)]
        # Not before: the steps on a rented machine would run again for it, and none of them reads it.
        self.facts = completed(self.facts, interface=network.subnet)
        self.register_outputs({"pricePerHour": self.price_per_hour})


def machine_spec(args: PreparedMachineArgs) -> MachineSpec:
    """Return the order of one machine."""
    cluster, keys = args.cluster.stack.cluster, args.cluster.keys
    return MachineSpec.declare(
        mark=keys.owner.mark,
        hostname=args.hostname,
        region=cluster.region,
        machine_type=cluster.machine_type,
        template_id=cluster.template,
        disk_gb=cluster.disk_gb,
        network_id=args.network.id,
        public_key=keys.public_key,
        public_ip_type=cluster.public_ip,
    )
