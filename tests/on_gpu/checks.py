"""What has to hold on a real GPU, one check after another; writes $OUT/result.json anew after each, so that a cut-off says what was proved."""

import contextlib
import io
import json
import os
import platform
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tarfile
import time
import traceback
from pathlib import Path

import run_here
from run_here import WORK, RunHere, sources

from agent.nodes import activity, node_facts
from core.catalog.gpus import GPUS, MEASURED_UNITS
from microcluster.planning.prediction import BAND, TrainingSetup, predict

OUT, LIMIT_S, BEGAN = Path(os.environ["OUT"]), float(os.environ["LIMIT_S"]), time.monotonic()
HERE = Path(__file__).parent
EXAMPLE = Path(run_here.AGENT).parent / "examples" / "translation_torch"
CORPUS = f"{WORK}/sentences.tar"
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
SLACK_S = 15
"""A sample every 5 s in a run's first two minutes, a look every 5 s, and TERM."""
REST = {"mib": None}
"""What is taken on the GPU before anything runs."""


class NotHeld(Exception):
    """A check's sentence on what did not hold."""


def hold(is_so, sentence):
    if not is_so:
        raise NotHeld(sentence)


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


# --- the checks; each returns what was found ------------------------------------------------------------------------------------


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


def one_rank():
    """Preflight with NCCL, and our example unchanged on the GPU to its last checkpoint; the supervisor's samples see the GPU at work."""
    run = RunHere(translation(steps=1200 if on_cuda() else 120, pace=0.01), sources(EXAMPLE), gpu=short_name())
    try:
        found = run.start().wait(lambda _: False, 150)
        table = {row["check"]: (row["found"], row["verdict"]) for row in run.preflight().get("rows", [])}
        hold(
            found.state == "finished",
            f"{found.state}: {found.cause}: {found.reason} {run.failure().get('lines', [])[-3:]}",
        )
        losses = [event["loss"] for event in run.events() if event["event"] == "train" and "loss" in event]
        used = [percent for sample in run.events("samples.jsonl") for percent in sample["gpus"]]
        hold(losses[-1] < losses[0], f"the loss went from {losses[0]} to {losses[-1]}")
        hold(not on_cuda() or "nccl" in (run.folder / "job.log").read_text().lower(), "the log has no word of NCCL")
        hold(not on_cuda() or max(used, default=0) > 5, f"no sample saw the GPU at work: {used}")
        free_again()
        kept = {
            "preflight": table,
            "preflight_s": run.preflight()["seconds"],
            "used": used,
            "step_s": found.seconds_per_step,
        }
        return {**kept, "losses": [losses[0], losses[-1]], "checkpoints": found.checkpoints}
    finally:
        run.end()


def too_few():
    """Two ranks ordered where there is one GPU: the preflight stops the run before it begins."""
    run = RunHere(translation(steps=10), sources(EXAMPLE), slots=2, gpu=short_name())
    try:
        found = run.start().wait(lambda _: False, 60)
        hold(
            found.cause == "preflight" and f"instead of 2x {short_name()}" in str(found.reason),
            f"{found.state}: {found.cause}: {found.reason}",
        )
        return {"reason": found.reason}
    finally:
        run.end()


def two_ranks():
    """Two ranks share the GPU over gloo; one is killed with -9: it is named, nothing of the run holds the GPU, and the run goes on from a checkpoint."""
    steps = 600 if on_cuda() else 120
    job = translation(
        steps=steps,
        pace=0.03,
        save_every=40,
        script="two_on_one.py",
        preflight="skip: two ranks share the one GPU of this machine",
    )
    run = RunHere(job, sources(EXAMPLE, HERE / "programs"), slots=2)
    try:
        run.start().wait(lambda seen: len(seen.checkpoints) >= 2 and (seen.step or 0) > max(seen.checkpoints), 90)
        ranks = run.ranks("two_on_one.py")
        hold(set(ranks) == {0, 1}, f"ranks at work: {ranks}; {run.look().reason}")
        held = holders()
        os.kill(ranks[1], signal.SIGKILL)
        found = run.wait(lambda _: False, 60)
        hold(
            found.cause == "rank-died" and "rank 1 on gpu-0 ended with signal 9" in str(found.reason),
            f"{found.state}: {found.cause}: {found.reason}",
        )
        free_again()
        saved = max(found.checkpoints)
        found = run.start().wait(lambda _: False, 120)
        hold(found.state == "finished", f"the second attempt {found.state}: {found.cause}: {found.reason}")
        events = run.events()
        second = max(
            number for number, event in enumerate(events) if event == {**event, "event": "phase", "phase": "training"}
        )
        first_step = next(event["step"] for event in events[second:] if event["event"] == "train")
        hold(saved < first_step <= saved + 20, f"the second attempt began at step {first_step}, saved was {saved}")
        free_again()
        return {
            "killed": "rank 1",
            "holders": held,
            "saved": saved,
            "went on at": first_step,
            "reason": "rank 1 on gpu-0 ended with signal 9",
        }
    finally:
        run.end()


def stall():
    """Silent while the GPU works: it goes on. Silent while the GPU rests: it is ended, by the GPU's reading alone."""
    busy_s, stall_s = 35, 15
    run = RunHere(load(f"steps:5 busy:{busy_s} idle:600", stallS=stall_s), sources(HERE / "programs"), gpu=short_name())
    try:
        found = run.start().wait(lambda _: False, 150)
        silent_s = ended_after(run)
        hold(found.cause == "stalled", f"{found.state}: {found.cause}: {found.reason}")
        hold(silent_s >= busy_s + stall_s - 6, f"it was ended after {silent_s:.0f} s of silence, while the GPU worked")
        hold(silent_s <= busy_s + stall_s + SLACK_S, f"it was ended only after {silent_s:.0f} s of silence")
        free_again()
        return {"silent_s": round(silent_s), "busy_s": busy_s, "stall_s": stall_s, "reason": found.reason}
    finally:
        run.end()


def idle():
    """The guard counts no idle second while only the GPU works, and stops the run when nothing does."""
    busy_s, idle_s = 25, 20
    run = RunHere(
        load(f"steps:3 busy:{busy_s} idle:600", stallS=3600),
        sources(HERE / "programs"),
        gpu=short_name(),
        idle_s=idle_s,
    )
    try:
        found = run.start().wait(lambda _: False, 150)
        silent_s = ended_after(run)
        hold(
            found.cause == "idle",
            f"{found.state}: {found.cause}: {found.reason}; idle_s {found.idle_s}; beside the run moves {moving()}",
        )
        hold(silent_s >= busy_s + idle_s - 6, f"it was stopped after {silent_s:.0f} s, while the GPU worked")
        hold(silent_s <= busy_s + idle_s + SLACK_S, f"it was stopped only after {silent_s:.0f} s")
        return {"silent_s": round(silent_s), "reason": found.reason}
    finally:
        run.end()


def out_of_memory():
    """A program that takes more memory than the GPU has: the run names rank and node, and shows the framework's own words."""
    run = RunHere(load("steps:2 oom"), sources(HERE / "programs"), gpu=short_name())
    try:
        found = run.start().wait(lambda _: False, 90)
        lines = run.failure().get("lines", [])
        hold(found.cause == "rank-died", f"{found.state}: {found.cause}: {found.reason}")
        hold(any("out of memory" in line for line in lines), f"its last lines do not say it: {lines[-3:]}")
        free_again()
        return {
            "reason": found.reason,
            "line": [line for line in lines if "out of memory" in line][-1][:300],
            "hint": run.hint(),
        }
    finally:
        run.end()


def stop():
    """`fab stop` ends a program that computes, and the driver shows no process and no memory of it any more."""
    before = memory_used()
    run = RunHere(load("memory:8 steps:3 busy:600", stallS=3600), sources(HERE / "programs"), gpu=short_name())
    try:
        run.start().wait(lambda seen: (seen.step or 0) >= 3, 60)
        time.sleep(5)
        pids, held, taken = set(run.ranks("load.py").values()), holders(), memory_used()
        under_load = asked(ASKED["the agent's"])
        hold(
            not on_cuda() or taken - before > 8000, f"the program shows no memory of its own: {before} and {taken} MiB"
        )
        hold(not on_cuda() or gpus()[0]["utilisation"] > 5, f"a GPU at work shows {under_load}")
        began = time.monotonic()
        ended = run.end()
        stop_s = time.monotonic() - began
        hold(ended["left"] == [] and ended["ended"] >= 2, f"ended: {ended}")
        free_s = free_again(before)
        return {
            "shown_by_driver": bool(pids & set(held)),
            "stop_s": round(stop_s, 1),
            "free_after_s": free_s,
            "asks_s": under_load[2],
            "ended": ended,
            "mib": [before, taken, memory_used()],
        }
    finally:
        run.end()


def nccl_refuses():
    """Why the check of two ranks takes gloo: NCCL refuses two ranks on one GPU, and the run says so in its words."""
    hold(on_cuda(), "there is no CUDA here")
    job = translation(
        steps=10,
        script="two_on_one.py",
        more="--backend nccl",
        preflight="skip: two ranks share the one GPU of this machine",
    )
    run = RunHere(job, sources(EXAMPLE, HERE / "programs"), slots=2)
    try:
        found = run.start().wait(lambda _: False, 60)
        log = (run.folder / "job.log").read_text()
        hold(
            found.state == "failed" and "Duplicate GPU" in log,
            f"{found.state}: {found.reason}: {run.failure().get('lines', [])[-2:]}",
        )
        return {
            "cause": found.cause,
            "in its last lines": any("Duplicate GPU" in line for line in run.failure()["lines"]),
        }
    finally:
        run.end()


CHECKS = {
    machine: 15, questions: 5, speed: 60, one_rank: 75, two_ranks: 90, stall: 80, idle: 70, out_of_memory: 30, stop: 35, too_few: 15, nccl_refuses: 35,
}  # fmt: skip
"""In the order of what they are worth, with the seconds that each is expected to take at most."""


# --- what they share ------------------------------------------------------------------------------------------------------------


def on_cuda():
    return not os.environ.get("ON_CPU")


def translation(steps, *, pace=0.0, save_every=None, script="train.py", more="", **keys):
    width = "--batch_size 64 --d_model 512" if on_cuda() else "--batch_size 8 --d_model 64"
    words = f"{width} --corpus {CORPUS} --model_folder {{logdir}} --steps {{maxSteps}} --save_every {save_every or steps // 4} --pace {pace} {more}"
    job = {
        "kind": "torchrun",
        "script": script,
        "arguments": words.strip(),
        "maxSteps": steps,
        "resume": "--preload {checkpoint}",
    }
    return {**job, "checkpoints": r"tmodel_(?P<step>\d+)\.pt", **keys}


def load(words, **keys):
    fake = {"environment": {"FAKE_BUSY": os.environ["FAKE_BUSY"]}} if "FAKE_BUSY" in os.environ else {}
    return {"kind": "command", "command": f"python load.py {words}", **fake, **keys}


def ended_after(run):
    """Return the seconds between a run's last step and its end."""
    events = run.events()
    last = max((event["t"] for event in events if event["event"] == "train"), default=0)
    return next((event["t"] for event in reversed(events) if event["event"] == "end"), time.time()) - last


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
    first = activity.reading(activity.TERMINALS)
    time.sleep(seconds)
    last = activity.reading(activity.TERMINALS)
    if not first or not last:
        return None
    busy, ticks = (last["processors"][kind] - first["processors"][kind] for kind in (0, 1))
    cards = last["network"]["cards"] - first["network"]["cards"]
    return {
        "processors": round(busy * last["processors"][2] / max(ticks, 1), 2),
        "bytes_a_minute": round(cards * 60 / seconds),
        "keys": last["typed"] != first["typed"],
    }


def make_corpus():
    """Write pairs of sentences as the example reads them: each word has one translation, and their order is reversed."""
    draw, words = random.Random(0), [f"w{number}" for number in range(900)]
    with tarfile.open(CORPUS, "w") as tar:
        for part, count in (("train", 6000), ("eval", 200)):
            lines = [[draw.choice(words) for _ in range(draw.randint(3, 12))] for _ in range(count)]
            for side, text in (("en", lines), ("de", [[f"d{word[1:]}" for word in reversed(line)] for line in lines])):
                content = "".join(" ".join(line) + "\n" for line in text).encode()
                member = tarfile.TarInfo(f"{part}.{side}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def carried_out(check, needs_s):
    """Return the row of a check; one that would not end in time is not begun."""
    left_s, began = LIMIT_S - (time.monotonic() - BEGAN), time.monotonic()
    row = {"check": check.__name__, "proves": check.__doc__.split("\n")[0]}
    if left_s < needs_s:
        return {**row, "verdict": "not run", "found": f"{left_s:.0f} s are left, it needs {needs_s}"}
    try:
        return {**row, "verdict": "pass", "found": check(), "seconds": round(time.monotonic() - began, 1)}
    except NotHeld as sentence:
        return {**row, "verdict": "FAIL", "found": str(sentence), "seconds": round(time.monotonic() - began, 1)}
    except Exception:  # noqa: BLE001 - the next check may still hold
        return {
            **row,
            "verdict": "FAIL",
            "found": traceback.format_exc()[-1500:],
            "seconds": round(time.monotonic() - began, 1),
        }


def main(names):
    chosen = {check: needs_s for check, needs_s in CHECKS.items() if not names or check.__name__ in names}
    rows = []
    for check, needs_s in chosen.items():
        rows.append(carried_out(check, needs_s))
        known = {"card": asked(ASKED["list"])[1].strip(), "seconds": round(time.monotonic() - BEGAN, 1), "checks": rows}
        (OUT / "result.json").write_text(json.dumps(known, indent=1, default=str) + "\n")
        print(
            "{verdict:8} {check:14} {0:6} s  {1}".format(
                rows[-1].get("seconds", 0), json.dumps(rows[-1]["found"], default=str)[:700], **rows[-1]
            ),
            flush=True,
        )
    verdicts = [row["verdict"] for row in rows]
    print(f"{verdicts.count('pass')} passed, {verdicts.count('FAIL')} failed, {verdicts.count('not run')} skipped")
    return 1 if "FAIL" in verdicts else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # So that what a check has begun ends with it.
    os.environ["TORCH_PACKAGES"] = run_here.torch_packages()
    REST["mib"] = memory_used()
    make_corpus()
    sys.exit(main(sys.argv[1:]))
