"""What has to hold on a real GPU, one check after another; writes $OUT/result.json anew after each, so that a cut-off says what was proved."""

import json
import os
import signal
import sys
import time
import traceback

import run_here
from ending import idle, out_of_memory, stall, stop
from gpu import ASKED, OUT, REST, NotHeld, asked, machine, memory_used, on_cuda, questions, speed
from training import make_corpus, nccl_refuses, one_rank, too_few, two_ranks

LIMIT_S, BEGAN = float(os.environ["LIMIT_S"]), time.monotonic()
CHECKS = {
    machine: 15, questions: 5, speed: 60, one_rank: 75, two_ranks: 90, stall: 80, idle: 70, out_of_memory: 30, stop: 35, too_few: 15, nccl_refuses: 35,
}  # fmt: skip
"""In the order of what they are worth, with the seconds that each is expected to take at most."""

OF_CUDA = (speed, nccl_refuses)
"""Checks that mean nothing on processors."""


def carried_out(check, needs_s):
    """Return the row of a check; one that would not end in time is not begun."""
    left_s, began = LIMIT_S - (time.monotonic() - BEGAN), time.monotonic()
    row = {"check": check.__name__, "proves": check.__doc__.split("\n")[0]}
    if check in OF_CUDA and not on_cuda():
        return {**row, "verdict": "not run", "found": "there is no CUDA here"}
    if left_s < needs_s:
        return {**row, "verdict": "not run", "found": f"{left_s:.0f} s are left, it needs {needs_s}"}
    try:
        return {**row, "verdict": "pass", "found": check(), "seconds": round(time.monotonic() - began, 1)}
    except NotHeld as sentence:
        return {**row, "verdict": "FAIL", "found": str(sentence), "seconds": round(time.monotonic() - began, 1)}
    except Exception:  # noqa: BLE001 - the next check may still hold
        return {
            **row,
            "verdict": "FAIL",
            "found": traceback.format_exc()[-1500:],
            "seconds": round(time.monotonic() - began, 1),
        }


def main(names):
    chosen = {check: needs_s for check, needs_s in CHECKS.items() if not names or check.__name__ in names}
    rows = []
    for check, needs_s in chosen.items():
        rows.append(carried_out(check, needs_s))
        known = {"card": asked(ASKED["list"])[1].strip(), "seconds": round(time.monotonic() - BEGAN, 1), "checks": rows}
        (OUT / "result.json").write_text(json.dumps(known, indent=1, default=str) + "\n")
        print(
            "{verdict:8} {check:14} {0:6} s  {1}".format(
                rows[-1].get("seconds", 0), json.dumps(rows[-1]["found"], default=str)[:700], **rows[-1]
            ),
            flush=True,
        )
    verdicts = [row["verdict"] for row in rows]
    print(f"{verdicts.count('pass')} passed, {verdicts.count('FAIL')} failed, {verdicts.count('not run')} skipped")
    return 1 if "FAIL" in verdicts else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that what a check has begun ends with it.
    os.environ["TORCH_PACKAGES"] = run_here.torch_packages()
    REST["mib"] = memory_used()
    make_corpus()
    sys.exit(main(sys.argv[1:]))
