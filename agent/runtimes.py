"""How the commands of a run start on its nodes: in the training container, or on the machine itself.

``runtime`` in the specification chooses one of the two, and nothing else of the agent knows which it is.
"""

import shlex

from agent.kill_run import RUN_VARIABLE

ENTER = 'cd "$0" && PATH="$1:$PATH" && export PATH && shift && exec "$@"'
"""Starts words in a folder, with the programs of an environment before those of the machine."""


def runtime_of(spec):
    """Return the runtime that a run's specification names."""
    return {"container": Container, "host": Host}[spec.runtime](spec)


class Container:
    """`docker exec`. From the launcher's container ssh reaches the others, and hands the run's mark on."""

    def __init__(self, spec):
        self.spec = spec

    def here(self, argv, marked):
        """Return the words that run ``argv`` on the launcher; what bears the run's mark ends with the run."""
        mark = ["-e", RUN_VARIABLE + "=" + self.spec.run] if marked else []
        return ["docker", "exec"] + mark + ["-i", "-w", self.spec.program_folder, self.spec.container] + list(argv)

    def beyond(self, address, argv, marked):
        """Return the words that, where ``here`` runs them, run ``argv`` on another node."""
        return self.spec.ssh + [address, line(argv)]


class Host:
    """The machine itself, with the run's own environment of Python first in the path."""

    def __init__(self, spec):
        self.spec = spec

    def here(self, argv, marked):
        mark = [RUN_VARIABLE + "=" + self.spec.run] if marked else ["-u", RUN_VARIABLE]
        enter = ["sh", "-c", ENTER, self.spec.program_folder, self.spec.environment + "/bin"]
        return ["env"] + mark + enter + list(argv)

    def beyond(self, address, argv, marked):
        return self.spec.ssh + [address, line(self.here(argv, marked))]


def line(argv):
    """Return words as the one line that ssh takes."""
    return " ".join(shlex.quote(word) for word in argv)
