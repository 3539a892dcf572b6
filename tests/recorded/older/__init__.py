"""Rentals and runs of an older version, as they lay on a person's computer, in the account and on a launcher.

They were made by commit ebb9e95e with `fab setup` and `pulumi up` against emulated accounts without machines. A folder for each account:
the stack file, the home with Pulumi's state, journal, receipts and the guard's records, the emulated account's records, and the folder of
the run. `agent.tar.xz` is `git archive ebb9e95e agent`, which lay in each of these folders. All keys are made up.
"""

import json
import shutil
import sqlite3
import time
from pathlib import Path

HERE = Path(__file__).parent
STACK = "older"
ACCOUNTS = ("softlayer", "paperspace", "queue")
STATE = f"state/.pulumi/stacks/microcluster/{STACK}.json"
LATER_S = 2 * 3600.0
"""How long after its last record an account goes on, where this computer's clock shows an earlier time."""


def leave_home(account: str, home: Path, account_id: str = "") -> None:
    """Write the files of a home, in which paths begin with where it is."""
    for file in (HERE / account / "home").rglob("*"):
        if file.is_file():
            there = home / filled(str(file.relative_to(HERE / account / "home")), home, account_id)
            there.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            there.write_text(filled(file.read_text(), home, account_id))
            there.chmod(0o600)


def filled(text: str, home: Path, account_id: str) -> str:
    """Return a kept text as it was: with paths, the account's id, and a word that no scanner for secrets is to find here."""
    known = {"@HOME@": str(home), "@ACCOUNT@": account_id, "@PRIVATE@": "PRIVATE KEY"}
    for kept, meant in known.items():
        text = text.replace(kept, meant)
    return text


def leave_account(account: str, folder: Path) -> None:
    """Write an emulated account's records; its clock goes on now."""
    text = filled((HERE / account / "account.jsonl").read_text(), folder, "")
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
