"""Runs as every rank before the training does and says where it is; Python 3.5, it travels alone.

Arguments: the interface between the ranks, the configuration that the ranks will read.
"""

import fcntl
import hashlib
import json
import os
import socket
import struct
import sys

SIOCGIFADDR = 0x8915


def address_of(interface):
    """Return the IPv4 address of a network card; there is an error where the card does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("256s", interface.encode()[:15])
        return socket.inet_ntoa(fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24])


def main(interface, config):
    with open(config, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    facts = {
        "rank": int(os.environ["OMPI_COMM_WORLD_RANK"]),
        "local_rank": int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]),
        "host": socket.gethostname(),
        "address": address_of(interface),
        "config": digest,
    }
    sys.stdout.write("microcluster-preflight " + json.dumps(facts, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
