"""Translating with a run's model: the argv, the configuration's additional part, and the score of the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.formats.checkpoints import tensorflow
from microcluster.jobs.rendering import render

BATCH = 16
MAX_LENGTH = 256
"""Sentence pieces; what is longer is cut by the data layer, as in the run's own evaluations."""
FORMAT = tensorflow
"""Module that lists the files of a checkpoint and says whether they are whole."""
CHECKPOINT = ".index"
"""Suffix of the one file that each checkpoint has; the rest of its name is the checkpoint's name."""
PIECES, VOCABULARY = "data/m_common.model", "data/m_common.vocab"
"""Paths in a fetched run: the model that cuts sentences into pieces, and the list of all pieces."""
BOARD = "translate.py"
"""For images/jetson, which has the run at /model and the text's pieces at /tmp/source."""


@dataclass(frozen=True)
class Score:
    """Quality of a translated text: a name for programs, and words for people that say how it was computed."""

    name: str
    value: float
    text: str
    signature: str


def inference(config_file: str, logdir: str, output: str) -> tuple[str, ...]:
    """Return the argv that translates the configuration's source with the model that ``logdir`` names, on one GPU."""
    words = ("python", "run.py", f"--config_file={config_file}", "--mode=infer", "--use_horovod=False")
    return (*words, f"--logdir={logdir}", f"--infer_output_file={output}")


def infer_params(vocabulary: str, source: str, *, batch: int = BATCH) -> str:
    """Return what is added to a run's configuration so that it translates ``source``."""
    return render(
        "openseq2seq/infer_params.py.j2", vocabulary=vocabulary, source=source, batch=batch, max_length=MAX_LENGTH
    )


def board_files(config: str) -> Mapping[str, str]:
    """Return the configuration for a board that translates one sentence at a time."""
    texts = {"vocabulary": f"/model/{VOCABULARY}", "source": "/tmp/source"}  # noqa: S108 - of the board's container
    return {BOARD: config + infer_params(**texts, batch=1)}


def pointer(checkpoint: str) -> Mapping[str, str]:
    """Return the file by which the framework finds a checkpoint, named without an ending."""
    return {"checkpoint": f'model_checkpoint_path: "{checkpoint}"\n'}


def score(lines: Sequence[str], reference: Sequence[str]) -> Score:
    """Compare translations with a reference, line by line."""
    import sacrebleu  # noqa: PLC0415 - a twentieth of a second that no other command has a use for

    found = sacrebleu.corpus_bleu(list(lines), [list(reference)])
    signature = f"sacreBLEU {sacrebleu.__version__}, 13a, mixed case, one reference"
    return Score("bleu", round(found.score, 2), found.format(), signature)
