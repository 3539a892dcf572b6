"""The run's specification: the one document that microcluster writes for the agent, as ``job.json`` in the run's folder.

FIELDS lists every key, for both sides: ``text`` writes only a whole document, ``read`` accepts only a whole one of this version.
"""

import json
import os
from types import SimpleNamespace
from typing import Any, Dict

from agent.machine import read_json
from agent.run import queue_nodes

VERSION = 9
"""Raised whenever a field changes; version 1 had none."""
EARLIER, LACKING = 8, {"sent_program": None, "setup": []}
"""A version that is still read, and what stands for the fields that it lacks."""
FILE = "job.json"
CHECKPOINT = "{microcluster:checkpoint}"
"""Placeholder in the argv of ``resume_processes``: the path of the checkpoint, a file or a folder. A program's own words hold other braces."""
STEP = "{microcluster:step}"
"""Placeholder of the checkpoint's step there."""
ATTEMPT = "{microcluster:attempt}"
"""In any process's argv: a word that is another one for each start of the run."""
PORT = "{microcluster:port}"
"""In any process's argv or environment: a free port of the first node, where the processes meet."""
LONGEST_METRIC = 80
"""Characters of a metric's name, all of which can be printed; a longer one is none."""
# Nanoseconds since 1970 are fewer; what has a larger number in its name is a file like any other.
LARGEST_STEP = 1 << 63
FIELDS = (
    "version",
    # What the run is.
    "run",
    "word",  # Of this training; the same configuration trained again has the same run and another word.
    "kind",
    "trainer",
    "max_steps",  # None where the program alone knows its end.
    "eval_steps",
    "print_steps",
    "mixed",
    # Where it runs.
    "addresses",
    "names",
    "slots",
    "ranks",  # Where each rank of the training is, by address.
    "interface",
    "ssh",  # The words before an address and a line.
    "runtime",
    "container",  # Of the runtime "container".
    "environment",  # Of the runtime "host": the folder of the programs that the run has made for itself,
    "make_environment",  # and what makes it, on the machine as it is.
    "setup",  # [line, script] of each line of job.setup, which the script runs once on its node.
    "imports",  # What looks for the script's own imports, by its interpreter; empty where it is no script.
    "program_folder",
    "sent_program",  # The folder on the launcher from which that is made, where it came from the operator's computer.
    "files",
    "image",
    "images",
    # What is started, each a list of the plan's `Process`, and what reads its log and its checkpoints.
    "processes",
    "resume_processes",
    "collective",
    "reader",
    "reader_options",
    "checkpoints",
    "checkpoint_options",
    "shared",  # Where the checkpoints lie, on a drive that every node mounts.
    "stop_order",
    "stop_grace_s",  # For a program that ends by itself once STOP_FILE is there.
    "artifacts",
    "metrics",  # Each the plan's `Metric`.
    "unit",  # What a step is.
    "result",  # The metric that a good run ends with.
    "exit_code_decides",  # Whether exit code 0 alone says that the run has finished.
    "keep",  # Patterns of what is fetched beside them, below the log folder and the program's folder.
    # What is expected; None for what nobody knows.
    "stall_s",
    "guard",  # When the program has to stop, in seconds since 1970, and after how many idle seconds.
    "predicted_s",
    "compute_s",
    "wire_bytes",
    "per_hour",
    "gpu",
    "gpu_memory_gb",
    "driver",
    "port_speed_mbps",
    "probe_port",
    "meeting_port",  # Of the first node: the first of those of which a free one becomes where all others look for it.
    "model_bytes",
    "disk_bytes",
    "preflight_skipped",
    "watch_every_s",
    "sample_every_s",
    # What the supervisor has made before the training.
    "data",  # The folder of the data; a program may bring its own.
    "stage",
)
PROCESSES = ("processes", "resume_processes", "collective")


RunDocument = SimpleNamespace
Process = SimpleNamespace


class SpecError(Exception):
    """The document is of another version or not whole; the argument is a sentence."""


def read(path: str) -> RunDocument:
    """Return the specification in a file as an object with an attribute for each field; a queue's nodes stand beside it."""
    with open(path) as file:
        try:
            return parse(json.loads(queue_nodes.filled(file.read(), os.path.dirname(path))), path)
        except ValueError as error:
            raise SpecError("reading {}: it is no JSON ({})".format(path, error)) from error


def is_queued(folder: str) -> bool:
    """Return whether a queue grants the nodes of a run."""
    return read_json(os.path.join(folder, FILE))["addresses"][0] == queue_nodes.placeholder(0)


def text(values: Dict[str, Any]) -> str:
    """Return the document with ``values``, which are all fields but the version."""
    document = dict(values, version=VERSION)
    parse(document, "the specification of run " + str(values.get("run")))
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def parse(document: Any, where: str) -> RunDocument:
    """Return a document as an object, or raise with everything that is wrong with it; ``where`` names it."""
    version = document.get("version", 1) if isinstance(document, dict) else None
    if version == EARLIER:
        document, version = dict(LACKING, **document), VERSION
    if version != VERSION:
        raise SpecError(
            "reading {}: another version of microcluster wrote it (format {}, and this one reads {}). Start the run again with "
            "this version (make up), or look at it with the other one".format(where, version, VERSION)
        )
    wrong = [key + ": missing" for key in sorted(set(FIELDS) - set(document))]
    wrong += [key + ": unknown key" for key in sorted(set(document) - set(FIELDS))]
    if wrong:
        raise SpecError("reading {}: {}".format(where, "; ".join(wrong)))
    found = SimpleNamespace(**document)
    for name in PROCESSES:
        setattr(found, name, [SimpleNamespace(**process) for process in document[name]])
    return found
