"""Run a line of shell on a granted node, as ssh does elsewhere. Arguments: the run's folder, the node's address, the line."""

import os
import subprocess
import sys

from agent.batch import commands, grant

NO_SUCH_NODE = 255


def main(folder, address, *line):
    node = grant.read(folder).name_of(address)
    if node is None:
        sys.stderr.write(address + " is no node that the queue granted\n")
        return NO_SUCH_NODE
    words = commands.step(os.environ, node, " ".join(line))
    if not commands.notes_its_exit(os.environ):
        os.execvp(words[0], words)
    return noted(words)


def noted(words):
    """Run a step, hand on what it prints, and end with the code that its last line names."""
    child, code = subprocess.Popen(words, stdout=subprocess.PIPE), None
    mark = commands.EXIT_MARK.encode()
    for line in iter(child.stdout.readline, b""):
        before, found, after = line.partition(mark)
        sys.stdout.buffer.write(before if found else line)
        sys.stdout.buffer.flush()
        code = int(after) if found else code
    failed = child.wait()
    return NO_SUCH_NODE if code is None else code or failed
