"""`fab fetch`: download a run, so that the machines can be cancelled."""

from __future__ import annotations

import json as json_text
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import invoke
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from microcluster.analysis.run_state import Outcome
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.kind import kind_of
from microcluster.plain_text import count, note, say
from microcluster.remote.download_run import RemoteFile, download, inventory
from microcluster.remote.host import Host
from microcluster.remote.job import observe
from microcluster.setup.environment import fetched_folder
from microcluster.verbs.command import STACK, UserMistake, is_part_of_make, print_json, suggest, verb
from microcluster.verbs.screen import PlainConsole
from microcluster.verbs.stack_outputs import cluster_of, launcher_of

MANIFEST = "manifest.json"


@verb
def fetch(context: invoke.Context, stack: str = STACK, json: bool = False) -> int:
    """Download best model, newest checkpoint, configuration, logs and events of the run to artifacts/STACK/RUN-WORD."""
    cluster = cluster_of(stack)
    launcher = launcher_of(cluster)
    note(f"reading the list of files of run {cluster.run} on {launcher.facts.name} ...")
    files = inventory(launcher, cluster)
    if not files:
        raise UserMistake(
            f"Stack {stack} has no run {cluster.run} on its launcher yet. Start it: make up STACK={stack}"
        )
    outcome = observe(launcher, cluster)
    folder = fetched_folder(stack, cluster.run, outcome.word)
    downloaded = _download_all(launcher, files, folder)
    _write_manifest(cluster, outcome, files, folder)
    kind = kind_of(cluster.job.kind if cluster.job else None)
    if kind.translator:
        for name, text in kind.translator.board_files((folder / kind.config_file).read_text()).items():
            (folder / name).write_text(text)
    if json:
        print_json({"folder": folder, "brought": downloaded, "files": [asdict(file) for file in files]})
        return 0
    for file in () if is_part_of_make() else files:
        say(f"  {file.what:<17} {decimal(file.size):>9}  {file.path}")
    say(
        f"run {cluster.run} is in {folder}: {count(len(files), 'file')}, {len(downloaded)} of them new; all hashes agree"
    )
    use = f"`fab translate FILE --stack {stack}` translates with it, " if kind.translator else ""
    suggest(f"{use}`make down STACK={stack}` stops the bill.")
    return 0


def newest_step(files: tuple[RemoteFile, ...]) -> int | None:
    """Return the step of the newest checkpoint among the files."""
    return max((file.step for file in files if file.step is not None), default=None)


def _download_all(launcher: Host, files: tuple[RemoteFile, ...], folder: Path) -> list[str]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=PlainConsole(stderr=True), transient=True) as progress:
        whole = progress.add_task("fetching", total=sum(file.size for file in files))
        return [f.path for f in files if download(launcher, f, folder, lambda count: progress.advance(whole, count))]


def _write_manifest(cluster: ClusterFacts, outcome: Outcome, files: tuple[RemoteFile, ...], folder: Path) -> None:
    facts = {
        "stack": cluster.stack,
        "run": cluster.run,
        "word": outcome.word,
        "step": newest_step(files),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": [{"path": f.path, "size": f.size, "sha256": f.sha256, "what": f.what} for f in files],
    }
    scratch = folder / f"{MANIFEST}.new"
    scratch.write_text(json_text.dumps(facts, indent=1, sort_keys=True) + "\n")
    scratch.replace(folder / MANIFEST)
