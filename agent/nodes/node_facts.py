"""Print what one node is and has as one JSON line, or its address alone.

Arguments: the interface between the ranks, the folder of the run, the folder of its data, the port that measuring needs,
the folder on a drive that all nodes mount, or nothing, the folder of the machine's terminals, the seconds that nvidia-smi may take, how
many GPUs are the run's, and what its program says of them in CUDA_VISIBLE_DEVICES. The interface is a network card's name, or the network that its address belongs to.
"""

import fcntl
import json
import os
import re
import socket
import struct
import time
from ipaddress import ip_address, ip_network
from typing import Any, Dict, List, MutableMapping, Optional, Sequence, Tuple

from agent.kill_run import TOO_SLOW, asked
from agent.machine import hash_of, try_lock, why_not_free, why_silent
from agent.nodes import activity
from agent.run.context import Run

SIOCGIFADDR = 0x8915
GPU_FIELDS = ("name", "memory.total", "driver_version", "utilization.gpu")
GPU_ARGV = ("nvidia-smi", "--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits")
# In a sample, while ranks keep the driver loaded; and where nobody may: 30 s were seen on eight GPUs (github.com/Azure/aks-gpu, pull 105).
NVIDIA_SMI_TIMEOUT_S, NVIDIA_SMI_LONGEST_S = 10, 45
# A file that every machine has and none shares: an nvidia-smi has locked it as long as it lives, also where it hangs in the kernel.
ONE_AT_A_TIME, HANGS = "/proc/version", "the nvidia-smi that was asked before hangs in the kernel"
# The inode of the machine's own PID namespace (PROC_PID_INIT_INO of linux/proc_ns.h): in a container's nvidia-smi names no process.
PROCESSES, ALL_PROCESSES = "/proc/self/ns/pid", 0xEFFFFFFC
NUMBER, READING = r"\d{1,9}\Z", r"\d{1,9}\Z|\[|N/A|ERR!"
FAULT = r"\[GPU requires reset\]|\[GPU is lost\]|\[Unknown Error\]|ERR!|\Z"
UNPRINTABLE, OWN_NUMBER = r"[^ -~\r\n]", r"(?<![\w-])\d{1,2}(?![\w-])"
MOST_LINES, LONGEST_LINE = 64, 300
NO_ADDRESS = "there is no {} with an address; it has {}: set cluster.interface"


def address_of(interface: str) -> str:
    """Return the IPv4 address of a network card; there is an error where the card does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("256s", interface.encode()[:15])
        return socket.inet_ntoa(fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24])


def interfaces() -> List[str]:
    return sorted(name for name in os.listdir("/sys/class/net") if name != "lo")


def address_or_none(interface: str) -> Optional[str]:
    try:
        return address_of(interface)
    except OSError:
        return None


def card_of(interface: str) -> str:
    """Return the name of a network card that may be given by its network; what was given where there is none."""
    addresses = [(name, address_or_none(name)) for name in interfaces()] if "/" in interface else []
    return next(
        (name for name, at in addresses if at and ip_address(at) in ip_network(interface, strict=False)), interface
    )


def name_cards(environment: MutableMapping[str, str]) -> None:
    """Put this machine's network card where NCCL, gloo or TensorPipe are told a network."""
    for name in [name for name in environment if name.endswith("_SOCKET_IFNAME")]:
        environment[name] = re.sub("[^=].*", lambda given: card_of(given.group()), environment[name])


def gpu_facts(limit_s: float = NVIDIA_SMI_TIMEOUT_S, slots: int = MOST_LINES, visible: str = "") -> Dict[str, Any]:
    """Return what nvidia-smi says of the run's own GPUs: those that its program or the queue makes visible, else the first ones.

    Without persistence mode a GPU at rest shows up to 99 % while it is asked.
    """
    deadline, visible = time.monotonic() + limit_s, visible or os.environ.get("CUDA_VISIBLE_DEVICES", "")
    found = read_gpus(*ask_alone(GPU_ARGV, deadline))
    numbers = map(int, re.findall(OWN_NUMBER, visible)) if visible else range(slots)
    found["gpus"] = [found["gpus"][number] for number in numbers if number < len(found["gpus"])] or found["gpus"]
    shows_work = any(gpu["utilisation"] for gpu in found["gpus"]) and os.stat(PROCESSES).st_ino == ALL_PROCESSES
    if shows_work and ask_alone((GPU_ARGV[0], "--query-compute-apps=pid", GPU_ARGV[2]), deadline) == (0, ""):
        found["gpus"] = [dict(gpu, utilisation=gpu["utilisation"] and 0) for gpu in found["gpus"]]
    return found


def ask_alone(argv: Sequence[str], deadline: float) -> Tuple[int, str]:
    """Return (exit code, output) of nvidia-smi; one that hangs in the kernel is left behind, and until it ends no other is started."""
    lock = try_lock(ONE_AT_A_TIME, deadline - time.monotonic(), mode="r")
    if lock is None:
        return TOO_SLOW, HANGS
    with lock:
        return asked(argv, max(1, round(deadline - time.monotonic())), pass_fds=(lock.fileno(),))


def read_gpus(code: int, output: str) -> Dict[str, Any]:
    """Return what an answer to GPU_ARGV says: a row for each GPU, the tool's words that are no row, and its exit code.

    A number that a GPU does not say is None, and ``fault`` its word for why it cannot be used.
    """
    printed = re.sub(UNPRINTABLE, "?", output).splitlines()[:MOST_LINES]
    lines = [line[:LONGEST_LINE].split(", ") for line in printed]
    rows = [words for words in lines if len(words) == len(GPU_FIELDS) and re.match(READING, words[1])]
    others = " ".join(", ".join(words) for words in lines if words not in rows).split()
    gpus = [
        {
            "name": name,
            "memory_mib": int(memory) if re.match(NUMBER, memory) else None,
            "driver": driver,
            "utilisation": int(used) if re.match(NUMBER, used) else None,
            "fault": re.search(FAULT, ", ".join((name, memory, driver, used))).group(),
        }
        for name, memory, driver, used in rows
    ]
    return {"gpus": gpus, "gpu_words": " ".join(others)[:LONGEST_LINE], "gpu_code": code}


def free_bytes(path: str) -> int:
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def traffic(interface: str) -> Dict[str, int]:
    """Return how many bytes a network card has received and sent since the machine started."""
    counts = {}
    for name in ("rx_bytes", "tx_bytes"):
        path = os.path.join("/sys/class/net", interface, "statistics", name)
        if os.path.exists(path):
            with open(path) as file:
                counts[name] = int(file.read())
    return counts


def argv_of(run: Run, limit_s: float = NVIDIA_SMI_TIMEOUT_S) -> List[str]:
    """Return the words that print the facts of a node of a run; ``limit_s`` is nvidia-smi's."""
    known = run.spec
    words = [
        known.machines.interface,
        run.folder,
        known.data.folder or "",
        str(known.machines.probe_port),
        known.checkpoints.shared or "",
    ]
    visible = [one.environment.get("CUDA_VISIBLE_DEVICES", "") for one in known.program.processes] + [""]
    words += [run.runtime.terminals, str(limit_s), str(known.machines.slots), visible[0]]
    return run.program("nodes.node_facts", *words)


def main(interface: str, *where: str) -> int:
    """Print the facts, or where nothing but the card is named its address alone."""
    interface = card_of(interface)
    address = address_or_none(interface)
    if not where:
        print(address or NO_ADDRESS.format(interface, ", ".join(interfaces())))
        return 0 if address else 1
    folder, data, port, shared, terminals, limit_s, slots, visible = where
    sums = hash_of(os.path.join(data, "SHA256SUMS")) if data else None
    facts = {
        "address": address,
        "interfaces": interfaces(),
        "free_bytes": free_bytes(folder),
        "shm_free_bytes": free_bytes("/dev/shm"),
        "data": sums and sums[:12],
        "port": why_not_free(address, int(port)) if address else "",
        "drive": why_silent(shared) if shared else "",
        "time": time.time(),
        "activity": activity.reading(terminals),
    }
    facts.update(gpu_facts(int(limit_s), int(slots), visible))
    facts.update(traffic(interface))
    print(json.dumps(facts, sort_keys=True))
    return 0
