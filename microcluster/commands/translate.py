"""`fab translate`: translate a text with the run's model, and score the result."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from agent.machine import hash_of
from agent.records.inventory import NEWEST, VOCABULARY
from microcluster.command_line.command import STACK, AsJson, Option, StackName, command
from microcluster.command_line.parts import print_json
from microcluster.core.plain_text import count, note, one_line, say
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.job_section import Section
from microcluster.remote import job as remote_job
from microcluster.remote.host import Host
from microcluster.remote.inventory import RemoteFile, inventory
from microcluster.remote.translation import MODELS, Model, model_of, place_fetched
from microcluster.remote.translation import translate as translate_lines
from microcluster.run.cluster import cluster_of, launcher_of
from microcluster.run.fetch import MANIFEST, manifest_in
from microcluster.setup.errors import UserMistake

MOST_LINES = 100_000
QUOTES = '"\\'
"""Characters that end a name in the file by which the framework finds a checkpoint."""


@command
def translate(  # noqa: PLR0917 - Fabric makes an option of each
    file: Annotated[str, Option("text file on this computer, one sentence a line")],
    stack: StackName = STACK,
    reference: Annotated[str, Option("text file with correct translations, to compute a score")] = "",
    model: Annotated[str, Option("folder of a fetched run; default: the stack's own run")] = "",
    checkpoint: Annotated[str, Option("folder or file of a checkpoint on this computer, such as a published one")] = "",
    as_json: AsJson = False,
) -> int:
    """Translate the sentences of FILE with the run's best model, or with another --checkpoint; --reference scores them."""
    sentences = lines_of(file)
    right = lines_of(reference) if reference else []
    if right and len(right) != len(sentences):
        raise UserMistake(
            f"{reference} has {count(len(right), 'line')} and {file} has {len(sentences)}; they must have the same number."
        )
    cluster = cluster_of(stack)
    job, translator = cluster.job, cluster.job.translator
    if translator is None:
        raise UserMistake(f"The job of stack {stack} trains a model that does not translate.")
    if model and checkpoint:
        raise UserMistake("--model and --checkpoint name two models. Give one of them.")
    given = checkpoint_at(Path(checkpoint), job) if checkpoint else None
    launcher = launcher_of(cluster)
    _refuse_busy(launcher, cluster)
    chosen = model_for(launcher, cluster, model, job, given)
    note(f"translating {count(len(sentences), 'line')} with {chosen.checkpoint} on {launcher.facts.name} ...")
    lines, cut = translate_lines(launcher, cluster, chosen, sentences, translator)
    if cut:
        note(f"{count(cut, 'line')} cut to the length that the model takes.")
    score = translator.score(lines, right) if right else None
    if as_json:
        facts = {"model": chosen.checkpoint, "lines": lines, "cut": cut}
        print_json(facts | ({score.name: score.value, "signature": score.signature} if score else {}))
        return 0
    say("\n".join(map(one_line, lines)))
    if score:
        note(f"{score.text} ({score.signature})")
    return 0


def lines_of(path: str) -> list[str]:
    """Read the sentences of a file; refuse empty lines, so that every line gets one translation."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserMistake(f"Reading {path}: {error}. Name a text in UTF-8 with one sentence a line.") from error
    lines = [" ".join(line.split()) for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    empty = [number for number, line in enumerate(lines, start=1) if not line]
    if not lines or empty or len(lines) > MOST_LINES:
        what = f"line {empty[0]} is empty" if empty else f"it has {count(len(lines), 'line')}"
        raise UserMistake(f"Reading {path}: {what}. Name a text with 1 to {MOST_LINES} sentences, one a line.")
    return lines


def checkpoint_at(path: Path, job: Section) -> tuple[Path, dict[str, object]]:
    """Return the folder of a checkpoint of this computer and its manifest, as of a fetched run; a vocabulary in `data` beside it belongs to it.

    Args:
        path: a folder with one checkpoint, a file of one, or its name without an ending.
    """
    folder, translator = path if path.is_dir() else path.parent, job.translator
    indexes = (one.name for one in folder.glob(f"*{translator.CHECKPOINT}") if one.is_file())
    there = sorted(one.removesuffix(translator.CHECKPOINT) for one in indexes)
    names = [name for name in there if path.is_dir() or f"{path.name}.".startswith(f"{name}.")]
    texts = [one for one in (translator.PIECES, translator.VOCABULARY) if (folder / one).is_file()]
    if len(names) != 1:
        why = f"of checkpoints it has {', '.join(names[:4]) or 'none'}, and one is wanted"
    elif not names[0].isprintable() or set(names[0]) & set(QUOTES):
        why = "no framework reads the characters of its name"
    elif not (why := translator.FORMAT.flaw(f"{folder}/{names[0]}")):
        parts = [
            f"{names[0]}{translator.CHECKPOINT}",
            *(Path(one).name for one in translator.FORMAT.data_sizes(f"{folder}/{names[0]}")),
        ]
        whats = dict.fromkeys(parts, NEWEST) | dict.fromkeys(texts, VOCABULARY)
        astray = [one for one in whats if not (folder / one).resolve().is_relative_to(folder.resolve())]
        if not astray:
            facts = ((one, (folder / one).stat().st_size, hash_of(folder / one), what) for one, what in whats.items())
            files = [asdict(RemoteFile("", *each)) for each in facts]
            return folder, {"run": files[0]["sha256"][:12], "files": files}
        why = f"{', '.join(astray)}: a link leads out of the folder"
    raise UserMistake(
        f"--checkpoint {path}: {why}. Name a whole checkpoint of this computer, by its folder or by one of its files."
    )


def _refuse_busy(launcher: Host, cluster: ClusterFacts) -> None:
    if remote_job.observe(launcher, cluster).state in remote_job.ALIVE:
        raise UserMistake(
            f"Run {cluster.run} of stack {cluster.stack} has not ended, and its GPUs have no room for a second model. "
            f"Wait for its end: fab watch --stack {cluster.stack}. Or stop it: fab stop --stack {cluster.stack}"
        )


def model_for(
    launcher: Host,
    cluster: ClusterFacts,
    fetched: str,
    job: Section,
    given: tuple[Path, dict[str, object]] | None = None,
) -> Model:
    """Return the model of a fetched run, or a ``given`` checkpoint, copied to the launcher; where none is named that of the stack's own run."""
    own = None if fetched else inventory([launcher], cluster)
    files = own.files if own else ()
    folder, manifest = given or (Path(fetched), manifest_in(Path(fetched)) if fetched else {})
    if fetched and not manifest:
        raise UserMistake(
            f"{fetched} is no fetched run. Name a folder that `fab fetch` made, for example artifacts/local/<run>."
        )
    if manifest:
        note(f"copying the model in {folder} to {launcher.facts.name} ...")
        try:
            placed = place_fetched(launcher, folder, manifest, cluster.mount_point, job.config_file)
        except (LookupError, TypeError, ValueError) as odd:
            raise UserMistake(f"{fetched}/{MANIFEST} is not what `fab fetch` writes. Fetch the run again.") from odd
        files = [*(file for file in files if file.what not in MODELS), *placed]
    return model_of(files, job)
