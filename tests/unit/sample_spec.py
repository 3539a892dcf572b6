"""A run document in which every program is harmless."""

import json
from pathlib import Path
from typing import Any

from agent.run import document

NOTHING = ["true"]
MODELS = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"model-(?P<step>\d+)\.pt"}}
"""Of a program of the user's own."""
FIELDS: dict[str, Any] = {
    **{"ssh": NOTHING, "stage": NOTHING},
    **{
        "version": document.VERSION,
        "data": "/data",
        "run": "abcdef012345",
        "word": "0a1b2c",
        "kind": "openseq2seq",
        "max_steps": 3,
        "print_steps": 100,
        "mixed": False,
        "slots": 2,
        "interface": "eth0",
    },
    **{"addresses": ["10.0.0.0", "10.0.0.1"], "names": ["gpu-0", "gpu-1"], "container": "box", "program_folder": "/"},
    "ranks": ["10.0.0.0", "10.0.0.0", "10.0.0.1", "10.0.0.1"],
    **{"runtime": "container", "stop_order": ["rank"], "artifacts": [], "keep": [], "imports": [], "setup": []},
    **{"metrics": [], "unit": "step", "result": None, "exit_code_decides": False},
    **{"image": "i", "images": ["sha256:1", "sha256:1"]},
    **{"processes": [], "resume_processes": [], "collective": []},
    **{
        "files": ["config.py"],
        "reader": "openseq2seq",
        "reader_options": {},
        "checkpoints": "tensorflow",
        "checkpoint_options": {},
    },
    **{
        "stop_grace_s": 0,
        "stall_s": 900,
        "wire_bytes": 0,
        "port_speed_mbps": 1000,
        "probe_port": 4445,
        "model_bytes": 4000,
    },
    **{"gpu_memory_gb": 16, "driver": 418},
    **{"disk_bytes": 1000, "preflight_skipped": "", "watch_every_s": 0.1, "sample_every_s": 0.2},
}
"""Values of all fields by name, without the parts that hold them."""


def process(*argv: str, **changes: Any) -> dict[str, Any]:
    """Return one process on the launcher."""
    usual = {"role": "rank", "name": "", "node": 0, "environment": {}, "order": 0, "ends_run": True}
    return {**usual, "argv": list(argv), **changes}


def values(**changes: Any) -> dict[str, Any]:
    """Return the document as JSON has it, with these changes of fields."""
    unset = {flat_name(part, key) for part, kind in document.PARTS for key in kind._fields} - set(document.LACKING)
    return document.grouped({**dict.fromkeys(unset), **FIELDS, **changes})


def parsed(**changes: Any) -> document.RunDocument:
    """Return the document as the agent reads it, with these changes of fields."""
    return document.parse(values(**changes), "the sample")


def write(folder: Path, **changes: Any) -> None:
    """Write the document with these changes, whole, as a supervisor may read it now; so may tests that want it wrong."""
    part = folder / f"{document.FILE}.part"
    part.write_text(json.dumps(values(**changes)))
    part.replace(folder / document.FILE)


def change(folder: Path, **changes: Any) -> None:
    """Change fields of the document in a folder."""
    found = json.loads((folder / document.FILE).read_text())
    known = {flat_name(part, key): found[part][key] for part, kind in document.PARTS for key in kind._fields}
    write(folder, **{**known, **{key: found[key] for key in ("run", "word", "kind")}, **changes})


def flat_name(part: str, key: str) -> str:
    """Return the name of a field where there are no parts."""
    return document.FLAT_NAMES.get((part, key), key)
