"""What a campaign ends with: every breach as it comes, then one line of JSON."""

import json
import time
from dataclasses import dataclass, field

from tools.chaos.campaign import Played
from tools.chaos.checker import Verdict

FAILED = 1
TELL_EVERY_S = 30.0


@dataclass
class Report:
    """The counts of a campaign so far."""

    seed: int
    planned: int
    runs: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(vars(Verdict()), 0))
    broken: list[int] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)

    def take(self, played: Played) -> None:
        """Count a run, and print at once what went wrong in it."""
        self.runs += 1
        for kind, breaches in vars(played.verdict).items():
            self.counts[kind] += len(breaches)
        if played.verdict.breaches:
            self.broken.append(played.number)
            print(f"case {played.number}: {played.case}\n  " + "\n  ".join(played.verdict.breaches), flush=True)
        now = time.monotonic()
        if now - self._told > TELL_EVERY_S:
            self._told = now
            print(f"{self.runs} of {self.planned} runs in {now - self.began:.0f} s", flush=True)

    def close(self, why: str = "the hour was over") -> int:
        """Print the last lines and return the exit code; ``why`` tells what kept the rest from being played."""
        left = f"; {why} before the other {self.planned - self.runs}" if self.runs < self.planned else ""
        print(f"{self.runs} runs in {time.monotonic() - self.began:.0f} s{left}")
        if self.broken:
            print(f"Replay one: make chaos SEED={self.seed} CASE={self.broken[0]}")
        print(json.dumps({"seed": self.seed, "runs": self.runs, **self.counts}))
        return FAILED if any(self.counts.values()) or not self.runs else 0
