"""Start a program of a run so that it outlives the connection: as a unit of systemd, or in a session of its own."""

import os
import pwd
import subprocess
from typing import IO, Dict, List

from agent.kill_run import RUN_VARIABLE

SYSTEMD = "/run/systemd/system"


def detach(folder: str, argv: List[str], unmarked: str = "") -> str:
    """Start ``argv`` with the run's mark, or without it and with this word in its name; return where its words are."""
    run, said_in = os.path.basename(folder), os.path.join(folder, "supervisor.log")
    unit, mark = "microcluster-" + run + unmarked, {} if unmarked else {RUN_VARIABLE: run}
    with open(said_in, "ab") as log:
        if os.path.isdir(SYSTEMD) and started_as_unit(unit, argv, mark, log):
            return "journalctl -u " + unit
        environment = dict(pair for pair in os.environ.items() if pair[0] != RUN_VARIABLE)
        options = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "start_new_session": True}
        subprocess.Popen(argv, env=dict(environment, **mark), cwd="/", **options)
    return said_in


def started_as_unit(unit: str, argv: List[str], environment: Dict[str, str], log: IO[bytes]) -> bool:
    """Return whether systemd has started ``argv``; it does so for root, and for the others whom sudo takes for root."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    root, as_user = ([], []) if os.geteuid() == 0 else (["sudo", "-n"], ["--uid=" + user])
    given = ["--setenv=" + name + "=" + value for name, value in environment.items()]
    words = ["systemd-run", "--quiet", "--unit=" + unit] + as_user + given
    streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
    try:
        # An earlier attempt that failed keeps the name; --collect would free it, but Ubuntu 16.04's systemd does not know it.
        subprocess.call(root + ["systemctl", "reset-failed", unit + ".service"], **streams)
        return subprocess.call(root + words + argv, **streams) == 0
    except OSError:  # No such program.
        return False
