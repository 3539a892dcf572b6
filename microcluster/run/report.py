"""Report of a run: machines, results and cost; on the terminal, as JSON and as an HTML page."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from rich.filesize import decimal

from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.shared.rental import last_rental
from microcluster.analysis import bottleneck, run_questions, samples
from microcluster.analysis.records import Curves, curves, latest, rewound
from microcluster.analysis.run_questions import Answer
from microcluster.analysis.run_state import LONGEST_TEXT, Outcome
from microcluster.command_line.parts import is_part, print_json, sentence, suggest
from microcluster.core.files import write_whole
from microcluster.core.plain_text import note, say
from microcluster.display import run_text
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.finished_data import DataPlan
from microcluster.jobs.run_spec import RunFolder
from microcluster.planning.run_cost import CENT
from microcluster.remote import job as remote_job
from microcluster.remote import report_records
from microcluster.remote.host import Host
from microcluster.remote.report_records import Records
from microcluster.run.cluster import account_of, cost_of, find_cluster, launcher_of
from microcluster.run.status import status_facts
from microcluster.setup.environment import fetched_folder
from microcluster.setup.errors import FAILED, UserMistake

PAGE, FACTS = "report.html", "report.json"
MEASURED = re.compile(r"^ *(\d{1,15}) +(\d{1,15}) (.{1,300})$", re.MULTILINE)
"""A row of `wc -lc`: lines, bytes, name."""


def report_run(stack: str, *, as_json: bool = False) -> int:
    """Print the report of a stack's run, or of what was fetched of it where nothing is rented; return 1 unless it has finished."""
    cluster = find_cluster(stack)
    if cluster:
        folder, facts = write_report(stack, cluster, launcher_of(cluster))
    else:
        folder, facts = _fetched_report(stack)
        note(f"nothing of stack {stack} is rented; read from its machines at {facts.get('read', 'an unknown time')}")
    if as_json:
        print_json(facts)
    else:
        say("\n".join(f"  {name + ':':<17}{value}" for name, value in facts.get("rows", ())))
        for one in [one for one in facts["checkpoint_files"] if one["flaw"]][: run_text.MOST_STEPS]:
            say(f"  {'suspected:':<17}{one['step']}: {one['flaw']}")
        say(f"  {'page:':<17}{os.path.relpath(folder / PAGE)}")
        for number, one in enumerate(() if is_part() else facts["answers"], start=1):
            say(f"{number:>3}. {one['question']} {one['answer']}")
        if facts["reason"] and not is_part():  # `make up` has printed it.
            say("\n".join(facts.get("trouble", ())))
        elif cluster and facts["state"] != "finished":
            suggest(f"`fab watch --stack {stack}` follows the run, which is {facts['state']}.")
    return 0 if facts["state"] == "finished" else FAILED


def write_report(stack: str, cluster: ClusterFacts, launcher: Host) -> tuple[Path, dict[str, Any]]:
    """Write the report of the run into the folder of what is fetched of it; return that, and what the report says."""
    from microcluster.display.report_page import page  # noqa: PLC0415 - drawing takes a tenth of every command's start

    outcome = remote_job.observe(launcher, cluster)
    if outcome.state == "absent":
        raise UserMistake(f"Stack {stack} has no run yet. Start it: make up STACK={stack}")
    records, cost, bill = report_records.read(launcher, cluster), cost_of(cluster), _bill(cluster)
    folder = RunFolder(cluster)
    metrics = folder.document.logs.metrics
    found = curves(records.events, folder.document.expected.eval_steps, metrics)
    answers = answers_of(folder, outcome, records, found, emulated=cost.emulated)
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
        "trains": folder.document.program.title,
        "world_size": len(cluster.hosts) * cluster.slots,
        "image": cluster.container.image if cluster.container else None,
        "labels": {metric.name: metric.label for metric in metrics},
        "answers": [asdict(answer) for answer in answers],
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
    return folder, facts


def _fetched_report(stack: str) -> tuple[Path, Mapping[str, Any]]:
    """Return the newest report of a stack on this computer."""
    folder = fetched_folder(stack, None, None).parent
    reports = reports_in(folder.parent, folder.name)
    if not reports:
        raise UserMistake(
            f"Stack {stack} is not up, and {folder} has no report of it, which `fab fetch` and `fab report` write while the machines are "
            f"there. Bring the stack up: make up STACK={stack}"
        )
    path = max(reports, key=lambda path: path.stat().st_mtime)
    return path.parent, reports[path]


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
    run: RunFolder, outcome: Outcome, records: Records, found: Curves, *, emulated: bool = False
) -> list[Answer]:
    """Answer the eleven questions of every report, in their order."""
    expected = run.document.expected
    printed = found.metrics.get("learning_rate") or found.metrics.get("lr") or ()  # By a program of one's own.
    rates = rewound(records.learning_rate) or printed
    network, relation = bottleneck.answers(samples.traffic(records.events), outcome.link)
    if emulated:
        network = replace(network, answer=f"{network.answer} The network is emulated.")
    return [
        run_questions.how_long(records.events),
        run_questions.trained_enough(found),
        run_questions.overfitted(found),
        run_questions.gpus_used(records.events, emulated=emulated),
        network,
        run_questions.rate(
            run.facts.job.planned_rate, expected.warmup_steps, outcome.step or 0, rates, expected.schedule
        ),
        _data_answer(records, run.data),
        *_checkpoint_answers(records, run.document.checkpoints.files if outcome.saves else None),
        _pace_answer(outcome),
        relation,
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
    question, text = "How large is the training set, in MB and lines?", latest(records.events, "data").get("text", "")
    if data is None:
        return Answer(question, "Unknown: the program brings its own data.")
    size, _, rows = text[:LONGEST_TEXT].partition("\t")
    if not size.isdecimal():
        return Answer(question, "Unknown: nothing has measured it; a run does when it has prepared its data.")
    counted = [(name, int(lines), int(size)) for lines, size, name in MEASURED.findall(rows) if name in data.files]
    parts = "; ".join(f"{name}: {lines:,} lines, {decimal(size)}" for name, lines, size in counted)
    text = f"{int(size):,} MB in {data.folder}, by du -sm. {parts}."
    return Answer(question, text, {"megabytes": int(size), "files": counted})


def _checkpoint_answers(records: Records, kinds: str | None) -> tuple[Answer, Answer]:
    """Say which files make a checkpoint, and how large one is."""
    question, how_large = "Which files make a checkpoint?", "How large is a checkpoint?"
    if kinds is None:
        return Answer(question, "None: the program writes no checkpoints."), Answer(how_large, "There is none.")
    events = [f"{path} ({decimal(size)})" for path, size in records.files if PurePath(path).name.startswith("events.")]
    if events:
        kinds += (
            f". Not needed to restore: the events file{'s' * (len(events) > 1)} for TensorBoard, {', '.join(events)}"
        )
    newest = next((one for one in records.checkpoints if not one.flaw and not one.best), None)
    if newest is None:
        return Answer(question, f"{kinds}."), Answer(how_large, "Unknown: there is no whole one yet.")
    parts = " + ".join(f"{kind} {decimal(size)}" for kind, size in newest.sizes.items())
    return Answer(question, f"{kinds}."), Answer(
        how_large, f"{parts} = {decimal(newest.size)}, that of step {newest.step}.", {"bytes": newest.sizes}
    )


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
