"""Run the processes of the training under the monitor, from the beginning or from a checkpoint."""

from agent import health_rules, resume
from agent.failure import Failed
from agent.monitor import Monitor
from agent.processes import end_all, run_all
from agent.readers import reader_of


def train(run, processes):
    """Run the ranks under the monitor, and leave none of them behind."""
    reader = reader_of(run.spec)
    monitor = Monitor(run, reader)
    monitor.begin()
    try:
        code, last = run_all(run, processes, lambda line: emit_all(run, monitor.observe(line, reader.read(line))))
    except Exception:  # The log could not be written, or what nobody thought of: the ranks would go on unseen.
        end_all(run)
        raise
    finally:
        monitor.leave()
    verdict = monitor.judgement(ended=True) if code else monitor.verdict or monitor.told_to_end()
    if code and run.spec.shared:
        verdict = monitor.drive_lost() or verdict
    if code and not verdict:
        verdict = monitor.silent() or monitor.read_exit_notes()
    if code or verdict:
        end_all(run)
    if verdict and verdict[0] == health_rules.RANK_DIED and monitor.ended_before_a_step():
        verdict = (verdict[0], verdict[1] + resume.blame(run), verdict[2])
    if verdict:
        raise Failed(verdict[0], verdict[1], code or 1, verdict[2])
    if code:
        who = last.name or last.role
        what = "training" if len(processes) == 1 else who + " on " + run.spec.names[last.node]
        raise Failed("training", what + " ended with exit code " + str(code), code, monitor.lines())
    monitor.finish_copies()
    if run.spec.shared and monitor.rules.not_copied:
        raise Failed(health_rules.NOT_COPIED, monitor.rules.not_copied, 1, [])


def emit_all(run, events):
    for event in events:
        run.emit(event)
