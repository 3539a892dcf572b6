"""`fab report`: machines, results and cost of the run; on the terminal, as JSON and as an HTML page."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from core.files import write_whole
from core.plain_text import note, say
from microcluster.analysis import bottleneck, run_questions, samples
from microcluster.analysis.records import Curves, curves, rewound
from microcluster.analysis.run_questions import Answer
from microcluster.analysis.run_state import Outcome
from microcluster.commands.account_charges import account_of, cost_of
from microcluster.commands.command_line import (
    FAILED,
    STACK,
    UserMistake,
    command,
    is_part,
    print_json,
    sentence,
    suggest,
)
from microcluster.commands.stack_outputs import cluster_of, launcher_of
from microcluster.commands.status import status_facts
from microcluster.display import run_text
from microcluster.guard.rental import last_rental
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_plan import Plan
from microcluster.jobs.run_spec import RunFolder
from microcluster.planning.run_cost import CENT
from microcluster.remote import job as remote_job
from microcluster.remote import report_records
from microcluster.remote.report_records import Records
from microcluster.setup.environment import fetched_folder
from providers.rental.errors import ProviderError
from providers.rental.receipt import Charge

PAGE, FACTS = "report.html", "report.json"


@command
def report(stack: str = STACK, as_json: bool = False) -> int:
    """Report machines, results and cost of the run, also as a page; exit code 1 unless the run is finished."""
    from microcluster.display.report_page import page  # noqa: PLC0415 - drawing takes a tenth of every command's start

    cluster = cluster_of(stack)
    launcher = launcher_of(cluster)
    outcome = remote_job.observe(launcher, cluster)
    if outcome.state == "absent":
        raise UserMistake(f"Stack {stack} has no run yet. Start it: make up STACK={stack}")
    records, cost, bill = report_records.read(launcher, cluster), cost_of(cluster), _bill(cluster)
    plan = RunFolder(cluster).plan
    found = curves(records.events, plan.eval_steps, plan.metrics)
    answers = answers_of(plan, outcome, records, found, emulated=cost.emulated)
    facts = {
        **asdict(outcome),
        **status_facts(stack, cluster, outcome, cost),
        "flavor": cluster.flavor,
        "gpu": cluster.gpu,
        "model": getattr(cluster.job, "model", None),
        "kind": cluster.job.kind,
        "trains": plan.title,
        "world_size": len(cluster.hosts) * cluster.slots,
        "image": cluster.container.image if cluster.container else None,
        "labels": {metric.name: metric.label for metric in plan.metrics},
        "answers": [asdict(answer) for answer in answers],
        "curves": {"train": found.train, "validation": found.validation, "pace": found.pace, **found.metrics},
        "evaluations": found.evaluations,
        "learning_rate": rewound(records.learning_rate),
        "gpu_use": samples.gpu_use(records.events),
        "emulated": cost.emulated,
        "checkpoint_files": [asdict(one) for one in records.checkpoints],
        "files": dict(records.files),
        "data": [asdict(file) for file in records.data],
        "bill": bill,
        "malformed": records.malformed,
    }
    folder = fetched_folder(stack, cluster.run, outcome.word)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FACTS, json.dumps(facts, indent=1, sort_keys=True, default=str) + "\n")
    write_whole(folder / PAGE, page(cluster, outcome, records, found, answers, cost, bill))
    if records.malformed:
        note(run_text.left_out(records.malformed))
    if as_json:
        print_json(facts)
    else:
        say(run_text.report(cluster, outcome, cost))
        for one in [one for one in records.checkpoints if one.flaw][: run_text.MOST_STEPS]:
            say(f"  {'suspected:':<17}{one.step}: {one.flaw}")
        say(f"  {'page:':<17}{os.path.relpath(folder / PAGE)}")
        if outcome.reason and not is_part():  # `make up` has printed it.
            say("\n".join(run_text.trouble(outcome, stack)))
        elif outcome.state != "finished":
            suggest(f"`fab watch --stack {stack}` follows the run, which is {outcome.state}.")
    return 0 if outcome.state == "finished" else FAILED


def reports_in(artifacts: Path, stack: str = "*") -> dict[Path, Mapping[str, Any]]:
    """Return the reports that lie on this computer; a damaged one is left out with a sentence."""
    found = {}
    for path in sorted(artifacts.glob(f"{stack}/*/{FACTS}")):
        try:
            facts = json.loads(path.read_text())
        except (OSError, ValueError):
            facts = None
        if isinstance(facts, dict) and "run" in facts:
            found[path] = facts
        else:
            again = f"fab report --stack {path.parent.parent.name}"
            note(
                f"{path} is no whole report and is left out. While its machines are there, this writes it again: {again}"
            )
    return found


def answers_of(
    plan: Plan, outcome: Outcome, records: Records, found: Curves, *, emulated: bool = False
) -> list[Answer]:
    """Answer the questions of every report."""
    network = bottleneck.answer(samples.traffic(records.events), outcome.link)
    if emulated:
        network = replace(network, answer=f"{network.answer} The network is emulated.")
    return [
        run_questions.how_long(records.events),
        run_questions.trained_enough(found),
        run_questions.overfitted(found),
        run_questions.gpus_used(records.events, emulated=emulated),
        network,
        run_questions.rate(plan.learning_rate, plan.warmup_steps, outcome.step or 0, records.learning_rate),
        _data_answer(records),
        _checkpoint_answer(records, plan.checkpoint_files if outcome.saves else None),
        _pace_answer(outcome),
    ]


def _bill(cluster: ClusterFacts) -> list[dict[str, Any]]:
    try:
        charges = account_of(cluster).charges(cluster.owner)
    except ProviderError as error:
        note(sentence(str(error)))
        return []
    return [_bill_row(charge) for charge in last_rental(charges, datetime.now(UTC)).rows]


def _bill_row(charge: Charge) -> dict[str, Any]:
    return {
        "opened": None if charge.is_kept else charge.opened.timestamp(),
        "host": charge.host,
        "what": charge.description,
        "from": _utc(charge.opened),
        "to": _utc(charge.closed) if charge.closed else "still billed",
        "per_hour": f"{charge.per_hour:f} {charge.currency}",
        "cost": f"{charge.so_far.quantize(CENT)} {charge.currency}",
    }


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def _data_answer(records: Records) -> Answer:
    parts = "; ".join(f"{file.name}: {file.lines:,} lines, {decimal(file.size)}" for file in records.data)
    return Answer("How large is the data, in lines and bytes?", parts or "Unknown: there is none yet.")


def _checkpoint_answer(records: Records, kinds: str | None) -> Answer:
    question = "Which files make a checkpoint, and how large is one?"
    if kinds is None:
        return Answer(question, "None: the program writes no checkpoints.")
    newest = next((one for one in records.checkpoints if not one.flaw and not one.best), None)
    if newest is None:
        return Answer(question, f"{kinds}. There is no whole one yet.")
    parts = " + ".join(f"{kind} {decimal(size)}" for kind, size in newest.sizes.items())
    return Answer(question, f"{kinds}. One of them, of step {newest.step}: {parts} = {decimal(newest.size)}.")


def _pace_answer(outcome: Outcome) -> Answer:
    pace, text = outcome.seconds_per_step, "Unknown: no step was logged."
    if pace is not None:
        text = f"{pace:.3f} s: the median of the last lines of the log, without start-up and evaluations."
    if outcome.objects_per_second:
        text += (
            f" With evaluations and checkpoints: {outcome.objects_per_second:,.0f} objects (source and target pieces) a "
            "second over all ranks."
        )
    return Answer(f"How long is an average {outcome.unit}?", text)
