"""Work out what a crash at a random moment costs, in virtual time: ``python -m tests.bench.crash_loss``.

A trainer that writes checkpoints at the stack's own interval runs against the product's own :class:`CheckpointWatch`, which looks at
its real folder and decides what is copied when; only the clock, the bytes and the way to the other machine are played. Crashes then
come at random moments. Lost is the time since the last moment of training from which a checkpoint is left.
"""

import random
import statistics
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from rich.console import Console
from rich.table import Table

from agent.formats.checkpoints.tensorflow import Format
from agent.supervise.checkpoint_watch import CheckpointWatch
from microcluster.config import stack as config
from microcluster.jobs.openseq2seq import CHECKPOINT_BYTES
from microcluster.jobs.run_spec import WATCH_EVERY_S
from microcluster.planning.checkpoint_interval import WRITE_S
from tests.tiny_checkpoint import save

STACKS = ("p100", "v100", "local")
SEEDS, INTERVALS, CRASHES = 20, 5, 500
JITTER = 0.05
COPY_SHARE = 0.5
"""Share of a port's nominal speed that a copy has: the ranks send over it at the same time."""
LOCAL_STEP_S, LOCAL_WRITE_S = 0.27, 0.3
"""As measured on two cores; nothing predicts them."""
KEPT = 5
HOUR_S = 3600.0


@dataclass(frozen=True)
class Setting:
    """One stack: seconds of a step, of a write and of a copy, steps between checkpoints, dollars an hour of all machines."""

    step_s: float
    write_s: float
    copy_s: float
    interval: int
    per_hour: float


class Life:
    """A run in virtual time: what was whole and what was copied at which moment."""

    def __init__(self, setting: Setting, folder: Path, seed: int) -> None:
        """Begin with a checkpoint of step 0, which the trainer writes first."""
        self.setting, self.folder, self.chance = setting, folder, random.Random(seed)
        self.checkpoints = Format(str(folder / "logdir"))
        self.now = 0.0
        self.spec = SimpleNamespace(
            checkpoints=SimpleNamespace(format="tensorflow", options={}, shared=None),
            machines=SimpleNamespace(addresses=["a", "b"]),
            limits=SimpleNamespace(watch_every_s=WATCH_EVERY_S),
        )
        self.reached: dict[int, float] = {}
        """Moments at which the training was at a step with a checkpoint."""
        self.whole: list[tuple[float, int]] = []
        self.copied: list[tuple[float, int]] = []
        self.due = self._writes()
        self.next_at, self.next_step = next(self.due)

    def live(self, intervals: int) -> None:
        """Go on until so many checkpoints are written, under the eyes of the product's watch."""
        rules = SimpleNamespace(not_copied="", see_checkpoint=lambda newest, size, now: None)
        watch = CheckpointWatch(self, rules, threading.Event())
        self.now = self.chance.uniform(0, WATCH_EVERY_S)
        while self.next_step <= intervals * self.setting.interval:
            self.pass_to(self.now)
            watch.look()
            self.now += WATCH_EVERY_S

    def pass_to(self, moment: float) -> None:
        """Let the trainer have written what it has written by then; it keeps five."""
        while self.next_at <= moment:
            save(self.folder / "logdir", f"model.ckpt-{self.next_step}")
            self.whole.append((self.next_at, self.next_step))
            for _, old in self.checkpoints.found()[KEPT:]:
                for file in self.checkpoints.files_of(old):
                    (self.folder / "logdir" / file).unlink()
            self.next_at, self.next_step = next(self.due)

    def _writes(self):
        """Yield when each checkpoint is whole: the steps before it, and its own writing, during which nobody trains."""
        at, step = 0.0, 0
        while True:
            self.reached[step] = at
            at += self.setting.write_s
            yield at, step
            at += self.setting.interval * self.setting.step_s * (1 + self.chance.uniform(-JITTER, JITTER))
            step += self.setting.interval

    def lost(self, moment: float, left: Sequence[tuple[float, int]]) -> float:
        """Return the seconds that are lost at a moment with the checkpoints that are left of then."""
        steps = [step for at, step in left if at <= moment]
        return moment - (self.reached[steps[-1]] if steps else 0.0)

    # What the watch asks of a run:
    def path(self, *names: str) -> str:
        return str(self.folder.joinpath(*names))

    inside = path

    def hand_in(self, record: str) -> None:
        """Keep it: there is no container."""

    def name_of(self, address: str) -> str:
        return address

    def program(self, module: str, *arguments: object) -> list[str]:
        return [module]

    def emit(self, event: dict[str, object]) -> None:
        if event["event"] == "copied":
            self.copied.append((self.now, int(str(event["step"]))))

    def ask(self, argv: Sequence[str], timeout_s: float, marked: bool, given: bytes) -> tuple[int, str]:
        """Take the time of one copy."""
        self.now += self.setting.copy_s
        self.pass_to(self.now)
        return 0, ""


def setting_of(name: str) -> Setting:
    """Read a stack as the product does."""
    stack = config.read_file(name)
    step_s, write_s = LOCAL_STEP_S, LOCAL_WRITE_S
    if stack.forecast:
        step_s, write_s = stack.forecast.prediction.seconds, WRITE_S[1]
    size = CHECKPOINT_BYTES * stack.job.parameters()
    copy_s = size * 8 / (COPY_SHARE * stack.cluster.port_speed_mbps * 1e6)
    return Setting(step_s, write_s, copy_s, stack.job.checkpoint_steps, float(stack.cluster.rent_per_hour or 0))


def losses(setting: Setting) -> tuple[list[float], list[float]]:
    """Return the seconds lost in every crash: of a process, and of the launcher with its disk."""
    of_process, of_launcher = [], []
    for seed in range(SEEDS):
        with tempfile.TemporaryDirectory(prefix="microcluster-bench-") as folder:
            life = Life(setting, Path(folder), seed)
            life.live(INTERVALS)
            moments = [life.chance.uniform(life.copied[0][0], life.now) for _ in range(CRASHES)]
            of_process += [life.lost(moment, life.whole) for moment in moments]
            of_launcher += [life.lost(moment, life.copied) for moment in moments]
    return of_process, of_launcher


def measure(console: Console) -> None:
    """Print the table of all stacks."""
    table = Table("stack", "checkpoint every", "crash of", "steps", "mean loss", "worst", "worst/interval")
    for name in STACKS:
        setting = setting_of(name)
        interval_s = setting.interval * setting.step_s
        every = f"{setting.interval} = {_minutes(interval_s)}"
        for what, lost in zip(("a process", "the launcher"), losses(setting), strict=True):
            mean, worst = statistics.fmean(lost), max(lost)
            prices = [f"{_minutes(each)} ${each / HOUR_S * setting.per_hour:.2f}" for each in (mean, worst)]
            table.add_row(name, every, what, f"{mean / setting.step_s:.0f}", *prices, f"{worst / interval_s:.2f}")
    console.print(table)
    console.print(
        f"virtual, {SEEDS} runs of {INTERVALS} intervals, {CRASHES} crashes each; steps vary by {JITTER:.0%}; a checkpoint is written in "
        f"{WRITE_S[1]} s (local: {LOCAL_WRITE_S} s) and copied at {COPY_SHARE:.0%} of the port. Noticing and starting again come on top."
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


if __name__ == "__main__":
    measure(Console())
