"""Checks of a training: our example on the card, two ranks on it of which one is killed, and what the preflight and NCCL refuse."""

import io
import os
import random
import signal
import tarfile
from pathlib import Path

import run_here
from gpu import HERE, free_again, hold, holders, on_cuda, short_name
from run_here import WORK, RunHere, sources

EXAMPLE = Path(run_here.AGENT).parent / "examples" / "translation_torch"
CORPUS = f"{WORK}/sentences.tar"


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


def nccl_refuses():
    """Why the check of two ranks takes gloo: NCCL refuses two ranks on one GPU, and the run says so in its words."""
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
