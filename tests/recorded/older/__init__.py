"""Rentals and runs of an older version, as they lay on a person's computer, in the account and on a launcher.

They were made by commit ebb9e95e with `fab setup` and `pulumi up` against emulated accounts without machines. A folder for each account:
the stack file, the home with Pulumi's state, journal, receipts and the guard's records, the emulated account's records, and the folder of
the run. `agent.tar.xz` is `git archive ebb9e95e agent`, which lay in each of these folders. All keys are made up.
"""

import json
import shutil
import sqlite3
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
STACK = "older"
ACCOUNTS = ("softlayer", "paperspace", "queue")
STATE = f"state/.pulumi/stacks/microcluster/{STACK}.json"
LATER_S = 2 * 3600.0
"""How long after its last record an account goes on, where this computer's clock shows an earlier time."""


def leave_home(account: str, home: Path, **names: str) -> None:
    """Write the files of a home; ``names`` are another run, disk or drive than those of the rental, or the account."""
    _leave(account, "home", home, {"HOME": str(home), **names})


def leave_run(account: str, folder: Path, **names: str) -> None:
    """Write a run's folder as it lay on its launcher, with its own agent."""
    _leave(account, "run", folder, names)
    with tarfile.open(HERE / "agent.tar.xz") as archive:
        archive.extractall(folder, filter="data")


def _leave(account: str, what: str, place: Path, names: Mapping[str, str]) -> None:
    known = {**json.loads((HERE / account / "names.json").read_text()), **names}
    for file in (HERE / account / what).rglob("*"):
        if file.is_file():
            there = place / filled(str(file.relative_to(HERE / account / what)), known)
            there.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            there.write_bytes(filled(file.read_bytes().decode("latin-1"), known).encode("latin-1"))
            there.chmod(0o600)


def filled(text: str, names: Mapping[str, str]) -> str:
    """Return a kept text as it was, with names for what stands in their place."""
    for name, meant in names.items():
        text = text.replace(f"@{name}@", meant)
    return text


def leave_account(account: str, folder: Path) -> None:
    """Write an emulated account's records; its clock goes on now."""
    text = filled(
        (HERE / account / "account.jsonl").read_text(), {"PRIVATE": "PRIVATE KEY"}
    )  # Here no scanner finds one.
    first, *lines = map(json.loads, text.splitlines())
    facts, now = first["facts"], time.time()
    facts |= {"clock_real0": str(now), "clock_virtual0": str(max(now, float(facts["clock_virtual0"]) + LATER_S))}
    folder.mkdir(mode=0o700, parents=True)
    database = sqlite3.connect(folder / "account.sqlite")
    with database:
        database.execute("create table facts (name text primary key, value text)")
        database.execute("create table records (kind text, id integer, body blob, primary key (kind, id))")
        database.executemany("insert into facts values (?, ?)", facts.items())
        rows = [(line["kind"], line["id"], json.dumps(line["record"]).encode()) for line in lines]
        database.executemany("insert into records values (?, ?, ?)", rows)
    database.close()


def leave_project(account: str, project: Path) -> None:
    """Write the stack file and the program beside it."""
    (project / "stacks").mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / account / f"Pulumi.{STACK}.yaml", project / "stacks")
    shutil.copytree(HERE / "program", project / "program")
