"""Do with a GPU what the arguments say, one after the other, and print steps; for the checks of `tests/on_gpu`.

``steps:N`` prints a step each second; ``memory:GIB`` keeps so much; ``busy:S`` lets the GPU compute in silence while the processors sleep;
``idle:S`` does nothing in silence; ``oom`` takes memory until there is none left. Without CUDA, FAKE_BUSY names a file that is touched
instead, which a stand-in of nvidia-smi reads.
"""

import itertools
import json
import os
import sys
import time

import torch

SIZE, BATCH, BATCH_S = 16384, 40, 0.4
CUDA = torch.cuda.is_available()
kept, steps_done = [], itertools.count(1)


def steps(count):
    for _ in range(int(count)):
        step = next(steps_done)
        compute(1)
        print(json.dumps({"step": step, "loss": 1.0 / step}), flush=True)
        time.sleep(1)


def compute(times):
    """Queue products of matrices, and return before they are done."""
    if not CUDA:
        with open(os.environ.get("FAKE_BUSY", os.devnull), "a") as touched:
            touched.write(".")
        return
    if not kept:
        kept.append(torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16))
    for _ in range(times):
        kept[0] @ kept[0]


def busy(seconds):
    """The GPU always has something to do; the processor sleeps, so that nothing but the GPU shows that the program works."""
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        compute(BATCH)
        done = torch.cuda.Event() if CUDA else None
        if CUDA:
            done.record()
        time.sleep(BATCH_S)
        while CUDA and not done.query():
            time.sleep(0.02)


def idle(seconds):
    if CUDA:
        torch.cuda.synchronize()
    time.sleep(float(seconds))


def memory(gib):
    if CUDA:
        kept.append(torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16))
        kept.append(torch.zeros(int(float(gib) * 2**30), dtype=torch.uint8, device="cuda"))


def oom():
    if not CUDA:
        raise RuntimeError("CUDA out of memory (without CUDA this is only said)")
    while True:
        kept.append(torch.zeros(4 << 30, dtype=torch.uint8, device="cuda"))


for word in sys.argv[1:]:
    name, _, value = word.partition(":")
    {"steps": steps, "busy": busy, "idle": idle, "memory": memory, "oom": oom}[name](*filter(None, [value]))
