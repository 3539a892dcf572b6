"""The lines of the log, byte for byte as OpenSeq2Seq writes them; readers of the log depend on each blank."""


def note(text: str) -> str:
    """A line of its own."""
    return f"*** {text}"


def detail(text: str) -> str:
    """A line below another."""
    return f"***     {text}"


def train_loss(step: int, loss: float, seconds_per_step: float) -> str:
    """The loss and the time of a step: two lines, to be written at once."""
    minutes, seconds = divmod(seconds_per_step, 60)
    hours, minutes = divmod(int(minutes), 60)
    loss_line = note(f"Global step {step}: {detail(f'Train loss: {loss:.4f} ')}")
    return f"{loss_line}\ntime per step = {hours}:{minutes:02}:{seconds:.3f}"


def validation(loss: float, bleu: float) -> str:
    """The two results of an evaluation; the spelling is upstream's."""
    return "\n".join([detail(f"Validation loss: {loss:.4f} "), detail(f"Eval BLUE score: {bleu}")])


def samples(kind: str, sentences: dict[str, str]) -> str:
    """One sentence as source, target and prediction; ``kind`` is "Train " or "*****EVAL "."""
    return "\n".join(detail(f"{kind}{name}[0]:     {text}") for name, text in sentences.items())


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
