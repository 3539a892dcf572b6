"""The rights of a machine's container on its host."""

import json
from pathlib import Path

from docker.types import LogConfig, Ulimit

# Enough for mounts, a nested Docker daemon and MPI. --privileged fails on hosts that lack a right themselves.
CAPABILITIES = ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE", "MKNOD", "NET_RAW", "DAC_READ_SEARCH", "IPC_LOCK", "SYS_NICE")
AF_NETLINK, NETLINK_NETFILTER, SOL_IP, IPT_SO_SET_REPLACE = 16, 12, 0, 64  # linux/{socket,netlink,in,ip_tables}.h
CAP_SYS_RESOURCE = 24  # linux/capability.h


def isolation(*, raises_limits: bool, filters_packets: bool) -> dict[str, object]:
    """The options of every machine; cores and memory are not limited.

    Args:
        raises_limits: whether this host may give more locked memory than it has itself, as NCCL's containers ask for.
        filters_packets: whether the machine's root may set rules of its own, as where no security group guards a machine.
    """
    return {
        "ulimits": [Ulimit(name="memlock", soft=-1, hard=-1)] if raises_limits else [],
        "cap_add": list(CAPABILITIES),
        "security_opt": [f"seccomp={json.dumps(_system_calls(filters_packets))}", "apparmor=unconfined"],
        "device_cgroup_rules": ["b 7:* rwm", "c *:* rwm"],
        "cgroupns": "private",
        "shm_size": "1g",
        "tmpfs": {"/run": "mode=755"},
        "dns": ["127.0.0.1"],  # Nothing answers there, so that no name is looked up outside.
        "log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
    }


def may_raise_limits(status: str = "/proc/self/status") -> bool:
    """Whether this host's root may raise limits; in some sandboxes it may not."""
    lines = dict(line.partition(":")[::2] for line in Path(status).read_text().splitlines())
    return bool(int(lines["CapEff"], 16) >> CAP_SYS_RESOURCE & 1)


def _system_calls(filters_packets: bool) -> dict[str, object]:
    """Without ``filters_packets`` block both ways to the kernel's packet filter: nftables' netlink family and the older option.

    A Docker daemon needs NET_ADMIN for containers on the machine's own network; with it alone the machine's root could
    lift its security groups.
    """
    refused = [
        _refuse("socket", {0: AF_NETLINK, 2: NETLINK_NETFILTER}),
        _refuse("setsockopt", {1: SOL_IP, 2: IPT_SO_SET_REPLACE}),
    ]
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [] if filters_packets else refused}


def _refuse(call: str, arguments: dict[int, int]) -> dict[str, object]:
    equal = [{"index": index, "value": value, "op": "SCMP_CMP_EQ"} for index, value in arguments.items()]
    return {"names": [call], "action": "SCMP_ACT_ERRNO", "args": equal}
