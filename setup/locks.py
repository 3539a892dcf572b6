"""One make at a time works on a stack."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from setup.environment import Home
from setup.errors import SetupError


@contextmanager
def alone_on(stack: str, verb: str, home: Home) -> Iterator[None]:
    """Hold the stack's lock; the kernel frees it when this process ends, however it does."""
    with (home.locks / f"{stack}.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            file.seek(0)
            raise SetupError(_sentence(stack, verb, file.read())) from held
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "verb": verb, "since": f"{datetime.now():%H:%M:%S}"}))
        file.flush()
        yield


def _sentence(stack: str, verb: str, holder: str) -> str:
    try:
        of = json.loads(holder)
        who = f"process {of['pid']} is doing `make {of['verb']}` on it since {of['since']}"
        way_out = f"Wait for it, or stop it with `kill -INT {of['pid']}`"
    except ValueError:
        who, way_out = "another make works on it", "Wait for it"
    return f"make {verb}: stack {stack} is busy: {who}. {way_out}, then repeat."
