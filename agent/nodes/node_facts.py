"""Print what one node is and has as one JSON line, or its address alone.

Arguments: the interface between the ranks, the folder of the run, the folder of its data, the port that measuring needs,
the folder on a drive that all nodes mount, or nothing, and the folder of the machine's terminals.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import time

from agent.machine import hash_of, why_silent
from agent.nodes import activity

SIOCGIFADDR = 0x8915
GPU_FIELDS = ("name", "memory.total", "driver_version", "utilization.gpu")
NVIDIA_SMI_TIMEOUT_S = 15
NO_ADDRESS = "there is no {} with an address; it has {}: set cluster.interface"


def address_of(interface):
    """Return the IPv4 address of a network card; there is an error where the card does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("256s", interface.encode()[:15])
        return socket.inet_ntoa(fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24])


def interfaces():
    return sorted(name for name in os.listdir("/sys/class/net") if name != "lo")


def print_address(interface):
    """Print the address of a network card; return what to end with."""
    address = address_or_none(interface)
    print(address or NO_ADDRESS.format(interface, ", ".join(interfaces())))
    return 0 if address else 1


def address_or_none(interface):
    try:
        return address_of(interface)
    except OSError:
        return None


def gpus():
    """Return what nvidia-smi says of each GPU; nothing where there is none of it."""
    argv = ["nvidia-smi", "--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits"]
    try:
        out = subprocess.check_output(argv, timeout=NVIDIA_SMI_TIMEOUT_S).decode()
    except (OSError, subprocess.SubprocessError):
        return []
    return [gpu(line.split(", ")) for line in out.splitlines() if line.strip()]


def gpu(words):
    name, memory, driver, used = words
    utilisation = int(used) if used.isdigit() else None  # Some drivers say "[Not Supported]".
    memory_mib = int(memory) if memory.isdigit() else 0  # A GPU that has failed says "[Unknown Error]".
    return {"name": name, "memory_mib": memory_mib, "driver": driver, "utilisation": utilisation}


def free_bytes(path):
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def why_not_free(address, port):
    """Return why nobody could listen there, or an empty text."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return os.strerror(error.errno)
    return ""


def traffic(interface):
    """Return how many bytes a network card has received and sent since the machine started."""
    counts = {}
    for name in ("rx_bytes", "tx_bytes"):
        path = os.path.join("/sys/class/net", interface, "statistics", name)
        if os.path.exists(path):
            with open(path) as file:
                counts[name] = int(file.read())
    return counts


def argv_of(run):
    """Return the words that print the facts of a node of a run."""
    known = run.spec
    words = [known.interface, run.folder, known.data or "", str(known.probe_port), known.shared or ""]
    return run.program("nodes.node_facts", *(words + [run.runtime.terminals]))


def main(interface, *where):
    """Print the facts, or where nothing but the card is named its address alone."""
    if not where:
        return print_address(interface)
    folder, data, port, shared, terminals = where
    address, sums = address_or_none(interface), hash_of(os.path.join(data, "SHA256SUMS")) if data else None
    facts = {
        "address": address,
        "interfaces": interfaces(),
        "gpus": gpus(),
        "free_bytes": free_bytes(folder),
        "shm_free_bytes": free_bytes("/dev/shm"),
        "data": sums and sums[:12],
        "port": why_not_free(address, int(port)) if address else "",
        "drive": why_silent(shared) if shared else "",
        "time": time.time(),
        "activity": activity.reading(terminals),
    }
    facts.update(traffic(interface))
    print(json.dumps(facts, sort_keys=True))
    return 0
