"""Has the data of a run on the launcher: its own, else those of a machine that has them whole, else made anew.

Python 3.5, it travels to the launcher.
"""

from at_once import at_once

ASK_TIMEOUT_S = 600
"""Comparing 2 GB with their sums takes seconds, on a busy disk minutes."""
SAID = "staging: "
TRIES = 2


def ensure(run):
    """Return (what was done, exit code, last lines) of the first step that failed, or None with whole data."""
    if is_whole(run) or brought(run):
        return None
    run.tell({"event": "staging", "text": "no machine has the data; making them"})
    lines = []
    code = stage(run, lines)
    if code:
        return "preparing the data set", code, lines[-20:]
    return None if is_whole(run) else ("comparing the data that were made with their sums", 1, lines[-20:])


def is_whole(run):
    return run.ask(run.job["data"] + ["whole"], ASK_TIMEOUT_S)[0] == 0


def brought(run):
    """Return whether another machine had the data whole and they are here now, as on a launcher that was replaced."""
    others = run.job["addresses"][1:]
    lacking = at_once(lambda address: run.ask(run.job["data"] + ["has", address], ASK_TIMEOUT_S)[0], others)
    for address in [one for one, code in zip(others, lacking) if code == 0]:
        name = run.name_of(address)
        for _ in range(TRIES):
            note(run, "bringing the data from " + name + ", which has them whole")
            code = run.in_container(run.job["data"] + ["bring", address])
            if code == 0 and is_whole(run):
                note(run, "the data of " + name + " are here")
                return True
            note(run, "the data of " + name + " arrived with other bytes")
    return False


def stage(run, lines):
    """Make the data in a container of their own, which is gone afterwards; return the exit code."""

    def heard(line):
        lines.append(line)
        if line.startswith(SAID):
            run.tell({"event": "staging", "text": line[len(SAID) :]})

    run.on_host(run.job["unstage"])  # A killed launcher may have left one.
    try:
        return run.on_host(run.job["stage"], heard)
    finally:
        run.on_host(run.job["unstage"])


def note(run, text):
    """Say it in the log and where the run's progress is shown."""
    run.log.write((SAID + text + "\n").encode("utf-8"))
    run.tell({"event": "staging", "text": text})
