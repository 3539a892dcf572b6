"""Checkpoints as MXNet writes them after each epoch: ``model-0003.params``, beside the network in ``model-symbol.json``.

Every worker writes its own, the first one of the store under the prefix, the others under prefix-rank (``model-1-0003.params``). Which
worker the store takes for the first is not known before it starts, and after a synchronous epoch all have the same weights: so a
node's own file of any rank is as good as the first one's, and a run goes on from it under the name without a rank.
"""

import os
import re
import shutil
import struct

from agent.checkpoints import UNREADABLE, Checkpoints

SYMBOL, PARAMS = "-symbol.json", ".params"
LIST, ARRAY = 0x112, (0xF993FAC9, 0xF993FACA)
"""Marks of a file and of an array in it, in its second and third version (src/ndarray/ndarray.cc of apache/mxnet)."""
BYTES = {0: 4, 1: 8, 2: 2, 3: 1, 4: 4, 5: 1, 6: 8, 7: 1, 12: 2}
"""Of an element, by the number of its type."""
DENSE = 0


class Format(Checkpoints):
    """The checkpoints in a log folder."""

    def found(self):
        """Return [(epochs, name)], newest first, and of one epoch the lowest rank first."""
        pattern = re.compile(re.escape(self.options["prefix"]) + r"(?:-(\d{1,4}))?-(\d{4})" + re.escape(PARAMS))
        names = os.listdir(self.logdir) if os.path.isdir(self.logdir) else []
        matches = [match for match in map(pattern.fullmatch, names) if match]
        found = sorted((-int(one.group(2)), int(one.group(1) or 0), one.group(0)) for one in matches)
        return [(-epochs, name) for epochs, _, name in found]

    def files_of(self, name):
        return [name] if os.path.exists(self.path(name)) else []

    def shared_files(self, name):
        return [name for name in [symbol_of(name)] if os.path.exists(self.path(name))]

    def kinds_of(self, name):
        return {"params": [name]}

    def flaw_of(self, name):
        if not self.shared_files(name):
            return name + " lacks " + symbol_of(name)
        return flaw(self.path(name))

    def prepare(self, name):
        """Name the checkpoint as that of the first rank, and leave no network of another: each worker would load its own file."""
        prefix = self.options["prefix"]
        params, symbol = prefix + name[-len("-0000" + PARAMS) :], prefix + SYMBOL
        for source, target in ((name, params), (symbol_of(name), symbol)):
            if source != target:
                shutil.copyfile(self.path(source), self.path(target + ".new"))
                os.rename(self.path(target + ".new"), self.path(target))
        for other in os.listdir(self.logdir):
            if re.fullmatch(re.escape(prefix) + r"-\d{1,4}" + re.escape(SYMBOL), other):
                os.remove(self.path(other))
        return [params, symbol]


def symbol_of(name):
    """Return the file with the network of a checkpoint."""
    return name[: -len("-0000" + PARAMS)] + SYMBOL


def flaw(path):
    """Return why a file of arrays is not whole, or an empty text."""
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            end = end_of_arrays(file)
    except FileNotFoundError:
        return name + " is gone"
    except (struct.error, ValueError) as error:
        return "{} is torn: {}".format(name, error)
    return "" if end in (None, size) else "{} has {} bytes in place of {}".format(name, size, end)


def end_of_arrays(file):
    """Return where a file of arrays and their names has to end; None for one with sparse arrays, which nobody has measured."""
    mark, _, count = numbers(file, "<QQQ")
    if mark != LIST:
        raise ValueError("it does not begin as a file of arrays")
    for _ in range(count):
        if not pass_over_array(file):
            return None
    (names,) = numbers(file, "<Q")
    for _ in range(names):
        file.seek(numbers(file, "<Q")[0], os.SEEK_CUR)
    return file.tell()


def pass_over_array(file):
    """Move behind an array; return whether it is a dense one."""
    mark, kind = numbers(file, "<Ii")
    if mark not in ARRAY:
        raise ValueError("an array does not begin as one")
    if kind != DENSE:
        return False
    (dimensions,) = numbers(file, "<i")
    shape = numbers(file, "<{}q".format(max(dimensions, 0)))
    if dimensions > 0:
        _, _, element = numbers(file, "<iii")
        if element not in BYTES:
            raise ValueError("elements of the unknown type {}".format(element))
        length = BYTES[element]
        for one in shape:
            length *= one
        file.seek(length, os.SEEK_CUR)
    return True


def numbers(file, layout):
    """Read numbers; a file that ends before them is a struct.error."""
    return struct.unpack(layout, file.read(struct.calcsize(layout)))


def main(path):
    return UNREADABLE if flaw(path) else 0
