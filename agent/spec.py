"""The run's specification: the one document that microcluster writes for the agent, as ``job.json`` in the run's folder.

FIELDS lists every key with its type, for both sides: ``text`` writes only a whole document, ``read`` accepts only a whole one of
this version. A type is a class; ``[type]`` for a list; ``{str: type}`` for a map; a dict of names for an object; a tuple
``(type, None)`` for a value that may be null.
"""

import json
import os
from types import SimpleNamespace

from agent.batch import grant

VERSION = 8
"""Raised whenever a field changes; version 1 had none."""
FILE = "job.json"
CHECKPOINT = "{checkpoint}"
"""In the argv of ``resume_processes``: the path of the checkpoint, a file or a folder."""
STEP = "{step}"
"""In the same: the checkpoint's step."""
ATTEMPT = "{attempt}"
"""In any process's argv: a word that is another one for each start of the run."""
ARGV = [str]
NUMBER = float
"""An int will do."""
PROCESS = {
    "role": str,
    "name": str,
    "node": int,
    "argv": ARGV,
    "environment": {str: str},
    "order": int,
    "ends_run": bool,
}
"""``name`` is what a person knows it by, such as "server 1"; empty where the role says enough."""
METRIC = {"name": str, "label": str, "event": str, "key": str, "scalar": (str, None), "note": str}
"""A figure that a program shows beside its losses: the event and key that hold it, or its name in TensorBoard's files."""
GUARD = {"stop_at": (NUMBER, None), "idle_s": (NUMBER, None)}
"""When the program has to stop, in seconds since 1970, and after how many idle seconds."""
FIELDS = {
    "version": int,
    # What the run is.
    "run": str,
    "word": str,  # Of this training; the same configuration trained again has the same run and another word.
    "kind": str,
    "trainer": (str, None),
    "max_steps": (int, None),  # A program may know its end alone.
    "eval_steps": (int, None),
    "print_steps": int,
    "mixed": bool,
    # Where it runs.
    "addresses": [str],
    "names": [str],
    "slots": int,
    "ranks": [str],  # Where each rank of the training is, by address.
    "interface": str,
    "ssh": ARGV,
    "runtime": str,
    "container": (str, None),  # Of the runtime "container".
    "environment": (str, None),  # Of the runtime "host": the folder of the programs that the run has made for itself,
    "make_environment": (ARGV, None),  # and what makes it, on the machine as it is.
    "imports": ARGV,  # What imports the script's own imports, by its interpreter; empty where none can be missing.
    "program_folder": str,
    "files": [str],
    "image": str,
    "images": [str],
    # What is started, and what reads its log and its checkpoints.
    "processes": [PROCESS],
    "resume_processes": [PROCESS],
    "collective": [PROCESS],
    "reader": str,
    "reader_options": {str: str},
    "checkpoints": str,
    "checkpoint_options": {str: str},
    "shared": (str, None),  # Where the checkpoints lie, on a drive that every node mounts.
    "stop_order": [str],
    "stop_grace_s": NUMBER,  # For a program that ends by itself once STOP_FILE is there.
    "artifacts": [str],
    "metrics": [METRIC],
    "unit": str,  # What a step is.
    "result": (str, None),  # The metric that a good run ends with.
    "exit_code_decides": bool,  # Whether exit code 0 alone says that the run has finished.
    "keep": [str],  # Patterns of what is fetched beside them, below the log folder and the program's folder.
    # What is expected.
    "stall_s": NUMBER,
    "guard": (GUARD, None),
    "predicted_s": (NUMBER, None),
    "compute_s": (NUMBER, None),
    "wire_bytes": NUMBER,
    "per_hour": (NUMBER, None),
    "gpu": (str, None),
    "gpu_memory_gb": int,
    "driver": int,
    "port_speed_mbps": (int, None),
    "probe_port": int,
    "meeting_port": (int, None),  # Of the first node, where the processes of all others look for it.
    "model_bytes": int,
    "disk_bytes": int,
    "preflight_skipped": str,
    "watch_every_s": NUMBER,
    "sample_every_s": NUMBER,
    # What the supervisor has made before the training.
    "data": (str, None),  # The folder of the data; a program may bring its own.
    "stage": ARGV,
}


class SpecError(Exception):
    """The document is of another version or not whole; the argument is a sentence."""


def read(path):
    """Return the specification in a file as an object with an attribute for each field; a queue's nodes stand beside it."""
    granted = grant.read(os.path.dirname(path))
    with open(path) as file:
        try:
            written = file.read()
            return parse(json.loads(granted.filled(written) if granted else written), path)
        except ValueError as error:
            raise SpecError("reading {}: it is no JSON ({})".format(path, error)) from error


def text(values):
    """Return the document with ``values``, which are all fields but the version."""
    document = dict(values, version=VERSION)
    parse(document, "the specification of run " + str(values.get("run")))
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def parse(document, where):
    """Return a document as an object, or raise with everything that is wrong with it; ``where`` names it."""
    version = document.get("version", 1) if isinstance(document, dict) else None
    if version != VERSION:
        raise SpecError(
            "reading {}: another version of microcluster wrote it (format {}, and this one reads {}). Start the run again with "
            "this version (make up), or look at it with the other one".format(where, version, VERSION)
        )
    problems = []
    found = _value(FIELDS, document, "", problems)
    if problems:
        raise SpecError("reading {}: {}".format(where, "; ".join(problems)))
    return found


def _value(kind, raw, path, problems):
    """Return ``raw`` as ``kind`` has it; what is wrong is added to ``problems``."""
    if isinstance(kind, tuple):
        return None if raw is None else _value(kind[0], raw, path, problems)
    if isinstance(kind, list) and isinstance(raw, list):
        return [_value(kind[0], item, "{}/{}".format(path, i), problems) for i, item in enumerate(raw)]
    if isinstance(kind, dict) and isinstance(raw, dict):
        if str in kind:
            return dict((key, _value(kind[str], raw[key], path + "/" + key, problems)) for key in raw)
        return _object(kind, raw, path + "/" if path else "", problems)
    if type(raw) is kind or (kind is NUMBER and type(raw) is int):
        return raw
    wanted = kind.__name__ if isinstance(kind, type) else type(kind).__name__
    problems.append("{} has to be of type {}, not {}".format(path, wanted, type(raw).__name__))
    return None


def _object(kind, raw, path, problems):
    problems += [path + key + ": missing" for key in sorted(set(kind) - set(raw))]
    problems += [path + key + ": unknown key" for key in sorted(set(raw) - set(kind))]
    return SimpleNamespace(
        **dict((key, _value(kind[key], raw[key], path + key, problems)) for key in kind if key in raw)
    )
