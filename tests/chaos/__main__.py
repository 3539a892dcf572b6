"""Play the chaos test of one seed: `make chaos`, `make chaos SEED=7`, `make chaos SEED=7 CASE=12`."""

import argparse
import json
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from random import SystemRandom

from tests.chaos.cases import counted, laid_out, sample, whole
from tests.chaos.checker import Verdict
from tests.chaos.workers import WORKERS, Case, Played, played, workers

SEEDS = 1_000_000
FAILED, INTERRUPTED = 1, 130
TELL_EVERY_S = 30.0


def main(argv: list[str]) -> int:
    """Play, and return 1 unless every count is 0; a SIGTERM stops it as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = _parser().parse_args(argv)
    print(f"seed {arguments.seed}", flush=True)
    with workers(arguments.workers) as pool:
        return play(pool, arguments.seed, _chosen(arguments, pool))


def play(pool: ProcessPoolExecutor, seed: int, cases: dict[int, Case]) -> int:
    """Play, print every breach as it comes, end with one line of JSON, and return the exit code."""
    began = told = time.monotonic()
    why = "the hour was over"
    runs: list[Played] = []
    try:
        for run in played(pool, cases.items()):
            runs.append(run)
            if run.verdict.breaches:
                print(f"case {run.number}: {run.case}\n  " + "\n  ".join(run.verdict.breaches), flush=True)
            if time.monotonic() - told > TELL_EVERY_S:
                told = time.monotonic()
                print(f"{len(runs)} of {len(cases)} runs in {told - began:.0f} s", flush=True)
    except KeyboardInterrupt:
        why = "it was stopped"
    left = f"; {why} before the other {len(cases) - len(runs)}" if len(runs) < len(cases) else ""
    print(f"{len(runs)} runs in {time.monotonic() - began:.0f} s{left}")
    broken = [run.number for run in runs if run.verdict.breaches]
    if broken:
        print(f"Replay one: make chaos SEED={seed} CASE={broken[0]}")
    counts = {kind: sum(len(vars(run.verdict)[kind]) for run in runs) for kind in vars(Verdict())}
    print(json.dumps({"seed": seed, "runs": len(runs), **counts}))
    if why == "it was stopped":
        return INTERRUPTED
    return FAILED if broken or not runs else 0


def _chosen(arguments: argparse.Namespace, pool: ProcessPoolExecutor) -> dict[int, Case]:
    seed = arguments.seed
    if arguments.case is None:
        sweeps = counted(seed, pool)
        return sample(sweeps, seed) if arguments.sample else whole(sweeps, seed)
    found = whole(laid_out(seed), seed)
    if arguments.case not in found:
        raise SystemExit(f"There is no case {arguments.case}. Take a number that a chaos test has printed.")
    return {arguments.case: found[arguments.case]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    drawn = SystemRandom().randrange(SEEDS)
    parser.add_argument(
        "--seed", type=int, default=drawn, help="what decides everything; drawn and printed when left out"
    )
    parser.add_argument("--sample", action="store_true", help="play what the tests play instead of everything")
    parser.add_argument("--case", type=int, help="play the one case of this number")
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many runs at once")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
