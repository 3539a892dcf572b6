"""The events of a run on two machines as its supervisor writes them: steps, evaluations, copies, and samples of the cards."""

from dataclasses import dataclass
from typing import Any

NODES = ("gpu-0", "gpu-1")


@dataclass(frozen=True)
class SampledRun:
    """A run of ``steps``; every card moves ``bytes_per_step`` each way, and checkpoints go from the first to the second."""

    steps: int = 5000
    step_s: float = 1.73
    bytes_per_step: int = 366_000_000
    print_steps: int = 100
    eval_steps: int = 2000
    eval_s: float = 60.0
    copy_steps: int = 1000
    copy_bytes: int = 852_000_000
    sample_s: float = 20.0
    before: int = 7_000_000_000
    """Bytes that the cards counted before: the image, the data."""

    def events(self, t: float = 1000.0, first: int = 0) -> list[dict[str, Any]]:
        """Return the events in the order of the two files: progress first, then the samples."""
        progress: list[dict[str, Any]] = [{"event": "phase", "phase": "training", "t": t - 30}]
        samples: list[dict[str, Any]] = []
        moved, copied, due = self.before, 0, t - 30
        for step in range(first, first + self.steps):
            if step % self.eval_steps == 0:
                progress.append({"event": "validation", "loss": 2.0, "t": t})
                t += self.eval_s
            if step % self.print_steps == 0:
                progress.append({"event": "train", "step": step, "loss": 2.0, "t": t})
                progress.append({"event": "time", "step": step, "seconds_per_step": self.step_s, "t": t})
            if step and step % self.copy_steps == 0:
                copied += self.copy_bytes
            t, moved = t + self.step_s, moved + self.bytes_per_step
            while due <= t:
                samples += [self.sample(node, moved, copied, due) for node in NODES]
                due += self.sample_s
        return [*progress, {"event": "end", "exit_code": 0, "t": t}, *samples]

    def sample(self, node: str, moved: int, copied: int, t: float) -> dict[str, Any]:
        """Return how a machine answers."""
        sent, got = (copied, 0) if node == NODES[0] else (0, copied)
        return {
            **{"event": "sample", "node": node, "t": t, "gpus": [98, 97], "free_bytes": 1 << 40},
            **{"rx_bytes": moved + got, "tx_bytes": moved + sent},
        }
