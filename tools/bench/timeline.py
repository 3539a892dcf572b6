"""What happened when in one `make up`: its stages, the account's provisioning and the first training step."""

import json
import re
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime

from tools.product import Product

STAGE = re.compile(r"==> (\w+):")
LIMIT_S = 3600


@dataclass(frozen=True)
class Up:
    """One `make up`; moments are seconds since the epoch."""

    stages: dict[str, float]
    """Seconds of each stage, in order."""
    pulumi_began: float
    total_s: float


def timed_up(product: Product) -> Up:
    """Run `make up` and split it by the stages that it prints."""
    began = time.time()
    marks: list[tuple[str, float]] = []
    process = subprocess.Popen(
        ["make", "up"], cwd=product.folder, env=product.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    said = []
    for line in process.stdout or ():
        said.append(line)
        if found := STAGE.match(line):
            marks.append((found[1], time.time()))
    if process.wait(LIMIT_S):
        raise SystemExit("".join(said[-30:]) + "bench: `make up` failed, for the reason above.")
    ends = [moment for _, moment in marks[1:]] + [time.time()]
    stages = {name: end - moment for (name, moment), end in zip(marks, ends, strict=True)}
    return Up(stages, dict(marks)["pulumi"], time.time() - began)


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
    spans = [_moment(guest["provisionDate"]) - _moment(guest["createDate"]) for guest in guests]
    return max(spans)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
