"""Play runs of strangers' programs, fetch them and look for lost bytes: `--seed 7 --case 12` one of them, `--cases 500` with a seed that is printed."""

import secrets
import shutil
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from tests.played_cases import by_cause, folder_in_memory
from tests.saved.case import Case, Played, case_of, play

TELL_EVERY = 50


def main(words: Sequence[str]) -> int:
    """Play the cases, print the failures and counts, and return 1 if anything failed."""
    parser = ArgumentParser(prog="python -m tests.saved", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--case", type=int, action="append", help="only this one; may be repeated; says all that happens"
    )
    given = parser.parse_args(words)
    cases, began = [case_of(given.seed, number) for number in given.case or range(given.cases)], time.monotonic()
    print(f"seed {given.seed}: {len(cases)} cases", flush=True)
    counts, failed, failures = Counter(), [], []
    for number, (case, played) in enumerate(all_played(cases, given.processes), 1):
        counts.update(played.counts)
        if played.flaws:
            failed.append(case.number)
            print(f"FAILED {case}\n       " + "\n       ".join(dict.fromkeys(played.flaws)), flush=True)
        failures += [(case.number, flaw) for flaw in set(played.flaws)]
        if given.case:
            print("\n".join([repr(case), *played.log]))
        if number % TELL_EVERY == 0:
            print(f"{number} played in {time.monotonic() - began:.0f} s", flush=True)
    print("\n".join(by_cause(failures)))
    print("; ".join(f"{name}: {count:,}" for name, count in counts.items()))
    print(f"seed {given.seed}: {len(cases)} cases in {time.monotonic() - began:.0f} s, {len(failed)} failed: {failed}")
    return int(bool(failed))


def all_played(cases: Sequence[Case], processes: int) -> Iterator[tuple[Case, Played]]:
    """Yield each case and what it has shown, in their order."""
    with ProcessPoolExecutor(processes) as pool:
        yield from zip(cases, pool.map(played_apart, cases), strict=True)


def played_apart(case: Case) -> Played:
    """Play a case in a folder that is removed afterwards."""
    folder = folder_in_memory("saved-")
    try:
        return play(case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
