#!/usr/bin/python3
"""Plays systemd-run and systemctl as far as this project needs them; only root may change a unit, as on every Ubuntu.

A machine of the emulated account has no systemd. As there, a service begins without the caller's environment, and a transient
unit that lives or has failed keeps its name. What is enabled runs at the next boot; see box.
"""

import argparse
import os
import pathlib
import pwd
import subprocess
import sys

REFUSED = "Interactive authentication required."
UNITS = pathlib.Path("/run/systemd/transient")
INSTALLED = pathlib.Path("/etc/systemd/system")
WANTED = INSTALLED / "multi-user.target.wants"


def run(words):
    """Start a service and return at once."""
    options = argparse.ArgumentParser(prog="systemd-run", allow_abbrev=False)
    options.add_argument("--quiet", action="store_true")
    options.add_argument("--unit", required=True)
    options.add_argument("--uid", default="root")
    options.add_argument("--setenv", action="append", default=[])
    options.add_argument("command", nargs=argparse.REMAINDER)
    arguments = options.parse_args(words)
    failing = "Failed to start transient service unit: "
    if os.geteuid() != 0:
        sys.exit(failing + REFUSED)
    unit = UNITS / (arguments.unit.removesuffix(".service") + ".service")
    if unit.exists():
        sys.exit(f"{failing}Unit {unit.name} already exists.")
    user = pwd.getpwnam(arguments.uid)
    known = {"HOME": user.pw_dir, "LOGNAME": user.pw_name, "SHELL": user.pw_shell, "USER": user.pw_name}
    path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    environment = {**path, **known, **dict(each.split("=", 1) for each in arguments.setenv)}
    UNITS.mkdir(parents=True, exist_ok=True)
    unit.write_text("active\n")
    if os.fork():
        return
    os.setsid()
    with open(f"/var/log/{unit.name}.log", "ab") as log, open(os.devnull) as nothing:
        for number, file in enumerate(
            (nothing, log, log)
        ):  # Whoever waits for the end of our output must not wait for the service.
            os.dup2(file.fileno(), number)
        groups = os.getgrouplist(user.pw_name, user.pw_gid)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": groups}
        ended = subprocess.run(arguments.command, cwd="/", env=environment, check=False, **who)
    unit.write_text("failed\n") if ended.returncode else unit.unlink()


def control(words):
    """Forget a failed unit, or have one start at every boot."""
    command, *units = words
    if os.geteuid() != 0:
        sys.exit(f"Failed to {command}: {REFUSED}")
    if command == "reset-failed" and units:
        unit = UNITS / units[0]
        if not unit.exists():
            sys.exit(f"Failed to reset failed state of unit {unit.name}: Unit {unit.name} not loaded.")
        if unit.read_text() == "failed\n":
            unit.unlink()
    elif command == "enable" and units:
        unit = INSTALLED / units[0]
        if not unit.exists():
            sys.exit(f"Failed to enable unit: Unit file {unit.name} does not exist.")
        WANTED.mkdir(exist_ok=True)
        (WANTED / unit.name).unlink(missing_ok=True)
        (WANTED / unit.name).symlink_to(unit)
    elif command != "daemon-reload":
        sys.exit(f"The machines of the emulated account do not play `systemctl {' '.join(words)}`.")


if __name__ == "__main__":
    {"systemd-run": run, "systemctl": control}[os.path.basename(sys.argv[0])](sys.argv[1:])
