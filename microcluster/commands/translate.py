"""`fab translate`: translate a text with the run's model, and score the result."""

from pathlib import Path

from core.plain_text import count, note, one_line, say
from microcluster.commands.command_line import STACK, UserMistake, command, print_json
from microcluster.commands.fetch import MANIFEST, manifest_in
from microcluster.commands.stack_outputs import cluster_of, launcher_of
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_plan import Plan
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job as remote_job
from microcluster.remote.host import Host
from microcluster.remote.inventory import inventory
from microcluster.remote.translation import Model, model_of, place_fetched
from microcluster.remote.translation import translate as translate_lines

MOST_LINES = 100_000


@command
def translate(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    file: str, stack: str = STACK, reference: str = "", model: str = "", as_json: bool = False
) -> int:
    """Translate the sentences of FILE with the run's best model; --reference scores them."""
    sentences = lines_of(file)
    right = lines_of(reference) if reference else []
    if right and len(right) != len(sentences):
        raise UserMistake(
            f"{reference} has {count(len(right), 'line')} and {file} has {len(sentences)}; they must have the same number."
        )
    cluster = cluster_of(stack)
    plan = RunFolder(cluster).plan
    translator = plan.translator
    if translator is None:
        raise UserMistake(f"The job of stack {stack} trains a model that does not translate.")
    launcher = launcher_of(cluster)
    _refuse_busy(launcher, cluster)
    chosen = model_for(launcher, cluster, model, plan)
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


def _refuse_busy(launcher: Host, cluster: ClusterFacts) -> None:
    if remote_job.observe(launcher, cluster).state in remote_job.ALIVE:
        raise UserMistake(
            f"Run {cluster.run} of stack {cluster.stack} has not ended, and its GPUs have no room for a second model. "
            f"Wait for its end: fab watch --stack {cluster.stack}. Or stop it: fab stop --stack {cluster.stack}"
        )


def model_for(launcher: Host, cluster: ClusterFacts, fetched: str, plan: Plan) -> Model:
    """Return the model of a fetched run, copied to the launcher, or where none is named that of the stack's own run."""
    if fetched:
        manifest = manifest_in(Path(fetched))
        if not manifest:
            raise UserMistake(
                f"{fetched} is no fetched run. Name a folder that `fab fetch` made, for example artifacts/local/<run>."
            )
        note(f"copying the model in {fetched} to {launcher.facts.name} ...")
        try:
            files = place_fetched(launcher, Path(fetched), manifest, cluster.mount_point, plan.config_file)
        except (LookupError, TypeError, ValueError) as odd:
            raise UserMistake(f"{fetched}/{MANIFEST} is not what `fab fetch` writes. Fetch the run again.") from odd
        return model_of(files, plan)
    found = inventory([launcher], cluster)
    return model_of(found.files if found else (), plan)
