"""How long `make up` takes, by its stages, and how long it is from `pulumi up` to the first training step.

It runs twice, in a home of its own. The second one follows a `make down`, so everything but the machines is warm.
"""

import json
import os
import re
import subprocess
import tempfile
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.product import Product, install

AIM_S = 60.0
"""From `pulumi up` to the first training step, beyond what the account itself takes."""
STAGE = re.compile(r"==> (\w+):")
LIMIT_S = 3600
Stages = dict[str, float]
"""Seconds of each stage of a `make up`, in order, and of all."""


def measure(console: Console) -> None:
    """Print the figures of a copy of the project, of which nothing is left."""
    with tempfile.TemporaryDirectory(prefix="microcluster-bench-") as folder:
        if os.environ.get("COLD"):
            os.environ["MICROCLUSTER_CACHE"] = f"{folder}/cache"
        product = install(Path(folder))
        try:
            up_twice(product, console)
        finally:
            product.run("make down DISCARD=1; .venv/bin/python -m emulator reset", 600)


def up_twice(product: Product, console: Console) -> None:
    """Go up, down and up again, and print the figures."""
    first, _ = timed_up(product)
    assert product.run("make down DISCARD=1").returncode == 0
    product.run(".venv/bin/python -m emulator start", 120)
    second, pulumi_began = timed_up(product)
    own, step = provisioning_s(product), first_step(product) - pulumi_began
    show_stages(console, first, second)
    console.print(
        f"from pulumi up to the first training step: {step:.0f} s; the account itself took {own:.0f} s of it,"
    )
    console.print(f"so {step - own:.0f} s are ours (aim: {AIM_S:.0f} s)")


def show_stages(console: Console, first: Stages, second: Stages) -> None:
    table = Table("stage", "first", "second")
    for stage in first:
        table.add_row(stage, f"{first[stage]:.0f} s", f"{second.get(stage, 0):.0f} s")
    console.print(table)


def timed_up(product: Product) -> tuple[Stages, float]:
    """Run `make up` and split it by the stages that it prints; return the moment at which Pulumi began, too."""
    began = time.time()
    starts: dict[str, float] = {}
    process = subprocess.Popen(
        ["make", "up"], cwd=product.folder, env=product.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = []
    for line in process.stdout or ():
        said.append(line)
        if found := STAGE.match(line):
            starts.setdefault(found[1], time.time())
    if process.wait(LIMIT_S):
        raise SystemExit("".join(said[-30:]) + "bench: `make up` failed, for the reason above.")
    ended = time.time()
    moments = [*starts.values(), ended]
    stages = {name: end - start for name, (start, end) in zip(starts, pairwise(moments), strict=True)}
    stages["in all"] = ended - began
    return stages, starts["pulumi"]


def first_step(product: Product) -> float:
    """Return the moment at which the first training step was logged."""
    run = product.outputs()["run"]
    text = product.plain(f"fab ssh --stack local gpu-0 -- cat /data/runs/{run}/progress.jsonl").stdout
    events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return next(event["t"] for event in events if event["event"] == "train")


def provisioning_s(product: Product) -> float:
    """Return how long the account itself took for the slowest guest, the start of its container included."""
    client = f"slcli -C {product.home}/emulator/softlayer.conf --format json call-api Account getVirtualGuests --mask createDate,provisionDate"
    guests = json.loads(product.plain(f"{client} 2>/dev/null").stdout)
    moment = datetime.fromisoformat
    return max((moment(guest["provisionDate"]) - moment(guest["createDate"])).total_seconds() for guest in guests)
