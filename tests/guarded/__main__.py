"""Play guarded rentals with the person in them: `--seed 7 --case 123` one of them, `--cases 1000` as many with a seed that is printed."""

import secrets
import shutil
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.accounts import AccountServer
from tests.guarded.case import Case, Played, case_of, play
from tests.guarded.rented import opened
from tests.played_cases import by_cause, folder_in_memory

TELL_EVERY = 50


def main(words: Sequence[str]) -> int:
    """Play the cases, print the failures and counts, and return 1 if anything failed."""
    parser = ArgumentParser(prog="python -m tests.guarded", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument(
        "--case", type=int, action="append", help="only this one; may be repeated; says all that happens"
    )
    given = parser.parse_args(words)
    numbers = given.case or range(given.first, given.first + given.cases)
    chosen, began = [case_of(given.seed, number) for number in numbers], time.monotonic()
    print(f"seed {given.seed}: {len(chosen)} cases", flush=True)
    kinds, failed, failures = Counter(), [], []
    with the_world() as world:
        for played, case in enumerate(chosen):
            if played % TELL_EVERY == 0:
                print(f"{played} played in {time.monotonic() - began:.0f} s", flush=True)
            flaws, log = world(case)
            kinds.update(each.kind for each in case.happens)
            if flaws:
                failed.append(case.number)
                print(f"FAILED {case}\n       " + "\n       ".join(dict.fromkeys(flaws)), flush=True)
            failures += [(case.number, flaw) for flaw in set(flaws)]
            if given.case:
                print("\n".join([str(case), repr(case), *log]))
    for kind, count in sorted(kinds.items()):
        print(f"{count:5} {kind}")
    print(*by_cause(failures), sep="\n")
    print(f"seed {given.seed}: {len(chosen)} cases in {time.monotonic() - began:.0f} s, {len(failed)} failed: {failed}")
    return int(bool(failed))


@contextmanager
def the_world() -> "Iterator[World]":
    """Make what all cases share: an account's address, and another account."""
    folder = folder_in_memory("guarded-")
    server, elsewhere = AccountServer(), AccountServer()
    try:
        with opened(elsewhere, folder / "another") as another:
            yield World(server, another.key_file("local"), folder)
    finally:
        for each in (server, elsewhere):
            each.close()
        shutil.rmtree(folder, ignore_errors=True)


class World:
    """Plays one case after the other."""

    def __init__(self, server: AccountServer, other_key: str, folder: Path) -> None:
        self.server, self.other_key, self._folder = server, other_key, folder

    def __call__(self, case: Case) -> tuple[list[str], list[str]]:
        """Return what did not hold in a case, and what happened."""
        place = self._folder / f"case-{case.number}"
        try:
            played: Played = play(case, self.server, self.other_key, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return played.flaws, played.log


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
