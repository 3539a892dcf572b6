"""`fab report`: machines, results and cost of the run; on the terminal, as JSON and as an HTML page."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from rich.filesize import decimal

from core.files import write_whole
from core.home import Home
from core.plain_text import note, say
from microcluster.analysis import bottleneck, run_questions, samples
from microcluster.analysis.records import Curves, curves, latest, rewound
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
from microcluster.commands.stack_outputs import find_cluster, launcher_of
from microcluster.commands.status import status_facts
from microcluster.display import run_text
from microcluster.guard.rental import last_rental
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_plan import DataPlan, Plan
from microcluster.jobs.run_spec import RunFolder
from microcluster.planning.run_cost import CENT
from microcluster.remote import job as remote_job
from microcluster.remote import report_records
from microcluster.remote.host import Host
from microcluster.remote.report_records import Records
from microcluster.setup.environment import ARTIFACTS, fetched_folder
from providers.rental.errors import ProviderError
from providers.rental.receipt import Charge

PAGE, FACTS = "report.html", "report.json"
RATE_NAMES = ("learning_rate", "lr")
"""Metrics by which a program of one's own may print its learning rate."""
MOST_EVENTS = 4
"""Files of curves named in an answer; each attempt of a run begins another."""


@command
def report(stack: str = STACK, as_json: bool = False) -> int:
    """Report machines, results and cost of the run, also as a page, where nothing is rented as it was fetched; exit code 1 unless finished."""
    cluster = find_cluster(stack)
    if cluster:
        path, facts = write_report(stack, cluster, launcher_of(cluster))
        next_command = f"`fab watch --stack {stack}` follows the run, which is {facts['state']}."
    else:
        path, facts = _fetched_report(stack)
        note(f"nothing of stack {stack} is rented; this was read from its machines at {facts.get('read', 'an unknown time')}")
        next_command = f"`fab receipt --stack {stack}` has what the rental cost to its end."
    if as_json:
        print_json(facts)
    else:
        _show(facts, path.with_name(PAGE))
        if facts.get("trouble") and not is_part():  # `make up` has printed it.
            say("\n".join(facts["trouble"]))
        elif facts["state"] != "finished" or not cluster:
            suggest(next_command)
    return 0 if facts["state"] == "finished" else FAILED


def write_report(stack: str, cluster: ClusterFacts, launcher: Host) -> tuple[Path, dict[str, Any]]:
    """Write the report of the run into the folder of what is fetched of it; return its JSON file and what that holds."""
    from microcluster.display.report_page import page  # noqa: PLC0415 - drawing takes a tenth of every command's start

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
        "read": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "rows": run_text.report_rows(cluster, outcome, cost),
        "trouble": run_text.trouble(outcome, stack) if outcome.reason else [],
        "flavor": cluster.flavor,
        "gpu": cluster.gpu,
        "model": getattr(cluster.job, "model", None),
        "kind": cluster.job.kind,
        "trains": plan.title,
        "world_size": len(cluster.hosts) * cluster.slots,
        "image": cluster.container.image if cluster.container else None,
        "labels": {metric.name: metric.label for metric in plan.metrics},
        "answers": [{"number": number, **asdict(answer)} for number, answer in enumerate(answers, start=1)],
        "curves": {"train": found.train, "validation": found.validation, "pace": found.pace, **found.metrics},
        "evaluations": found.evaluations,
        "learning_rate": rewound(records.learning_rate),
        "gpu_use": samples.gpu_use(records.events),
        "emulated": cost.emulated,
        "checkpoint_files": [asdict(one) for one in records.checkpoints],
        "files": dict(records.files),
        "bill": bill,
        "malformed": records.malformed,
    }
    folder = fetched_folder(stack, cluster.run, outcome.word)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FACTS, json.dumps(facts, indent=1, sort_keys=True, default=str) + "\n")
    write_whole(folder / PAGE, page(cluster, outcome, records, found, answers, cost, bill))
    if records.malformed:
        note(run_text.left_out(records.malformed))
    return folder / FACTS, facts


def _fetched_report(stack: str) -> tuple[Path, Mapping[str, Any]]:
    """Return the newest report of a stack that lies on this computer."""
    reports = reports_in(ARTIFACTS, Home.of().label_of(stack))
    if not reports:
        raise UserMistake(
            f"Stack {stack} is not up, and no report of it lies in {ARTIFACTS}; `fab fetch` and `fab report` write it while the machines "
            f"are there. Bring the stack up: make up STACK={stack}"
        )
    path = max(reports, key=lambda path: path.stat().st_mtime)
    return path, reports[path]


def _show(facts: Mapping[str, Any], page: Path) -> None:
    """Print a report: the rows, suspected checkpoints, the numbered answers."""
    say(run_text.report(facts.get("rows", ())))
    for one in [one for one in facts["checkpoint_files"] if one["flaw"]][: run_text.MOST_STEPS]:
        say(f"  {'suspected:':<17}{one['step']}: {one['flaw']}")
    say(f"  {'page:':<17}{os.path.relpath(page)}")
    for one in () if is_part() else facts["answers"]:
        say(f"{one.get('number', '-'):>3}. {one['question']} {one['answer']}")


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
    """Answer the eleven questions of every report, in their order."""
    traffic, rates = samples.traffic(records.events), rewound(records.learning_rate)
    printed = next((found.metrics[name] for name in RATE_NAMES if name in found.metrics), ())
    network = bottleneck.answer(traffic, outcome.link)
    if emulated:
        network = replace(network, answer=f"{network.answer} The network is emulated.")
    return [
        run_questions.how_long(records.events),
        run_questions.trained_enough(found),
        run_questions.overfitted(found),
        run_questions.gpus_used(records.events, emulated=emulated),
        network,
        run_questions.rate(plan.learning_rate, plan.warmup_steps, outcome.step or 0, rates or printed, plan.schedule),
        _data_answer(records, plan.data),
        _files_answer(records, plan.checkpoint_files if outcome.saves else None),
        _size_answer(records, saves=outcome.saves),
        _pace_answer(outcome),
        bottleneck.relation(traffic, outcome.link),
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


def _data_answer(records: Records, data: DataPlan | None) -> Answer:
    question, measured = "How large is the training set, in MB and lines?", latest(records.events, "data")
    if data is None:
        return Answer(question, "Unknown: the program brings its own data.")
    if not measured:
        return Answer(question, "Unknown: nothing has measured them; a run records it when it has prepared its data.")
    counted = {name: figures for name, figures in measured["files"].items() if name in data.files}
    parts = "; ".join(f"{name}: {lines:,} lines, {decimal(size)}" for name, (lines, size) in counted.items())
    figures = {"megabytes": measured["megabytes"], "lines_and_bytes": counted}
    return Answer(question, f"{measured['megabytes']:,} MB in {data.folder} (du -sm). {parts}.", figures)


def _files_answer(records: Records, kinds: str | None) -> Answer:
    question = "Which files make a checkpoint?"
    if kinds is None:
        return Answer(question, "None: the program writes no checkpoints.")
    events = [f"{path} ({decimal(size)})" for path, size in records.files if PurePath(path).name.startswith("events.")]
    more = f", and {len(events) - MOST_EVENTS} more" if len(events) > MOST_EVENTS else ""
    beside = f" Beside it lie the curves for TensorBoard, not needed to restore: {', '.join(events[:MOST_EVENTS])}{more}."
    return Answer(question, f"{kinds}.{beside if events else ''}")


def _size_answer(records: Records, *, saves: bool) -> Answer:
    question = "How large is a checkpoint?"
    newest = next((one for one in records.checkpoints if not one.flaw and not one.best), None)
    if newest is None:
        return Answer(question, "There is no whole one yet." if saves else "There is none.")
    parts = " + ".join(f"{kind} {decimal(size)}" for kind, size in newest.sizes.items())
    return Answer(question, f"{parts} = {decimal(newest.size)}, that of step {newest.step}.", {"bytes": newest.sizes})


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
