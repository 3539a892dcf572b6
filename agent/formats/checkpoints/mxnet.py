"""Checkpoints as MXNet writes them after each epoch: ``model-0003.params``, beside the network in ``model-symbol.json``.

Every worker writes its own, the first one of the store under the prefix, the others under prefix-rank (``model-1-0003.params``). Which
worker the store takes for the first is not known before it starts, and after a synchronous epoch all have the same weights: so a
node's own file of any rank is as good as the first one's, and a run goes on from it under the name without a rank.
"""

import os
import re
import shutil
import struct
from typing import List, Optional

from agent.formats.checkpoints.entries import Checkpoint
from agent.formats.checkpoints.log_folder import Checkpoints

CHECKPOINT = re.compile(r"model(?:-\d{1,4})?-(\d{4})\.params")
"""A rank, but of the first one, and the epochs."""
SYMBOL, OTHER_SYMBOL = "-symbol.json", re.compile(r"model-\d{1,4}-symbol\.json")
LIST = 0x112
"""The mark of a file of arrays (src/ndarray/ndarray.cc of apache/mxnet); its number of arrays stands behind it, and their names at the end."""
HEAD, LENGTH = struct.Struct("<QQQ"), struct.Struct("<Q")
NAMES_BYTES = 1 << 20
"""More than the names of the largest networks take."""


class Format(Checkpoints):
    """The checkpoints in a log folder."""

    def part_of(self, file: str) -> Optional[Checkpoint]:
        """Return (epochs, name) of the checkpoint that a file is, or None."""
        match = CHECKPOINT.fullmatch(file)
        return Checkpoint(int(match.group(1)), file) if match else None

    def kind_of(self, name: str, file: str) -> str:
        return "params"

    def shared_files(self, name: str) -> List[str]:
        return [name for name in [symbol_of(name)] if os.path.exists(self.path(name))]

    def flaw_of(self, name: str) -> str:
        """Return why it cannot be used: what ends with the names of all its arrays was written to its end."""
        if not self.shared_files(name):
            return name + " lacks " + symbol_of(name)
        with open(self.path(name), "rb") as file:
            mark, _, count = HEAD.unpack(file.read(HEAD.size).ljust(HEAD.size))
            file.seek(max(HEAD.size, os.fstat(file.fileno()).st_size - NAMES_BYTES))
            is_whole = mark == LIST and ends_with_names(file.read(), count)
        return "" if is_whole else name + " is torn: it does not end with the names of its arrays"

    def prepare(self, name: str) -> List[str]:
        """Name the checkpoint as that of the first rank, and leave no network of another: each worker would load its own file."""
        params, symbol = "model-" + name.rpartition("-")[2], "model" + SYMBOL
        for source, target in ((name, params), (symbol_of(name), symbol)):
            if source != target:
                shutil.copyfile(self.path(source), self.path(target + ".new"))
                os.rename(self.path(target + ".new"), self.path(target))
        for other in os.listdir(self.logdir):
            if OTHER_SYMBOL.fullmatch(other):
                os.remove(self.path(other))
        return [params, symbol]


def symbol_of(name: str) -> str:
    """Return the file with the network of a checkpoint."""
    return name.rpartition("-")[0] + SYMBOL


def ends_with_names(tail: bytes, count: int) -> bool:
    """Return whether bytes end with ``count`` names, each behind its length, and these behind their number."""
    for begin in re.finditer(b"(?=" + re.escape(LENGTH.pack(count)) + b")", tail):
        at, left = begin.start() + LENGTH.size, count
        while left and at + LENGTH.size <= len(tail):
            at += LENGTH.size + LENGTH.unpack_from(tail, at)[0]
            left -= 1
        if not left and at == len(tail):
            return True
    return False
