"""The lines of the log, byte for byte as OpenSeq2Seq writes them; readers of the log depend on each blank."""

from __future__ import annotations

MARK = "*** "
INDENT = "    "
TOLD_TIMES = 10


def note(text: str) -> str:
    """A line of its own."""
    return f"{MARK}{text}"


def detail(text: str) -> str:
    """A line below another."""
    return f"{MARK}{INDENT}{text}"


def train_loss(step: int, loss: float, seconds_per_step: float, epoch: int | None = None) -> str:
    """The loss and the time of a step: two lines, to be written at once."""
    where = f"Global step {step}:" if epoch is None else f"Epoch {epoch}, global step {step}:"
    loss_line = note(f"{where} {detail(f'Train loss: {loss:.4f} ')}")
    return f"{loss_line}\ntime per step = {clock(seconds_per_step)}"


def clock(seconds: float) -> str:
    """Hours, minutes and seconds as H:MM:S.mmm."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{int(hours)}:{int(minutes):02}:{rest:.3f}"


def validation(loss: float, bleu: float) -> str:
    """The two results of an evaluation; the spelling is upstream's."""
    return "\n".join([detail(f"Validation loss: {loss:.4f} "), detail(f"Eval BLUE score: {bleu}")])


def samples(kind: str, sentences: dict[str, str]) -> str:
    """One sentence as source, target and prediction; ``kind`` is "Train " or "*****EVAL "."""
    return "\n".join(detail(f"{kind}{name}[0]:     {text}") for name, text in sentences.items())


def on_worker(worker: int | None) -> str:
    """Which rank says it; nothing without Horovod."""
    return "" if worker is None else f" on worker {worker}"


def processed(batch: int, batches: int, worker: int | None) -> str:
    """The progress of an evaluation or inference that is a run of its own."""
    return note(f"Processed {batch}/{batches} batches{on_worker(worker)}")


def is_told(batch: int, batches: int) -> bool:
    """Whether the progress is said after a batch, counted from 1: after the first, and about ten times more."""
    return batch == 1 or (batches > TOLD_TIMES and batch % (batches // TOLD_TIMES) == 0)


def finished_reading(counted_steps: int, seconds: float, objects: float, worker: int | None) -> str:
    """The speed of an evaluation or inference that is a run of its own."""
    if counted_steps <= 0:
        return note(f"Not enough steps for benchmarking{on_worker(worker)}")
    pace = note(f"Avg time per step{on_worker(worker)}: {seconds / counted_steps:.3}s")
    return f"{pace}\n{note(f'Avg objects per second{on_worker(worker)}: {objects / seconds:.3f}')}"


def finished_training(counted_steps: int, seconds: float, objects: float) -> str:
    """The closing lines of a training run."""
    lines = [note("Finished training")]
    if counted_steps > 0:
        lines.append(note(f"Avg time per step: {seconds / counted_steps:.3f}s"))
        lines.append(note(f"Avg objects per second: {objects / seconds:.3f}"))
    else:
        lines.append(note("Not enough steps for benchmarking"))
    return "\n".join(lines)


def say(text: str) -> None:
    """Write whole lines at once, so that other ranks' lines fall between them and never into them."""
    print(text, flush=True)
