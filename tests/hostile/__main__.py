"""Play cases against a hostile machine: `--seed 7 --case 123` one of them, `--cases 2000` as many with a seed of their own, which is printed."""

import gc
import json
import os
import secrets
import shutil
import sys
import time
from argparse import ArgumentParser
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from microcluster.core.ssh_key import KeyPair
from tests.hostile.commands import COMMANDS, Case, case_of
from tests.hostile.stage import Result, World, play
from tests.hostile.truth import Truth, facts_below, write_fetched, write_run
from tests.integration.conftest import AccountEmulator
from tests.played_cases import by_cause, folder_in_memory

AT_ONCE = 6
"""Most cases wait."""
ACCOUNT = {"clock_rate": 1, "provisioning_s": 1, "reclaim_s": 0.5, "instance_limit": 5000}


def main(words: Sequence[str]) -> int:
    """Play the cases, print the failures and a table, and return 1 if anything failed."""
    parser = ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--case", type=int, action="append", help="only this one; may be repeated")
    parser.add_argument("--command", help="only cases of commands that begin so")
    parser.add_argument("--kind", help="only cases with this kind of attack, for example name")
    parser.add_argument(
        "--honest", action="store_true", help="play each command once against machines that attack nobody"
    )
    parser.add_argument("--keep", type=Path, help="keep the folders of the cases here")
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--facts", type=Path, help="write what each case has shown into this file, as JSON")
    given = parser.parse_args(words)
    cases = [case_of(given.seed, number) for number in (given.case or range(given.cases))]
    if given.honest:
        cases = [Case(given.seed, number, command, None) for number, command in enumerate(COMMANDS)]
    if given.command:
        cases = [case for case in cases if case.command.name.startswith(given.command)]
    if given.kind:
        cases = [case for case in cases if case.attack and case.attack.kind == given.kind]
    print(f"seed {given.seed}: {len(cases)} cases", flush=True)
    began = time.monotonic()
    found = {}
    with the_world(given.keep) as (world, folder):
        for case, result in _played(world, cases, folder, given.at_once, keep=bool(given.keep)):
            found[case] = result
            for failure in result.failures:
                print(f"FAILED {case}\n       {result.attacked}\n       {failure}", flush=True)
            if given.case or given.honest:
                facts = f"exit code {result.code}, {result.seconds:.1f} s, {result.peak_bytes / 1e6:.0f} MB"
                print(f"{case}: {facts}; {result.attacked}\n{result.said}")
    if given.facts:
        given.facts.write_text(json.dumps([{"case": str(case), **vars(result)} for case, result in found.items()]))
    print("\n".join(table(found)))
    failures = [(case.number, failure) for case, result in found.items() for failure in result.failures]
    print("\n".join(by_cause((number, failure.partition(". This is a mistake")[0]) for number, failure in failures)))
    failed = [case.number for case, result in found.items() if result.failures]
    print(f"seed {given.seed}: {len(cases)} cases in {time.monotonic() - began:.0f} s, {len(failed)} failed: {failed}")
    return int(bool(failed))


def table(found: Mapping[Case, Result]) -> list[str]:
    """Return the counts by command and by kind, with the worst of each."""
    rows: dict[str, list[Result]] = defaultdict(list)
    for case, result in found.items():
        rows[f"fab {case.command.name}"].append(result)
        if case.attack:
            rows[f"{case.attack.group}: {case.attack.kind}"].append(result)
    lines = ["| command or kind | cases | attacked | failed | longest s | most MB |", "|---|---|---|---|---|---|"]
    for name, results in sorted(rows.items()):
        counts = Counter(
            touched=sum(each.touched for each in results), failed=sum(bool(each.failures) for each in results)
        )
        longest, most = max(each.seconds for each in results), max(each.peak_bytes for each in results) / 1e6
        lines.append(
            f"| {name} | {len(results)} | {counts['touched']} | {counts['failed']} | {longest:.1f} | {most:.0f} |"
        )
    return lines


@contextmanager
def the_world(keep: Path | None) -> Iterator[tuple[World, Path]]:
    """Make what all cases share, in memory where there is room for it."""
    os.environ["NO_PROXY"] = "127.0.0.1"
    os.umask(0o077)
    for package in ("commands", "remote", "lifecycle", "display", "setup"):
        for module in iter_modules(import_module(f"microcluster.{package}").__path__):
            import_module(f"microcluster.{package}.{module.name}")
    for name in ("microcluster.accounts.softlayer.account", "microcluster.accounts.queue.account", "fabric.main"):
        import_module(name)
    folder = keep or folder_in_memory("hostile-")
    try:
        facts = facts_below(folder / "machines" / "data")
        write_run(facts)
        write_fetched(facts, folder / "fetched")
        (folder / "answers").mkdir()
        with AccountEmulator(folder / "account", **ACCOUNT) as account:
            truth = Truth(folder / "machines" / "data", folder / "answers")
            gc.collect()
            gc.freeze()
            yield World(folder, facts, truth, KeyPair.fresh(), account.config_file), folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _played(
    world: World, cases: Sequence[Case], folder: Path, at_once: int, *, keep: bool
) -> Iterator[tuple[Case, Result]]:
    """Play cases, so many at a time, each in a process of its own."""
    waiting, running = list(reversed(cases)), {}
    while waiting or running:
        while waiting and len(running) < at_once:
            case = waiting.pop()
            running[_fork(world, case, folder / f"case-{case.number}")] = case
        child, _ = os.wait()
        if child in running:
            case = running.pop(child)
            place = folder / f"case-{case.number}"
            yield case, _result_in(place)
            if not keep:
                shutil.rmtree(place, ignore_errors=True)


def _fork(world: World, case: Case, place: Path) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        place.mkdir()
        result = play(world, case, place)
        (place / "result.json").write_text(json.dumps(vars(result)))
        code = 0
    except BaseException as error:  # noqa: BLE001 - told by who waits for it
        import traceback  # noqa: PLC0415

        failed = Result([f"the case itself failed: {type(error).__name__}: {error} {traceback.format_exc()[-1500:]}"])
        (place / "result.json").write_text(json.dumps(vars(failed)))
    finally:
        os._exit(code)


def _result_in(place: Path) -> Result:
    try:
        return Result(**json.loads((place / "result.json").read_text()))
    except (OSError, ValueError) as error:
        return Result([f"the case left no result: {error}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
