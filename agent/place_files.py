"""Write the files of a run's folder, each atomically and only where it differs.

Argument: the folder. Standard input: [[name, text], ...] as JSON, in the order in which they appear.
"""

import json
import os
import sys
from typing import Iterable, Tuple


def place(folder: str, files: Iterable[Tuple[str, str]]) -> None:
    # Where there is such a link the program writes elsewhere.
    if not os.path.islink(os.path.join(folder, "in_container")):
        os.makedirs(os.path.join(folder, "logdir"), exist_ok=True)
    for name, text in files:
        path, content = os.path.join(folder, name), text.encode("utf-8")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            with open(path, "rb") as file:
                if file.read() == content:
                    continue
        with open(path + ".new", "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)


if __name__ == "__main__":
    place(sys.argv[1], json.loads(sys.stdin.buffer.read().decode("utf-8")))
