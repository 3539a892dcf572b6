"""A stranger's training program, by a seed: how it saves, renames, links and deletes; and the bytes that must not get lost, by its own account."""

import io
import json
import os
import random
import shutil
import struct
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HOUR_S = 3600
ODD = (
    "a b",
    "tab\there",
    "line\nend",
    "50%41",
    "é模型",
    os.fsdecode(b"\xff\xfe"),
    os.fsdecode(b"half\xc3"),
    "x" * 250,
    "-rf",
    "HEAD",
    "'quo\"ted'",
    "$(false)",
    "back\\slash",
)
"""Parts of names that somebody's program writes."""
POINTERS = ("latest", "last_checkpoint", "latest_checkpointed_iteration.txt", "checkpoint")


def npz(content: bytes) -> bytes:
    """Return an archive, of which a torn one shows."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("weights.npy", content)
    return packed.getvalue()


def tensors(content: bytes) -> bytes:
    """Return a file of safetensors."""
    head = json.dumps({"w": {"dtype": "U8", "shape": [len(content)], "data_offsets": [0, len(content)]}}).encode()
    return struct.pack("<Q", len(head)) + head + content


def plain(content: bytes) -> bytes:
    return content


FORMS = {
    "file": r"model-(?P<step>\d+)\.pt",
    "archive": r"weights_(?P<step>\d+)\.npz",
    "nested": r"epoch=\d+-step=(?P<step>\d+)\.ckpt",
    "folder": r"ckpt-(?P<step>\d+)",
    "ranks": r"step-(?P<step>\d+)",
    "shards": r"step(?P<step>\d+)-rank\d+\.bin",
    "trainer": r"checkpoint-(?P<step>\d+)",
    "distributed": r"global_step(?P<step>\d+)",
    "own": r"step-(?P<step>\d+)",
    "loop": r"ckpt-(?P<step>\d+)",
    "unmatched": r"snapshot-(?P<step>\d+)\.never",
    "over": r"ckpt\.npz",
    "over-best": r"(last|best)\.npz",
    "over-ranks": r"last-rank\w+\.npz",
    "over-link": r"latest\.npz",
}
"""How programs save, with the pattern that their stack file gives."""


@dataclass(frozen=True)
class Saved:
    """What is at a path: bytes, and whether they have to be here in the end."""

    content: bytes
    step: int | None = None
    is_pointer: bool = False


@dataclass
class Program:
    """One program on all nodes of a run.

    Attributes:
        logdirs: where each node's part saves; one and the same on a drive.
        outside: where each node's part keeps what it only links to.
        truth: {(node, path below the log folder): what the program has there by its own account}.
        aside: what it had there before somebody else moved it.
    """

    form: str
    seed: random.Random
    logdirs: list[Path]
    outside: list[Path]
    odd: bool
    links: frozenset[str]
    pointer: str | None
    best: bool
    truth: dict[tuple[int, str], Saved] = field(default_factory=dict)
    aside: list[tuple[str, bytes]] = field(default_factory=list)
    sides: int = 0
    seen: dict[tuple[int, str], Saved] = field(default_factory=dict)
    torn: bool = False
    unloadable: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it writes the same files over and over."""
        return self.form.startswith("over")

    def see(self) -> None:
        """Take note that somebody has looked: of a whole state there is a copy from now on."""
        if self.is_over and not self.torn and not self.unloadable:
            self.seen = {key: one for key, one in self.truth.items() if key[1].endswith(".npz")}

    def whole(self) -> dict[tuple[int, str], Saved]:
        """Return what has to be somewhere: of a torn state nothing but the one that was seen before."""
        others = {key: one for key, one in self.truth.items() if not (self.torn and key[1].endswith(".npz"))}
        return {**others, **(self.seen if self.torn else {})}

    @property
    def nodes(self) -> list[int]:
        return list(range(len(self.logdirs)))

    def home(self, node: int) -> int:
        """Return who has what a node writes: on a drive it is everybody's."""
        return self.logdirs.index(self.logdirs[node])

    def fresh(self, shape=plain) -> bytes:
        """Return content that was never written before."""
        return shape(self.seed.randbytes(self.seed.randint(40, 1500)))

    def odd_name(self) -> str:
        return self.seed.choice(ODD) if self.odd else f"extra{self.seed.randint(0, 9)}"

    def parts(self, step: int) -> Iterator[tuple[int, str, bytes]]:  # noqa: PLR0912 - a branch for each form
        """Yield (node, path, content) of one checkpoint in the order in which a program writes it."""
        many = self.seed.randint(0, 3)
        for node in self.nodes:
            first = node == 0
            match self.form:
                case "file" if first:
                    yield node, f"model-{step}.pt", self.fresh()
                case "archive" if first:
                    yield node, f"weights_{step}.npz", self.fresh(npz)
                case "nested" if first:
                    folder = "lightning_logs/version_0/checkpoints"
                    yield node, f"{folder}/epoch={step // 100}-step={step}.ckpt", self.fresh()
                case "folder" if first:
                    yield node, f"ckpt-{step}/model.safetensors", self.fresh(tensors)
                    yield node, f"ckpt-{step}/{self.odd_name()}.json", self.fresh()
                    for number in range(many):
                        yield node, f"ckpt-{step}/samples/plot-{number}.png", self.fresh()
                case "loop" if first:
                    yield node, f"ckpt-{step}/rng_state.pt", self.fresh()
                    yield node, f"ckpt-{step}/model.npz", self.fresh(npz)
                case "ranks":
                    for rank in (2 * node, 2 * node + 1):
                        yield node, f"step-{step}/rank_{rank}.pt", self.fresh()
                case "shards":
                    for rank in (2 * node, 2 * node + 1):
                        yield node, f"step{step}-rank{rank}.bin", self.fresh()
                case "trainer":
                    if first:
                        yield node, f"checkpoint-{step}/config.json", b"{}" + self.fresh()
                        yield node, f"checkpoint-{step}/model.safetensors", self.fresh(tensors)
                    yield node, f"checkpoint-{step}/rng_state_{node}.pth", self.fresh()
                    if first:
                        yield node, f"checkpoint-{step}/trainer_state.json", self.state(step)
                case "distributed":
                    yield node, f"global_step{step}/__{node}_0.distcp", self.fresh()
                    if first:
                        shards = b" ".join(f"__{one}_0.distcp".encode() for one in self.nodes)
                        yield node, f"global_step{step}/.metadata", shards + self.fresh()
                case "own":
                    yield node, f"step-{step}/{'model' if first else self.odd_name()}.pt", self.fresh()
                    yield node, f"step-{step}/loader.pt", self.fresh()
                case "over" if first:
                    yield node, "ckpt.npz", self.fresh(npz)
                case "over-best" if first:
                    yield node, "weights/last.npz", self.fresh(npz)
                    if not self.steps() or self.seed.random() < 0.5:
                        yield node, "weights/best.npz", self.fresh(npz)
                case "over-ranks":
                    yield node, f"last-rank{node}.npz", self.fresh(npz)
                case "over-link" if first:
                    yield node, f"epoch-{step}.npz", self.fresh(npz)
                case "unmatched" if first:
                    yield node, f"result-{step}.pkl", self.fresh()

    def state(self, step: int) -> bytes:
        best = min(self.steps() or [step]) if self.best else None
        name = str(self.logdirs[0] / f"checkpoint-{best}") if best is not None else None
        return json.dumps({"global_step": step, "best_model_checkpoint": name}).encode()

    def steps(self) -> list[int]:
        return sorted({one.step for one in self.truth.values() if one.step is not None})

    def write(self, node: int, path: str, content: bytes, step: int | None = None, *, pointer: bool = False) -> None:
        """Write one file, in place, an hour ago."""
        file = self.logdirs[node] / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_symlink():
            file.unlink()
        file.write_bytes(content)
        if not self.is_over:  # Their steps are those of the log at that time.
            then = time.time() - HOUR_S + self.sides
            self.sides += 1
            os.utime(file, (then, then))
        self.truth[self.home(node), path] = Saved(content, step, pointer)

    def save(self, step: int, *, until: int | None = None) -> None:
        """Save a checkpoint; killed after so many files, in the middle of the next one."""
        parts = list(self.parts(step))
        self.forget_partly(step)
        for number, (node, path, content) in enumerate(parts):
            matched = step if self.form != "unmatched" else None
            if number == until:
                self.write(node, path, content[: len(content) // 2], matched)
                self.torn = self.is_over
                return
            self.write(node, path, content, matched)
        for node in sorted({node for node, _, _ in parts}):
            self.link(node, step, next(path for of, path, _ in parts if of == node))
        for node in self.nodes:
            if self.seed.random() < 0.3:
                self.write(node, f"metrics-{node}.csv", self.fresh())
            if self.pointer and (node == 0 or self.form in ("ranks", "shards", "distributed")):
                self.write(node, self.pointer, str(step).encode(), pointer=True)

    def forget_partly(self, step: int) -> None:
        """Remove an earlier attempt's folder of the same step, as programs do that begin it afresh."""
        if step in self.steps() and not self.is_over:
            self.remove(step)

    def link(self, node: int, step: int, path: str) -> None:
        """Make links beside what was saved."""
        logdir, folder = self.logdirs[node], os.path.dirname(path)
        if self.form == "over-link":
            self._point(logdir / "latest.npz", path)
        if self.is_over:
            return
        if "in" in self.links:
            self._point(logdir / "last.pt", path)
        if not folder or self.form == "nested":
            return
        if "nowhere" in self.links:
            self._point(logdir / folder / "tokenizer.json", "/opt/in-the-container/tokenizer.json")
        if "folder" in self.links and not (logdir / folder).is_symlink():
            home = self.outside[node] / os.path.basename(folder)
            shutil.rmtree(home, ignore_errors=True)
            home.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(logdir / folder, home)
            (logdir / folder).symlink_to(os.path.relpath(home, logdir))
        if "out" in self.links:
            target = self.outside[node] / f"vocab-{step}.bin"
            target.parent.mkdir(parents=True, exist_ok=True)
            content = self.fresh()
            target.write_bytes(content)
            self._point(logdir / folder / "vocab.bin", os.path.relpath(target, (logdir / folder).resolve()))
            self.truth[self.home(node), f"{folder}/vocab.bin"] = Saved(content, step)

    @staticmethod
    def _point(link: Path, target: str) -> None:
        if link.is_symlink() or link.exists():
            link.unlink()
        link.symlink_to(target)

    def remove(self, step: int) -> None:
        """Delete a checkpoint on every node, as a program does that keeps the last ones."""
        gone = {path for (_, path), one in self.truth.items() if one.step == step}
        for logdir in self.logdirs:
            for path in gone:
                top = path.split("/", maxsplit=1)[0]
                if "/" in path and self.form != "nested" and (logdir / top).is_symlink():
                    shutil.rmtree((logdir / top).resolve(), ignore_errors=True)
                    (logdir / top).unlink()
                elif "/" in path and self.form != "nested":
                    shutil.rmtree(logdir / top, ignore_errors=True)
                else:
                    (logdir / path).unlink(missing_ok=True)
        self.truth = {key: one for key, one in self.truth.items() if one.step != step}

    def rotate(self, keep: int) -> None:
        """Keep the newest checkpoints only."""
        if self.is_over:
            return
        for step in self.steps()[:-keep]:
            if not (self.best and step == min(self.steps())):
                self.remove(step)

    def rename(self) -> None:
        """Give one finished side file another name."""
        for node, path in sorted(self.truth):
            if path.startswith("metrics-") and (self.logdirs[node] / path).is_file():
                (self.logdirs[node] / path).rename(self.logdirs[node] / f"final-{path}")
                self.truth[node, f"final-{path}"] = self.truth.pop((node, path))
                return
