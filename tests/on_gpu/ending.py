"""Checks of how a run ends: silent, idle, out of memory, stopped; and of who holds the card then."""

import os
import time

from gpu import ASKED, HERE, asked, free_again, gpus, hold, holders, memory_used, moving, on_cuda, short_name
from run_here import RunHere, sources

SLACK_S = 15
"""A sample every 5 s in a run's first two minutes, a look every 5 s, and TERM."""


def load(words, **keys):
    fake = {"environment": {"FAKE_BUSY": os.environ["FAKE_BUSY"]}} if "FAKE_BUSY" in os.environ else {}
    return {"kind": "command", "command": f"python load.py {words}", **fake, **keys}


def ended_after(run):
    """Return the seconds between a run's last step and its end."""
    events = run.events()
    last = max((event["t"] for event in events if event["event"] == "train"), default=0)
    return next((event["t"] for event in reversed(events) if event["event"] == "end"), time.time()) - last


def stall():
    """Silent while the GPU works: it goes on. Silent while the GPU rests: it is ended, by the GPU's reading alone."""
    busy_s, stall_s = 35, 15
    run = RunHere(load(f"steps:5 busy:{busy_s} idle:600", stallS=stall_s), sources(HERE / "programs"), gpu=short_name())
    try:
        found = run.start().wait(lambda _: False, 150)
        silent_s = ended_after(run)
        hold(found.cause == "stalled", f"{found.state}: {found.cause}: {found.reason}")
        hold(silent_s >= busy_s + stall_s - 6, f"it was ended after {silent_s:.0f} s of silence, while the GPU worked")
        hold(silent_s <= busy_s + stall_s + SLACK_S, f"it was ended only after {silent_s:.0f} s of silence")
        free_again()
        return {"silent_s": round(silent_s), "busy_s": busy_s, "stall_s": stall_s, "reason": found.reason}
    finally:
        run.end()


def idle():
    """The guard counts no idle second while only the GPU works, and stops the run when nothing does."""
    busy_s, idle_s = 25, 20
    run = RunHere(
        load(f"steps:3 busy:{busy_s} idle:600", stallS=3600),
        sources(HERE / "programs"),
        gpu=short_name(),
        idle_s=idle_s,
    )
    try:
        found = run.start().wait(lambda _: False, 150)
        silent_s = ended_after(run)
        hold(
            found.cause == "idle",
            f"{found.state}: {found.cause}: {found.reason}; idle_s {found.idle_s}; beside the run moves {moving()}",
        )
        hold(silent_s >= busy_s + idle_s - 6, f"it was stopped after {silent_s:.0f} s, while the GPU worked")
        hold(silent_s <= busy_s + idle_s + SLACK_S, f"it was stopped only after {silent_s:.0f} s")
        return {"silent_s": round(silent_s), "reason": found.reason}
    finally:
        run.end()


def out_of_memory():
    """A program that takes more memory than the GPU has: the run says so, and shows the framework's own words."""
    run = RunHere(load("steps:2 oom"), sources(HERE / "programs"), gpu=short_name())
    try:
        found = run.start().wait(lambda _: False, 90)
        lines = run.failure().get("lines", [])
        hold(found.cause == "gpu-memory", f"{found.state}: {found.cause}: {found.reason}")
        hold(any("out of memory" in line for line in lines), f"its last lines do not say it: {lines[-3:]}")
        free_again()
        return {
            "reason": found.reason,
            "line": [line for line in lines if "out of memory" in line][-1][:300],
            "hint": run.hint(),
        }
    finally:
        run.end()


def stop():
    """`fab stop` ends a program that computes, and the driver shows no process and no memory of it any more."""
    before = memory_used()
    run = RunHere(load("memory:8 steps:3 busy:600", stallS=3600), sources(HERE / "programs"), gpu=short_name())
    try:
        run.start().wait(lambda seen: (seen.step or 0) >= 3, 60)
        time.sleep(5)
        pids, held, taken = set(run.ranks("load.py").values()), holders(), memory_used()
        under_load = asked(ASKED["the agent's"])
        hold(
            not on_cuda() or taken - before > 8000, f"the program shows no memory of its own: {before} and {taken} MiB"
        )
        hold(not on_cuda() or gpus()[0]["utilisation"] > 5, f"a GPU at work shows {under_load}")
        began = time.monotonic()
        ended = run.end()
        stop_s = time.monotonic() - began
        hold(ended["left"] == [] and ended["ended"] >= 2, f"ended: {ended}")
        free_s = free_again(before)
        return {
            "shown_by_driver": bool(pids & set(held)),
            "stop_s": round(stop_s, 1),
            "free_after_s": free_s,
            "asks_s": under_load[2],
            "ended": ended,
            "mib": [before, taken, memory_used()],
        }
    finally:
        run.end()
