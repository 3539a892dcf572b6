"""A run's specification in which every program is harmless."""

import json
from pathlib import Path
from typing import Any

from agent.run import document

NOTHING = ["true"]
MODELS = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"model-(?P<step>\d+)\.pt"}}
"""Of a program of the user's own."""
VALUES: dict[str, Any] = {
    **dict.fromkeys(document.FIELDS),
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


def process(*argv: str, **changes: Any) -> dict[str, Any]:
    """Return one process on the launcher."""
    usual = {"role": "rank", "name": "", "node": 0, "environment": {}, "order": 0, "ends_run": True}
    return {**usual, "argv": list(argv), **changes}


def write(folder: Path, **changes: Any) -> None:
    """Write the document with these changes, whole, as a supervisor may read it now; so may tests that want it wrong."""
    part = folder / f"{document.FILE}.part"
    part.write_text(json.dumps({**VALUES, **changes}))
    part.replace(folder / document.FILE)
