"""Play the campaigns of one seed: `make chaos`, `make chaos SEED=7`, `make chaos SEED=7 CASE=12`."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from random import SystemRandom

from tools.chaos.campaign import WORKERS, Case, played, workers
from tools.chaos.report import Report
from tools.chaos.sweep import counted, laid_out

SEEDS = 1_000_000
INTERRUPTED = 130


def main(argv: list[str]) -> int:
    """Play, and return 1 unless every count is 0."""
    arguments = _parser().parse_args(argv)
    seed = SystemRandom().randrange(SEEDS) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    with workers(arguments.workers) as pool:
        cases = _chosen(seed, arguments, pool)
        report = Report(seed, len(cases))
        try:
            for run in played(pool, cases.items()):
                report.take(run)
        except KeyboardInterrupt:
            report.close("it was stopped")
            return INTERRUPTED
    return report.close()


def _chosen(seed: int, arguments: argparse.Namespace, pool: ProcessPoolExecutor) -> dict[int, Case]:
    if arguments.case is None:
        every = counted(seed, pool)
        return every.sample() if arguments.sample else every.whole()
    found = laid_out(seed).whole()
    if arguments.case not in found:
        raise SystemExit(f"There is no case {arguments.case}. Take a number that a campaign has printed.")
    return {arguments.case: found[arguments.case]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="what decides everything; drawn and printed when left out")
    parser.add_argument("--sample", action="store_true", help="play what the tests play instead of everything")
    parser.add_argument("--case", type=int, help="play the one case of this number")
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many runs at once")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
