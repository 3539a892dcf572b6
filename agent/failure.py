"""How a run ends badly, and how it is asked to end."""

from agent import health_rules


class Failed(Exception):
    """A phase ended badly; the arguments are the cause in a word, a sentence, the exit code and the lines that matter."""


class Stopped(BaseException):
    """Somebody asked the run to stop, and ends its processes on every machine himself; no handler of failures may hold it up."""


def explained(error):
    """Return an error of our own as a failure."""
    if health_rules.is_full(error):
        return {
            "cause": health_rules.DISK_FULL,
            "sentence": "no space is left on the launcher's data disk",
            "lines": [],
        }
    return {"cause": "supervisor-failed", "sentence": "the supervisor failed: " + repr(error), "lines": []}
