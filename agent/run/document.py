"""The run document: everything that is decided about a run, as one typed value and as ``job.json`` in the run's folder.

A job kind makes it, the agent reads it as it is: ``text`` writes a document, ``read`` accepts only a whole one of this version or one
of an earlier version, which had no parts.
"""

import json
import os
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from agent.machine import read_json
from agent.run import queue_nodes

VERSION = 10
"""Format of the document, raised whenever a field changes; version 1 had no number."""
EARLIER = (8, 9)
"""Versions without parts that are still read."""
LACKING = {
    "folder": "",
    "title": "",
    "secrets": [],
    "secrets_folder": "",
    "sent_program": None,
    "setup": [],
    "not_shown": [],
    "checkpoint_files": "",
    "warmup_steps": 0,
    "schedule": "",
}
"""Values of fields that a document of an earlier version lacks."""
FILE = "job.json"
CHECKPOINT = "{microcluster:checkpoint}"
"""Placeholder in the argv of ``resume_processes``: the path of the checkpoint, a file or a folder. A program's own words hold other braces."""
STEP = "{microcluster:step}"
"""Placeholder in the argv of ``resume_processes``: the checkpoint's step."""
ATTEMPT = "{microcluster:attempt}"
"""Placeholder in any argv: a word that is another one for each start of the run."""
PORT = "{microcluster:port}"
"""Placeholder in any argv or environment: a free port of the first node, where the processes meet."""
NO_CHECKPOINTS = "none"
"""Format of a program that writes no checkpoints: a run that ends early starts over."""
LONGEST_METRIC = 80
"""Characters of a metric's name, all of which can be printed; a longer one is none."""
# Nanoseconds since 1970 are fewer; what has a larger number in its name is a file like any other.
LARGEST_STEP = 1 << 63

Process = NamedTuple(
    "Process",
    [
        ("role", str),
        ("node", int),  # Number of the node that starts it, in rank order.
        ("argv", Sequence[str]),
        ("environment", Dict[str, str]),
        ("order", int),  # A lower one starts first.
        ("ends_run", bool),  # Whether the run ends when this process ends.
        ("name", str),  # "server 1", where several processes have one role: stands before its lines of the log.
    ],
)
Process.__new__.__defaults__ = (0, True, "")
Metric = NamedTuple(
    "Metric",
    [
        ("name", str),  # Key in a program's output.
        ("label", str),  # Name that a person reads.
        ("event", str),  # Event of an evaluation that holds it, under ``key``.
        ("key", str),
        ("scalar", Optional[str]),  # Name in TensorBoard's files, where no event holds it.
        ("note", str),  # Explanation for the caption of its chart.
    ],
)
Metric.__new__.__defaults__ = ("metric", "value", None, "")
Program = NamedTuple(
    "Program",
    [
        ("title", str),  # Name of what is trained, in a few words.
        ("trainer", str),  # Name and version of the program that trains.
        ("folder", str),  # Folder where it starts, on every host.
        ("sent_program", Optional[str]),  # Folder on the launcher that it is copied from; None for a program not sent.
        ("files", Sequence[str]),  # Names below the run's folder.
        ("secrets", Sequence[str]),  # Names of the operator's environment variables that the program may be given.
        ("secrets_folder", str),  # Folder with a file for each of them.
        ("environment", Optional[str]),  # Folder of programs that the run installs where there is no container.
        ("make_environment", Optional[Sequence[str]]),  # Argv that installs them.
        ("setup", Sequence[Tuple[str, str]]),  # (line, script) of job.setup; the script runs once on every node.
        ("imports", Sequence[str]),  # Argv that looks for a script's imports; empty for a program that is no script.
        ("processes", Sequence[Process]),  # Processes of a start from the beginning,
        ("resume_processes", Sequence[Process]),  # of a start from the newest checkpoint,
        ("collective", Sequence[Process]),  # and of the preflight, where each rank has to reach every other.
        ("stop_order", Sequence[str]),  # Roles: those of one are ended on all nodes before those of the next.
        ("artifacts", Sequence[str]),  # Folders of the run's folder that are fetched beside the checkpoints.
    ],
)
Machines = NamedTuple(
    "Machines",
    [
        ("addresses", Sequence[str]),  # Private addresses of the nodes, in rank order.
        ("names", Sequence[str]),
        ("slots", int),  # Ranks of each node.
        ("ranks", Sequence[str]),  # Address of each rank.
        ("interface", str),  # Network card or network of the ranks.
        ("ssh", Sequence[str]),  # Words before an address and a line.
        ("runtime", str),  # "container" or "host".
        ("container", Optional[str]),
        ("image", str),
        ("images", Sequence[str]),  # Image id on each node.
        ("gpu", Optional[str]),
        ("gpu_memory_gb", int),
        ("driver", int),
        ("port_speed_mbps", Optional[int]),
        ("probe_port", int),
        ("meeting_port", Optional[int]),  # First port that is tried as the processes' meeting place, on the first node.
    ],
)
Logs = NamedTuple(
    "Logs",
    [
        ("reader", str),  # Module in agent/formats/logs.
        ("options", Dict[str, str]),
        ("metrics", Sequence[Metric]),
        ("not_shown", Sequence[str]),  # Figures that nobody can know beforehand or from the lines.
        ("unit", str),  # Unit of a step: "step" (an update) or "epoch".
        ("mixed", bool),  # Whether overflowing steps are skipped.
        ("result", Optional[str]),  # Metric that a good run ends with; None if its last checkpoint is enough.
        ("exit_code_decides", bool),  # Whether exit code 0 alone says that the run has finished.
    ],
)
Checkpoints = NamedTuple(
    "Checkpoints",
    [
        ("format", str),  # Module in agent/formats/checkpoints, or NO_CHECKPOINTS.
        ("options", Dict[str, Any]),
        ("files", str),  # Kinds of files that one is made of.
        ("shared", Optional[str]),  # Folder on a drive that every node mounts.
        ("keep", Sequence[str]),  # Patterns of files that are fetched beside the checkpoints.
    ],
)
RunData = NamedTuple(
    "RunData",
    [
        ("folder", Optional[str]),  # None for a program that brings its own data.
        ("stage", Sequence[str]),  # Argv that makes the data.
    ],
)
Limits = NamedTuple(
    "Limits",
    [
        ("stall_s", int),
        ("stop_grace_s", int),  # Time for a program that ends by itself once STOP_FILE is there; 0 for any other.
        ("guard", Optional[Dict[str, float]]),  # End (stop_at, seconds since 1970), and idle seconds (idle_s).
        ("disk_bytes", int),
        ("preflight_skipped", str),  # Reason.
        ("watch_every_s", float),
        ("sample_every_s", float),
    ],
)
Expected = NamedTuple(
    "Expected",
    [  # Figures that are known before the run; None for an unknown one.
        ("max_steps", Optional[int]),  # None if only the program knows its end.
        ("eval_steps", Optional[int]),
        ("print_steps", int),  # Steps between lines with a loss.
        ("predicted_s", Optional[float]),  # Seconds of a step,
        ("compute_s", Optional[float]),  # in which the GPUs compute.
        ("wire_bytes", int),  # Bytes of a step that each network card sends and receives.
        ("warmup_steps", int),  # Steps in which the learning rate rises; 0 if it never does, or nobody knows.
        ("schedule", str),  # Sentences: how the configuration makes the learning rate move, and why.
        ("model_bytes", int),  # Bytes that all ranks add up in a step, about.
        ("per_hour", Optional[float]),
    ],
)
PARTS = [
    ("program", Program),
    ("machines", Machines),
    ("logs", Logs),
    ("checkpoints", Checkpoints),
    ("data", RunData),
    ("limits", Limits),
    ("expected", Expected),
]
RunDocument = NamedTuple(
    "RunDocument",
    [
        ("version", int),
        ("run", str),
        ("word", str),  # Word of this training; the same configuration trained again has the same run and another word.
        ("kind", str),
        ("folder", str),  # Folder of the run on every host; empty in a document of an earlier version.
    ]
    + PARTS,
)
FLAT_NAMES = {
    ("program", "folder"): "program_folder",
    ("logs", "options"): "reader_options",
    ("checkpoints", "format"): "checkpoints",
    ("checkpoints", "options"): "checkpoint_options",
    ("checkpoints", "files"): "checkpoint_files",
    ("data", "folder"): "data",
}
"""Names of fields in a document without parts, where they were others."""


class SpecError(Exception):
    """The document is of another version or not whole; the argument is a sentence."""


def read(path: str) -> RunDocument:
    """Return the document in a file; a queue's nodes stand beside it."""
    with open(path) as file:
        try:
            return parse(json.loads(queue_nodes.filled(file.read(), os.path.dirname(path))), path)
        except ValueError as error:
            raise SpecError("reading {}: it is no JSON ({})".format(path, error)) from error


def is_queued(folder: str) -> bool:
    """Return whether a queue grants the nodes of a run."""
    return parse(read_json(os.path.join(folder, FILE)), folder).machines.addresses[0] == queue_nodes.placeholder(0)


def text(document: RunDocument) -> str:
    """Return the file's text."""
    return json.dumps(plain(document), indent=1, sort_keys=True) + "\n"


def plain(value: Any) -> Any:
    """Return a document or a part of one as JSON's own types, with a key for each field."""
    if hasattr(value, "_fields"):
        return {name: plain(one) for name, one in zip(value._fields, value)}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def parse(document: Any, where: str) -> RunDocument:
    """Return a document, or raise with everything that is wrong with it; ``where`` names it."""
    version = document.get("version", 1) if isinstance(document, dict) else None
    if version in EARLIER:
        document = grouped(document)
    elif version != VERSION:
        raise SpecError(
            "reading {}: another version of microcluster wrote it (format {}, and this one reads {}). Start the run again with "
            "this version (make up), or look at it with the other one".format(where, version, VERSION)
        )
    wrong, parts = [], [(name + "/", part, document.get(name)) for name, part in PARTS]
    for place, part, values in [("", RunDocument, document)] + parts:
        given = set(values) if isinstance(values, dict) else set()
        wrong += [place + key + ": missing" for key in sorted(set(part._fields) - given)]
        wrong += [place + key + ": unknown key" for key in sorted(given - set(part._fields))]
    if wrong:
        raise SpecError("reading {}: {}".format(where, "; ".join(wrong)))
    found = RunDocument(**dict(document, **{name: part(**document[name]) for name, part in PARTS}))
    fields = ("processes", "resume_processes", "collective")
    started = {name: [Process(**one) for one in getattr(found.program, name)] for name in fields}
    metrics = [Metric(**one) for one in found.logs.metrics]
    return found._replace(program=found.program._replace(**started), logs=found.logs._replace(metrics=metrics))


def grouped(flat: Any) -> Any:
    """Return a document of an earlier version, which had no parts, in parts; one that has them stays as it is."""
    if not isinstance(flat, dict) or "machines" in flat:
        return flat
    flat = dict(LACKING, **flat)
    document = {name: flat[name] for name in RunDocument._fields if name in flat}
    for name, part in PARTS:
        known = ((key, FLAT_NAMES.get((name, key), key)) for key in part._fields)
        document[name] = {key: flat[flat_name] for key, flat_name in known if flat_name in flat}
    return dict(document, version=VERSION)
