"""View of a run that goes on: a live panel, or plain lines where there is no terminal; it only reads."""

import time
from collections.abc import Callable

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.styled import Styled
from rich.table import Table

from microcluster.analysis.failure_hints import next_for
from microcluster.analysis.run_state import Outcome
from microcluster.core.plain_text import duration, note, say
from microcluster.display import preflight_table, run_text
from microcluster.display.console import PlainConsole
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.planning.run_cost import Cost
from microcluster.remote import job as remote_job
from microcluster.remote.errors import UnreachableError
from microcluster.remote.host import Host
from microcluster.run.cluster import cluster_of, cost_of, launcher_of
from microcluster.setup.errors import FAILED, INTERRUPTED, CommandFailed

LOOK_EVERY_S = 1.5
COST_EVERY_S = 15.0
PLAIN_LINE_EVERY_S = 10.0
UNCHANGED_LINE_EVERY_S = 30.0
LOST_LIMIT_S = 600.0
ABSENT_LIMIT_S = 60.0
USUAL_PREPARING = "it usually takes less than a minute"


def watch_run(stack: str, hold: Callable[[Outcome | None], None]) -> int:
    """Follow the run of a stack until it ends; Ctrl-C stops following and leaves the job running.

    Args:
        hold: called at every look; what it raises ends the following.
    """
    cluster = cluster_of(stack)
    console = PlainConsole()
    try:
        if not console.is_terminal:
            return ended(follow(cluster, PlainScreen(), launcher_of(cluster), hold=hold), stack)
        with Live(console=console, auto_refresh=True, transient=True) as live:
            outcome = follow(cluster, LiveScreen(live), launcher_of(cluster), hold=hold)
        say(run_text.headline(outcome))  # The live lines are gone.
        return ended(outcome, stack)
    except KeyboardInterrupt:
        say(
            f"\nStopped watching. The job keeps running, and the machines keep costing money. Watch again: fab watch "
            f"--stack {stack}; stop the job: fab stop --stack {stack}"
        )
        return INTERRUPTED


def follow(
    cluster: ClusterFacts,
    screen: "PlainScreen | LiveScreen",
    launcher: Host,
    cost: Callable[..., Cost] = cost_of,
    sleep: Callable[[float], None] = time.sleep,
    *,
    hold: Callable[[Outcome | None], None] = lambda _: None,
) -> Outcome:
    """Show the run until it ends and return its outcome; connect again after a lost connection.

    Raises:
        Exception: any of ``hold``, which is called at every look.
    """
    bill, billed, began = Cost(None, None), -COST_EVERY_S, time.monotonic()
    answered, shown_alarms = began, set()
    note_once = _once(screen.note)  # The bill is read four times a minute.
    while True:
        now = time.monotonic()
        try:
            outcome = remote_job.observe(launcher, cluster)
            answered = now
        except UnreachableError as error:
            if now - answered > LOST_LIMIT_S:
                raise
            screen.note(f"{error} Trying again; the job keeps running.")
            hold(None)
            sleep(LOOK_EVERY_S * 3)
            continue
        if now - billed >= COST_EVERY_S:
            bill, billed = cost(cluster, say=note_once), now
        if outcome.checks and (outcome.phase != "preflight" or outcome.state == "failed"):
            note_once(preflight_table.summary(outcome.checks, cluster.stack), "preflight")
        for text in outcome.put_aside:
            note_once(f"put aside: {text}")
        if outcome.remark:
            note_once(f"note: {run_text.remark(outcome, cluster.stack)}")
        for alarm in outcome.alarms:
            if alarm["cause"] not in shown_alarms:
                screen.note(f"alarm: {run_text.alarm_text(alarm, bill)}. {next_for(alarm['cause'], cluster.stack)}")
        shown_alarms = {alarm["cause"] for alarm in outcome.alarms}
        outlook = run_text.outlook(outcome, bill)
        if outlook:
            note_once(outlook, outlook.partition(":")[0])
        screen.show(outcome, bill)
        hold(outcome)
        if outcome.state in ("finished", "failed", "stopped", "stalled"):
            return outcome
        if outcome.state == "absent" and now - began > ABSENT_LIMIT_S:
            raise CommandFailed(
                f"stack {cluster.stack} has no run {cluster.run} on its launcher. Start it: make up STACK={cluster.stack}"
            )
        sleep(LOOK_EVERY_S)


def _once(note: Callable[[str], None]) -> Callable[..., None]:
    """Return a function that passes each text, or one of each kind, to ``note`` only once."""
    noted: set[str] = set()

    def once(text: str, kind: str = "") -> None:
        if (kind or text) not in noted:
            noted.add(kind or text)
            note(text)

    return once


def ended(outcome: Outcome, stack: str) -> int:
    """Print what to do next unless the run finished; return the exit code."""
    if outcome.state == "finished":
        return 0
    note("\n".join(run_text.trouble(outcome, stack)))
    return FAILED


def _usual(outcome: Outcome) -> str:
    """Return how long it usually takes, where nothing better is known."""
    return USUAL_PREPARING if outcome.state == "preparing" and not outcome.doing else ""


class PlainScreen:
    """Lines for a file or a pipe: at each phase and evaluation, else every few seconds; the cost when it changes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.phase: tuple[object, ...] = ()
        self.line = self.printed = self.cost = ""
        self.changed_at = self.printed_at = 0.0

    def show(self, outcome: Outcome, cost: Cost) -> None:
        now, phase = self.clock(), (outcome.state, outcome.phase, len(outcome.evaluations))
        usual = _usual(outcome)
        line = run_text.headline(outcome) + (f" ({usual})" if usual else "")
        if line != self.line:
            self.line, self.changed_at = line, now
        unchanged = line == self.printed
        every_s = UNCHANGED_LINE_EVERY_S if unchanged else PLAIN_LINE_EVERY_S
        if phase == self.phase and now - self.printed_at < every_s:
            return
        self.phase, self.printed, self.printed_at = phase, line, now
        if str(cost) != self.cost:
            self.cost = str(cost)
            say(f"cost: {cost}")
        say(f"{line} (no change for {duration(now - self.changed_at)})" if unchanged else line)

    def note(self, text: str) -> None:
        say(text)


class LiveScreen:
    """Three lines that are redrawn: progress and pace; losses; cost."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.spinner = Spinner("dots")

    def show(self, outcome: Outcome, cost: Cost) -> None:
        top = Table.grid(padding=(0, 1))
        if outcome.state == "running" and outcome.step is not None and outcome.max_steps:
            line = ", ".join([run_text.steps(outcome), *run_text.pace(outcome)])
            top.add_row(ProgressBar(outcome.max_steps, outcome.step, width=24), line)
        else:
            top.add_row(self.spinner, run_text.headline(outcome))
        lines = [", ".join(run_text.losses(outcome)) or _usual(outcome), f"cost: {cost}"]
        self.live.update(Group(top, *(Styled(f"  {line}", "dim") for line in lines if line)))

    def note(self, text: str) -> None:
        self.live.console.print(text)
