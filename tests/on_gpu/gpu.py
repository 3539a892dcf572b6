"""The card by its own tool, and the checks of it alone: what the machine is, what the product reads of it, how fast it is."""

import contextlib
import json
import os
import platform
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from agent.nodes import activity, node_facts
from agent.run.context import TERMINALS
from microcluster.core.catalog.gpus import GPUS, MEASURED_UNITS
from microcluster.planning.prediction import BAND, TrainingSetup, predict

OUT, HERE = Path(os.environ["OUT"]), Path(__file__).parent
SMI = "nvidia-smi"
ASKED = {
    "the agent's": list(node_facts.GPU_ARGV),
    "the count": [SMI, "--query-gpu=name", "--format=csv,noheader"],
    "whether the driver works": [SMI],
    "list": [SMI, "-L"],
    "more": [
        SMI,
        "--query-gpu=index,uuid,memory.used,memory.reserved,persistence_mode,ecc.mode.current,mig.mode.current,compute_mode,pstate,compute_cap",
        "--format=csv",
    ],
    "holders": [SMI, "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader,nounits"],
    "all": [SMI, "-q"],
}
FLOORS = {"H100": (2.4, 600), "H200": (3.4, 600)}
"""TB/s of a copy on the device, bytes read and written together, and TFLOP/s in bf16: four fifths of what was seen on such cards here."""
REST = {"mib": None}
"""What is taken on the GPU before anything runs."""


class NotHeld(Exception):
    """A check's sentence on what did not hold."""


def hold(is_so, sentence):
    if not is_so:
        raise NotHeld(sentence)


def on_cuda():
    return not os.environ.get("ON_CPU")


def asked(argv, limit_s=60):
    """Return (exit code, output, seconds)."""
    began = time.monotonic()
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit_s, check=False)
        said = done.returncode, done.stdout + done.stderr
    except FileNotFoundError:
        said = 127, ""
    except subprocess.TimeoutExpired:
        said = 124, ""
    return (*said, round(time.monotonic() - began, 3))


def memory_used():
    """Return the MiB that are taken on the first GPU, or None."""
    found = asked([SMI, "--query-gpu=memory.used", "--format=csv,noheader,nounits"])[1].split("\n")[0].strip()
    return int(found) if found.isdigit() else None


def holders():
    """Return the numbers of the processes that hold a GPU, as the driver has them."""
    return [int(word) for word in re.findall(r"^(\d+),", asked(ASKED["holders"])[1], re.M)]


def gpus():
    """Return the rows that the agent makes of the tool's answer."""
    return node_facts.gpu_facts()["gpus"]


def short_name():
    """Return what the catalog calls this card, or would."""
    name = gpus()[0]["name"]
    return next((gpu for gpu in GPUS if gpu in name), name.split()[-1] if "H200" not in name else "H200")


def free_again(before=None, limit_s=15):
    """Wait until the driver shows nobody on the GPU, and return after how many seconds."""
    began, limit = time.monotonic(), REST["mib"] if before is None else before
    while holders() or (limit is not None and (memory_used() or 0) > limit + 64):
        hold(
            time.monotonic() - began < limit_s,
            f"the GPU is still held: processes {holders()}, {memory_used()} MiB of {limit} before",
        )
        time.sleep(0.5)
    return round(time.monotonic() - began, 1)


def moving(seconds=5):
    """Return what of `guard.idle`'s readings moves within some seconds: shares of processors, bytes a minute, keys; None where there is none."""
    first = activity.reading(TERMINALS)
    time.sleep(seconds)
    last = activity.reading(TERMINALS)
    if not first or not last:
        return None
    busy, ticks = (last["processors"][kind] - first["processors"][kind] for kind in (0, 1))
    cards = last["network"]["cards"] - first["network"]["cards"]
    return {
        "processors": round(busy * last["processors"][2] / max(ticks, 1), 2),
        "bytes_a_minute": round(cards * 60 / seconds),
        "keys": last["typed"] != first["typed"],
    }


# --- the checks; each returns what was found ----------------------------------------------------------------------------------


def machine():
    """What the host is: no verdict, but every number is one that a preflight might ask."""
    answers = {what: dict(zip(("code", "said", "seconds"), asked(argv), strict=True)) for what, argv in ASKED.items()}
    for what in ("the agent's", "the count"):
        answers[what]["seconds_of_five"] = [asked(ASKED[what])[2] for _ in range(5)]
    (OUT / "nvidia_smi.json").write_text(
        json.dumps({what: {"argv": ASKED[what], **said} for what, said in answers.items()}, indent=1)
    )
    shm = shutil.disk_usage("/dev/shm") if os.path.isdir("/dev/shm") else None
    with contextlib.suppress(OSError):
        address = socket.gethostbyname(socket.gethostname())
    present = {
        name: bool(shutil.which(name))
        for name in ("docker", "sshd", "systemctl", "sudo", "ip", "apt-get", "nvidia-ctk", "nvidia-container-cli")
    }
    return {
        "kernel": platform.release(),
        "system": asked(["sh", "-c", ". /etc/os-release; echo $ID $VERSION_ID"])[1].strip(),
        "python": sys.version.split()[0],
        "python3 is": shutil.which("python3"),
        "python3 is an environment": sys.prefix != sys.base_prefix,
        "cgroups": asked(["stat", "-fc", "%T", "/sys/fs/cgroup"])[1].strip(),
        "systemd runs": os.path.isdir("/run/systemd/system"),
        "present": present,
        "dev_shm_mb": shm and shm.total >> 20,
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK),
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE),
        "terminals": os.path.exists("/dev/pts/ptmx"),
        "cards": {name: node_facts.address_or_none(name) for _, name in socket.if_nameindex()},
        "name leads to": locals().get("address"),
        "devices": sorted(name for name in os.listdir("/dev") if name.startswith("nvidia")),
        "agent_asks_s": statistics.median(answers["the agent's"]["seconds_of_five"]),
        "readings with nobody there": [one["utilisation"] for _ in range(5) for one in gpus()],
        "moves by itself": moving(),
    }


def questions():
    """The product reads of the real tool what the tool says."""
    code, said, seconds = asked(ASKED["the agent's"])
    hold(code == 0, f"{SMI} ended with exit code {code}: {said[:200]}")
    found = gpus()
    lines = [line for line in said.splitlines() if line.strip()]
    hold(len(found) == len(lines), f"{len(found)} GPUs read of {len(lines)} lines: {lines}")
    hold(
        all(one["name"] and one["memory_mib"] and one["utilisation"] is not None for one in found),
        f"a reading is missing: {found}",
    )
    hold(
        seconds < node_facts.NVIDIA_SMI_TIMEOUT_S / 3,
        f"one question takes {seconds} s of the {node_facts.NVIDIA_SMI_TIMEOUT_S} s that it has",
    )
    return {"gpus": found, "catalog": short_name() in GPUS, "seconds": seconds}


def speed():
    """The card computes and copies as one of its kind; what a step of transformer-base takes is a row for the catalog."""
    code, said, _ = asked(
        ["env", f"PYTHONPATH={os.environ['TORCH_PACKAGES']}", sys.executable, str(HERE / "bench.py")], 120
    )
    hold(code == 0, f"bench.py ended with exit code {code}: {said[-500:]}")
    found, name = json.loads(said.splitlines()[-1]), short_name()
    setups = {
        precision: TrainingSetup(name, 1, 1, 0, "transformer-base", precision, MEASURED_UNITS, 0)
        for precision in ("fp32", "mixed")
    }
    planned = {precision: predict(setup) for precision, setup in setups.items()}
    found["planned_s"] = {precision: one and one.seconds for precision, one in planned.items()}
    copy, product = FLOORS.get(name, (0, 0))
    hold(found["copy_tb_s"] >= copy, f"a copy moves {found['copy_tb_s']:.2f} TB/s instead of {copy}")
    hold(
        found["product_tflop_s"] >= product,
        f"a product runs at {found['product_tflop_s']:.0f} TFLOP/s instead of {product}",
    )
    for precision, one in planned.items():
        off = abs(found["step_s"][precision] / one.seconds - 1) if one else 0
        hold(
            off <= BAND,
            f"a step in {precision} takes {found['step_s'][precision]:.4f} s, planned are {one and one.seconds} s",
        )
    return found
