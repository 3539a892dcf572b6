"""Signs that something happens on a node, beside its GPUs: use of processors and network, and keystrokes.

Each reading is a counter, so that two of them say what happened in between.
"""

import contextlib
import os
import re
import socket
import struct
from typing import Any, Dict, Iterator, List, Optional, Tuple

SSH_PORT = 22
INNER_CARD = re.compile(r"lo$|docker|veth|br-")
"""Cards whose bytes have passed another card, or never leave the machine."""
SOCK_DIAG, BY_FAMILY, DUMP, ESTABLISHED = 4, 20, 0x301, 1
TCP_INFO, BYTES_ACKED_AT = 2, 120
"""linux/sock_diag.h, linux/inet_diag.h and `struct tcp_info` of linux/tcp.h; Linux 4.1 and newer count the bytes."""
HEADER, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
ENDS, MESSAGE_BYTES = slice(4, 52), 72
"""Of a message: what tells connections apart, which begins with the local port, and the whole of it."""
READ_BYTES, TIMEOUT_S = 1 << 16, 5


def reading(terminals: str, proc: str = "/proc") -> Optional[Dict[str, Any]]:
    """Return all readings of this node; None where one of them cannot be read, which may keep nobody from saying how else it is."""
    with contextlib.suppress(OSError, ValueError, IndexError, struct.error):
        return {
            "processors": processors(os.path.join(proc, "stat")),
            "network": network(os.path.join(proc, "net", "dev")),
            "typed": typed(terminals),
        }
    return None


def processors(path: str) -> List[int]:
    """Return [ticks at work, all ticks, number] of the processors."""
    with open(path) as file:
        lines = file.read().splitlines()
    # user nice system idle iowait irq softirq steal; what guests use is counted in the first two.
    ticks = [int(word) for word in lines[0].split()[1:9]]
    number = sum(re.match(r"cpu\d", line) is not None for line in lines)
    return [sum(ticks) - ticks[3] - ticks[4], sum(ticks), number]


def network(path: str) -> Dict[str, Any]:
    """Return {cards: bytes in and out, ssh: {connection: bytes sent}}; our own commands read their answers over ssh.

    What somebody sends here over ssh is not subtracted: it may be a person's data.
    """
    with open(path) as file:
        rows = [line.split(":", 1) for line in file if ":" in line]
    counts = [words.split() for name, words in rows if not INNER_CARD.match(name.strip())]
    return {"cards": sum(int(words[0]) + int(words[8]) for words in counts), "ssh": sent_from(SSH_PORT)}


def sent_from(port: int) -> Dict[str, int]:
    """Return {connection: bytes that have arrived at its other end} of the open connections of a port; none where Linux does not say."""
    found = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            for message in connections(family):
                ends, info = message[ENDS], dict(parts(message[MESSAGE_BYTES:], ATTRIBUTE)).get(TCP_INFO, b"")
                if int.from_bytes(ends[:2], "big") == port and len(info) >= BYTES_ACKED_AT + 8:
                    found[ends.hex()] = struct.unpack_from("=Q", info, BYTES_ACKED_AT)[0]
    return found


def connections(family: int) -> Iterator[bytes]:
    """Yield what Linux says of each established TCP connection."""
    request = struct.pack("=4BI48x", family, socket.IPPROTO_TCP, 1 << TCP_INFO - 1, 0, 1 << ESTABLISHED)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.send(HEADER.pack(HEADER.size + len(request), BY_FAMILY, DUMP, 0, 0) + request)
        while True:
            for kind, message in parts(asking.recv(READ_BYTES), HEADER):
                if kind != BY_FAMILY:  # The end, or a refusal.
                    return
                yield message


def parts(given: bytes, header: struct.Struct) -> Iterator[Tuple[int, bytes]]:
    """Yield (kind, content) of each part: its header begins with length and kind, and it is filled up to four bytes."""
    at = 0
    while at + header.size <= len(given):
        length, kind = header.unpack_from(given, at)[:2]
        yield kind, given[at + header.size : at + length]
        at += max(length + -length % 4, header.size)


def typed(folder: str) -> float:
    """Return when a key was last pressed in a terminal, by the machine's clock; 0 where there is none.

    Only a person's login has a terminal: our own commands ask for none, and a login without a keystroke changes nothing.
    """
    os.stat(os.path.join(folder, "ptmx"))  # It is not in the folder that a container was to see them in.
    found = [0.0]
    for name in filter(str.isdigit, os.listdir(folder)):
        with contextlib.suppress(FileNotFoundError):  # Its person has just left.
            found.append(os.stat(os.path.join(folder, name)).st_atime)
    return max(found)
