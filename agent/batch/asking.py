"""Ask the queue on this host."""

import subprocess

from agent.batch import commands

TIMEOUT_S = 60


def asked(words, accept_any=False):
    """Return what a command of the queue prints."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": "/"}
    child = subprocess.Popen(words, **options)
    output = child.communicate(timeout=TIMEOUT_S)[0].decode("utf-8", "replace")
    if not (accept_any or commands.is_answer(child.returncode)):
        raise OSError("{} ended with exit code {}: {}".format(words[0], child.returncode, output.strip()[-500:]))
    return output


def own(jobs, name):
    """Return the living jobs of that name; the mark in it makes it this stack's alone."""
    return [job for job in jobs if job.name == name and job.state in commands.LIVING]
