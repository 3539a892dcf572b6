"""Download of runs, so that their machines can be cancelled."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from agent.records.inventory import BEST, CHECKPOINT, NEWEST, SUSPECTED
from microcluster.command_line.parts import is_part, print_json, sentence, suggest
from microcluster.core.files import write_whole
from microcluster.core.plain_text import count, note, printable, say
from microcluster.display.console import PlainConsole
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.file_transfer import Fetched, fetch_files
from microcluster.remote.host import Host
from microcluster.remote.inventory import Inventory, RemoteFile, by_want, inventory, results, runs_on
from microcluster.remote.steps import open_hosts
from microcluster.run.cluster import cluster_of, find_cluster
from microcluster.run.report import write_report
from microcluster.setup.environment import fetched_folder
from microcluster.setup.errors import FAILED, UserMistake

MANIFEST = "manifest.json"
PROGRESS = "progress.jsonl"
"""Records of a run, which grow with every step, whatever the program saves."""
LEFT_SHOWN = 20


def fetch_runs(stack: str, *, as_json: bool = False, everything: bool = False) -> int:
    """Download what is wanted of a stack's run; with ``everything`` all files, also those of earlier runs on the machines."""
    cluster = cluster_of(stack)
    hosts = open_hosts(cluster)
    found = _inventories(hosts, cluster, hashed=True, everything=everything)
    if not found:
        raise UserMistake(
            f"Stack {stack} has no run {cluster.run} on its launcher yet. Start it: make up STACK={stack}"
        )
    brought = [_fetch(stack, hosts, cluster, one, as_json=as_json) for one in found]
    try:  # `fab report` has it when the machines are gone.
        write_report(stack, cluster, hosts[0])
    except Exception as error:  # noqa: BLE001 - what was fetched is here all the same, and a guard may cancel
        note(
            f"The report was not written: {sentence(str(error))} While the machines are there: fab report --stack {stack}"
        )
    if as_json:
        print_json(brought[0] | {"earlier": brought[1:]}, _as_json)
    else:
        translates = cluster.job.translator
        use = f"`fab translate FILE --stack {stack}` translates with it, " if translates else ""
        suggest(f"{use}`make down STACK={stack}` stops the bill.")
    if not (any(one.silent for one in found) or any(one["failed"] for one in brought)):
        return 0
    note(
        f"All but these came, for the reasons above. Again: fab fetch{' --everything' if everything else ''} --stack {stack}"
    )
    return FAILED


def fetch_begun(stack: str) -> int:
    """Fetch every run whole that has begun; the hash of each file is taken on its machine and here."""
    if find_cluster(stack) is None or not unfetched_runs(stack):
        say("no run has begun on its machines")
        return 0
    return fetch_runs(stack, everything=True)


def unfetched_runs(stack: str) -> list[dict[str, Any]]:
    """Return the contract of `fab fetch --unfetched --json`: what of every run is on the machines only."""
    cluster = cluster_of(stack)
    found = _inventories(open_hosts(cluster), cluster, hashed=False, everything=False)
    return [unfetched_of(one, manifest_in(fetched_folder(stack, one.run, one.word))) for one in found]


def _inventories(hosts: Sequence[Host], cluster: ClusterFacts, *, hashed: bool, everything: bool) -> list[Inventory]:
    """Return what the machines have of the stack's run, and of earlier runs unless its own files alone are fetched."""
    runs = [str(cluster.run)] if hashed and not everything else runs_on(hosts[0], cluster)
    note(f"reading the list of files of run {', '.join(runs)} on {hosts[0].facts.name} ...")
    asked = [inventory(hosts, cluster, run, hashed=hashed, everything=everything) for run in runs]
    return [one for one in asked if one and (one.run == cluster.run or results(one))]


def _fetch(
    stack: str, hosts: Sequence[Host], cluster: ClusterFacts, found: Inventory, *, as_json: bool
) -> dict[str, Any]:
    """Download one training; return where it is, and what is new of it."""
    folder = fetched_folder(stack, found.run, found.word)
    done = _download_all({host.facts.name: host for host in hosts}, found.files, folder)
    found = replace(found, files=tuple(done.files))
    _write_manifest(stack, found, folder, done.failed)
    job = cluster.job
    if job.translator and found.run == cluster.run:
        for name, text in job.translator.board_files(RunFolder(cluster).files[job.config_file]).items():
            write_whole(folder / name, text)
    for why in found.silent:
        note(f"What this machine alone has was not fetched: {why}")
    for path, why in list(done.failed.items())[:LEFT_SHOWN]:
        note(f"not fetched: {printable(path)}: {why}")
    if len(done.failed) > LEFT_SHOWN:
        note(f"not fetched: {len(done.failed) - LEFT_SHOWN} more; {folder / MANIFEST} names each")
    if not as_json:
        for file in () if is_part() else found.files:
            say(f"  {file.what:<20} {decimal(file.size):>9}  {file.local}{_why(file)}")
        for file in sorted(found.left, key=by_want)[:LEFT_SHOWN]:
            say(f"  not fetched: {_shown(file)}")
        if found.left:
            brings = f"`fab fetch --everything --stack {stack}` brings what was left: {_summed(found.left)}"
            say(f"  {brings}; `job.keep` names what always comes")
        missing = f"; {count(len(done.failed), 'file')} did not come" if done.failed else ""
        new = f"{count(len(found.files), 'file')}, {len(done.new)} of them new; all hashes agree{missing}"
        say(f"run {found.run} is in {folder}: {new}")
    return {
        "folder": folder,
        "brought": done.new,
        "files": found.files,
        "failed": done.failed,
    }


def _as_json(value: RemoteFile | Path) -> object:
    return asdict(value) if isinstance(value, RemoteFile) else str(value)


def show_unfetched(stack: str, *, as_json: bool) -> int:
    """Print what of every run is on the machines only."""
    facts = unfetched_runs(stack)
    if as_json:
        print_json(facts)
        return 0
    if not facts:
        say(f"no run of stack {stack} has begun on its machines")
    for one in facts:
        lines = [f"  {what}" for what in (*one["unfetched"], *one["silent"])]
        say("\n".join((f"run {one['run']}: {one['sum']} not fetched yet", *lines)))
    return 0


def unfetched_of(found: Inventory, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Compare what the nodes have of a training with what was fetched of it.

    ``gone_on`` says whether the run has written anything since, or a node did not answer then.
    """
    known = set().union(*(_copies(SimpleNamespace(**file)) for file in manifest.get("files", ())))
    progress = [file for file in found.files if file.path == PROGRESS and not _copies(file) <= known]
    missing = [file for file in results(found) if not _copies(file) <= known]
    return {
        "run": found.run,
        "word": found.word,
        "step": found.step,
        "fetched": manifest.get("fetched"),
        "fetched_step": manifest.get("step"),
        "unfetched": [_shown(file) for file in missing],
        "sum": _summed(missing),
        "silent": list(found.silent),
        "gone_on": bool(manifest.get("silent") or progress),
    }


def _copies(file: RemoteFile | SimpleNamespace) -> set[tuple[str, str, int, int]]:
    """Return what tells each copy of a file from others: where it is on which node, how large, and when it was written."""
    there = file.there.items()
    return {
        (re.sub(f"^(nodes/{re.escape(node)}/)+", "", file.path), node, file.size, written) for node, written in there
    }


def _shown(file: RemoteFile) -> str:
    return f"{printable(file.path, 240)} ({decimal(file.size)}, {file.what} on {', '.join(file.there)}){_why(file)}"


def _why(file: RemoteFile) -> str:
    """Return what speaks against a checkpoint's file, to stand behind it."""
    return f": {printable(file.suspicion)}" if file.suspicion else ""


def _summed(files: Sequence[RemoteFile]) -> str:
    """Return how many files of each kind there are, and their bytes."""
    kinds = ", ".join(f"{number} {what}" for what, number in Counter(file.what for file in files).items())
    return f"{count(len(files), 'file')} of {decimal(sum(file.size for file in files))}" + (
        f" ({kinds})" if kinds else ""
    )


def _download_all(hosts: Mapping[str, Host], files: Sequence[RemoteFile], folder: Path) -> Fetched:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=PlainConsole(stderr=True), transient=True) as progress:
        whole = progress.add_task("fetching", total=sum(file.size for file in files))
        return fetch_files(hosts, files, folder, lambda size: progress.advance(whole, size))


def manifest_in(folder: Path) -> dict[str, Any]:
    """Return what was fetched into a folder; nothing where nothing was."""
    try:
        return json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return {}


def _write_manifest(stack: str, found: Inventory, folder: Path, failed: Mapping[str, str]) -> None:
    paths = {file.path for file in found.files}
    before = manifest_in(folder).get("files", ())
    still_here = [one for one in before if one["path"] not in paths]
    for one in still_here:
        one["what"] = CHECKPOINT if one["what"] in (BEST, NEWEST, SUSPECTED) else one["what"]
    facts = asdict(replace(found, files=(), left=())) | {"stack": stack}
    facts["fetched"] = datetime.now(UTC).isoformat(timespec="seconds")
    del facts["files"]
    head = json.dumps(facts, indent=1, sort_keys=True)[:-1].rstrip()
    files = _lines(json.dumps(file, sort_keys=True) for file in chain(map(asdict, found.files), still_here))
    reasons = _lines(f"{json.dumps(path)}: {json.dumps(why)}" for path, why in failed.items())
    pieces = chain([f'{head},\n "failed": {{'], reasons, ['\n },\n "files": ['], files, ["\n ]\n}\n"])
    write_whole(folder / MANIFEST, pieces)


def _lines(rows: Iterable[str]) -> Iterator[str]:
    """Yield the rows of a JSON list or mapping, one by one: as one text a million of them take ten times their memory."""
    for number, row in enumerate(rows):
        yield f"{',' * bool(number)}\n  {row}"
