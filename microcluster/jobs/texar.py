"""The kind ``texar``: the distributed language model of Texar's examples, over Horovod and Open MPI; its steps are epochs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt
from pydantic.alias_generators import to_camel

from agent.run.document import NO_CHECKPOINTS, Metric, RunDocument
from microcluster.jobs.finished_data import DataPlan, FinishedData
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER, LOCAL_REPOSITORY, is_local, named_image, repository
from microcluster.jobs.job_section import GRADIENT_BYTES, Hardware, Origin, PinnedSource, Section, Sections, disk_bytes
from microcluster.jobs.mpirun import by_mpirun
from microcluster.jobs.ranks import RankCommand
from microcluster.jobs.rendering import render

BASE = "nvcr.io/nvidia/tensorflow:19.09-py3"
"""The first of NVIDIA's images with Python 3.6, which Texar 0.2.4 needs; it has TensorFlow 1.14 and Horovod."""
COMMIT = "0cce879591833a46ab844a9d5565383b270f1b15"
"""Of github.com/asyml/texar: the tag v0.2.4, of 2019-11-18."""
STAND_IN_RELEASE = "stand-in 0.1.0"
SOURCE = PinnedSource(
    program="Texar",
    name="Texar 0.2.4",
    variable="TEXAR_SOURCE",
    repository="https://github.com/asyml/texar",
    commit=COMMIT,
    content="dc78cd263d27",
    parts=("LICENSE", "texar", "examples/distributed_gpu"),
    folder="Texar",
    stand_in=STAND_IN_RELEASE,
)
PROGRAM_FOLDERS = {None: "/opt/texar/examples/distributed_gpu", STAND_IN_RELEASE: "/opt/microcluster/language-model"}
"""Folder of the program by the trainer of the local training image; None in every other image."""
SCRIPT = "lm_ptb_distributed.py"
MODULE = "language_model"
"""The configuration's name for an import: none of the example's own modules, which lie beside the script, is called so."""
CONFIG_FILE = f"{MODULE}.py"
CHECKPOINT_BYTES = 4
"""Of one parameter: plain gradient descent keeps nothing beside it."""
METRICS = (
    Metric("perplexity", "perplexity", note="of the training text, as it was learned"),
    Metric("validation_perplexity", "validation perplexity"),
    Metric("test_perplexity", "test perplexity"),
    Metric("words_per_second", "words per second", note="over all ranks"),
)
STAND_IN = "stand-in"
IMAGE, CONFIG = "follows from container.image", "follows from job.config"
NO_CHECKPOINT = "which writes no checkpoint: a run that ends early starts over"
ORIGINAL = f"not set: Texar's lm_ptb_distributed.py, {NO_CHECKPOINT}"
ONLY_STAND_IN = (
    "the local training image holds no Texar, but our own language model, which writes checkpoints; TEXAR_SOURCE=... make images "
    "brings Texar"
)
LOCAL_TEXTS = ("debian-en", "debian-en-10000")
"""Texts of the local training image for our own program, and for Texar itself."""
TRAIN = "ptb.train.txt"
FILES = (TRAIN, "ptb.valid.txt", "ptb.test.txt")
"""The names that Texar's ``ptb_reader.py`` opens; where one is missing, every rank would download it."""
ORIGINAL_VOCABULARY = 10_000
"""Number of different words that Texar asserts of the training text, with the end of a line as a word."""
LARGEST_BYTES = 10**9
CORPUS = "file:///opt/microcluster/corpus"
"""Folder of the texts in the local training image."""


@dataclass(frozen=True)
class Configuration:
    """One configuration, by the names of the stack file.

    Attributes:
        epochs: passes over the training text, which are the run's steps.
        global_batch: rows of text of all ranks together; each rank gets an equal share.
        sequence_length: words of a row in one update.
        keep_prob: of dropout.
        decay_rate, decay_start: the learning rate is multiplied by the one for each epoch after the other.
        clip_norm: of all gradients together.
    """

    epochs: int
    init_scale: float
    hidden_size: int
    keep_prob: float
    global_batch: int
    sequence_length: int
    learning_rate: float
    decay_rate: float
    decay_start: int
    clip_norm: float


LAYERS = 2
FORGET_BIAS = 0.0
CONFIGURATIONS = {
    "tiny": Configuration(8, 0.1, 64, 1.0, 20, 20, 1.0, 0.7, 4, 5.0),
    # The values of Texar's config_small.py, config_medium.py and config_large.py, at the commit of SOURCE.
    "small": Configuration(13, 0.1, 200, 1.0, 20, 20, 1.0, 0.5, 3, 5.0),
    "medium": Configuration(39, 0.05, 650, 0.5, 20, 35, 1.0, 0.8, 5, 5.0),
    "large": Configuration(55, 0.04, 1500, 0.35, 20, 35, 1.0, 1 / 1.15, 14, 10.0),
}


def exchanged_numbers(hidden_size: int, vocabulary_size: int) -> int:
    """Return how many numbers all ranks add up in an update: all but the embedding, whose gradient is sparse."""
    layer = 2 * hidden_size * 4 * hidden_size + 4 * hidden_size
    return LAYERS * layer + (hidden_size + 1) * vocabulary_size


@dataclass(frozen=True)
class Text:
    """One text.

    Attributes:
        folder: below the mount point.
        words: about how many different ones it has.
        recipe: the tar that holds the files, as agent/data/staging.py reads it.
        valid_words: of its shortest file, where Texar itself takes the text. Where that gives a step, the words of an epoch, 929,589 and
            68,723, give ten, and by a tenth of them lm_ptb_distributed.py divides.
    """

    folder: str
    words: int
    recipe: Mapping[str, Any]
    valid_words: int | None = None


def _tar(name: str, address: str) -> dict[str, Any]:
    return {"kind": "tar", "archives": [{"name": name, "address": address, "most_bytes": LARGEST_BYTES}]}


# The archive that the example itself names, over https; nobody publishes a sum of it.
PTB = _tar("simple-examples.tgz", "https://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz")
TEXTS = {
    "ptb": Text("ptb", ORIGINAL_VOCABULARY, PTB, 73_760),
    # The English side of the sentences of Debian's translations, which the local training image carries with their licences.
    "debian-en": Text("debian_en", 1000, _tar("words.tar", f"{CORPUS}/words.tar")),
    # Of the same sentences, with as many different words as Texar itself insists on.
    "debian-en-10000": Text(
        "debian_en_10000", ORIGINAL_VOCABULARY, _tar("words-10000.tar", f"{CORPUS}/words-10000.tar"), 4_700
    ),
}


def _number(at_least: float, at_most: float) -> Any:
    return Annotated[float, Field(strict=True, ge=at_least, le=at_most)]


class Job(Section):
    """See `microcluster.jobs.job_section.Section`."""

    local_source = SOURCE
    config_file = CONFIG_FILE

    kind: Literal["texar"]
    config: Literal["tiny", "small", "medium", "large"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=1000)]
    dataset: Literal["ptb", "debian-en", "debian-en-10000"]
    global_batch: Annotated[StrictInt, Field(ge=1, le=4096)]
    sequence_length: Annotated[StrictInt, Field(ge=1, le=1000)]
    hidden_size: Annotated[StrictInt, Field(ge=1, le=8192)]
    keep_prob: _number(0.01, 1)
    init_scale: _number(0.0001, 1)
    learning_rate: _number(0.000001, 100)
    decay_rate: _number(0.001, 1)
    decay_start: Annotated[StrictInt, Field(ge=0, le=1000)]
    clip_norm: _number(0.01, 1000)
    trainer: Literal["stand-in"] | None = None
    data: FinishedData | None = None

    @classmethod
    def defaults(cls, sections: Sections, hardware: Hardware) -> dict[str, Origin]:
        """Return what follows from the image and the configuration; what is invalid is left for the validation."""
        job, local, held = sections["job"], is_local(named_image(sections)), SOURCE.among(hardware.local_programs)
        config, dataset, trainer = Origin("small", IMAGE), Origin("ptb", IMAGE), Origin(None, ORIGINAL)
        if local:
            config, trainer = Origin("tiny", IMAGE), Origin(STAND_IN, ONLY_STAND_IN)
            if held:
                trainer = Origin(None, f"not set: {held} in the local training image, {NO_CHECKPOINT}")
            ours, whole = LOCAL_TEXTS
            is_ours = STAND_IN in (trainer.value, job.get("trainer"))
            dataset = Origin(ours if is_ours else whole, f"{IMAGE} and job.trainer")
        found = {"job.config": config, "job.dataset": dataset, "job.trainer": trainer}
        chosen = CONFIGURATIONS.get(str(job.get("config", config.value)))
        if chosen:
            found["job.maxSteps"] = Origin(chosen.epochs, f"{CONFIG}; a step is an epoch")
            values = {name: value for name, value in vars(chosen).items() if name != "epochs"}
            found |= {f"job.{to_camel(name)}": Origin(value, CONFIG) for name, value in values.items()}
        return found

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what contradicts the cluster and the container; a preview may name a base on which the image cannot be built."""
        job, image = sections["job"], named_image(sections)
        local, is_ours = is_local(image), job.get("trainer") == STAND_IN
        found = _problems_of_batch(job.get("globalBatch"), hardware.ranks)
        if not (local and is_ours):
            found += _problems_of_text(job)
        few, enough = LOCAL_TEXTS
        if local and not is_ours and job.get("dataset") == few:
            found.append(
                f"job/dataset: Texar trains on exactly 10,000 different words, and {few} has 1,000; use {enough}, or trainer: stand-in"
            )
        if is_ours and not local:
            found.append(f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds it; leave trainer out")
        if job.get("dataset") in LOCAL_TEXTS and not local:
            found.append(
                f"job/dataset: only the local training image ({LOCAL_REPOSITORY}) holds {job['dataset']}; use ptb"
            )
        if ordering and repository(image) == repository(BASE) and image != BASE and "@" not in image:
            found.append(
                f"container/image: {image} has not the Python and TensorFlow for which templates/texar/Dockerfile pins the job's "
                f"packages; use {BASE}"
            )
        return found

    def planned_rate(self, step: int) -> float:
        """Return the rate of an epoch, counted from 1."""
        return self.learning_rate * self.decay_rate ** max(step - 1 - self.decay_start, 0)

    def data_of(self, disk: str, brought: str | None) -> DataPlan:
        """Return the three files; Texar itself insists on the number of different words."""
        text = TEXTS[self.dataset]
        words = (TRAIN, text.words) if text.words == ORIGINAL_VOCABULARY and self.trainer != STAND_IN else None
        folder = f"{disk}/{text.folder}" + (f"-{brought}" if brought else "")
        return DataPlan(brought or self.dataset, folder, FILES, text.recipe, LARGEST_BYTES, words=words)

    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: one mpirun starts all ranks, and a step is an epoch."""
        text, trainer = TEXTS[self.dataset], begun.program.trainer
        words = ("env", f"PYTHONPATH={begun.folder}", "python", SCRIPT, "--config", MODULE)
        words += ("--data_path", begun.data.folder)
        checkpoints, size, exchanged = NO_CHECKPOINTS, 0, exchanged_numbers(self.hidden_size, text.words)
        if self.trainer == STAND_IN:  # It goes on from the newest checkpoint by itself.
            words += ("--checkpoint_dir", f"{begun.folder}/logdir")
            checkpoints, size = "tensorflow", CHECKPOINT_BYTES * (exchanged + self.hidden_size * text.words)
        gradients = GRADIENT_BYTES * exchanged
        command = RankCommand(words, words, "python", CONFIG_FILE, model_bytes=gradients)
        program = begun.program._replace(
            title=(
                f"LSTM language model {self.config}, {LAYERS} layers of {self.hidden_size}, on {self.dataset}, batch "
                f"{self.global_batch} over all ranks"
            ),
            trainer=trainer or SOURCE.name,
            folder=PROGRAM_FOLDERS.get(trainer, LOCAL_PROGRAM_FOLDER),
            **by_mpirun(begun, command),
        )
        return begun._replace(
            program=program,
            logs=begun.logs._replace(reader="texar", metrics=METRICS, unit="epoch", result="test_perplexity"),
            checkpoints=begun.checkpoints._replace(
                format=checkpoints,
                files="of our own language model only: .index (where each tensor lies), .meta (the graph), .data (the weights)",
            ),
            limits=begun.limits._replace(disk_bytes=disk_bytes(size)),
            # A loss follows each epoch, and its evaluation, which names its step, right after it.
            expected=begun.expected._replace(
                print_steps=1,
                model_bytes=gradients,
                schedule=(
                    f"By {CONFIG_FILE} it is {self.learning_rate} without warm-up up to epoch {self.decay_start + 1}, and "
                    f"{self.decay_rate} times that of the epoch before from then on, so that the loss can settle."
                ),
            ),
        )

    def dockerfile(self, base: str, trainer: str | None) -> str:
        """Install the trainer, which the local image holds already."""
        name = trainer or SOURCE.name
        return render("texar/Dockerfile", base=base, trainer=name, commit=COMMIT, bare=trainer is None)

    def configuration(self, data_folder: str, logdir: str, files: Mapping[str, str] | str) -> str:
        """Return the Python file that the script imports."""
        return render("texar/language_model.py.j2", job=self, layers=LAYERS, forget_bias=FORGET_BIAS)


def _problems_of_text(job: Mapping[str, Any]) -> list[str]:
    """Refuse what leaves Texar's program without a step."""
    text, batch, length = TEXTS.get(str(job.get("dataset"))), job.get("globalBatch"), job.get("sequenceLength")
    if not text or not text.valid_words or type(batch) is not int or type(length) is not int or batch < 1:
        return []
    longest = text.valid_words // batch - 1
    if length <= longest:
        return []
    return [
        f"job/sequenceLength: {length} words with globalBatch {batch} leave no step in the {text.valid_words} words by which Texar's "
        f"program is evaluated; with this batch at most {longest}, or use a smaller batch"
    ]


def _problems_of_batch(batch: Any, ranks: int | None) -> list[str]:
    """Apply the rule of Texar's reader: it makes as many shards as a shard has rows, and the last rank needs one."""
    if not ranks or type(batch) is not int:
        return []
    if batch % ranks:
        return [
            f"job/globalBatch: {batch} is the batch of all ranks together, and {ranks} ranks cannot share it equally"
        ]
    if ranks > batch // ranks:
        return [
            f"job/globalBatch: {batch} rows of all ranks together are {batch // ranks} for each of {ranks} ranks, and Texar's reader "
            f"needs at least as many rows for each rank as there are ranks; use {ranks * ranks} or fewer GPUs"
        ]
    return []
