"""Print this node's address on a network card. Argument: the card."""

import os
import sys

from agent.node_facts import address_of


def main(interface):
    try:
        print(address_of(interface))
    except OSError:
        cards = ", ".join(sorted(name for name in os.listdir("/sys/class/net") if name != "lo"))
        sys.exit("there is no {} with an address; it has {}: set cluster.interface".format(interface, cards))
