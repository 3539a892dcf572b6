"""The kind ``texar``: the distributed language model of Texar's examples, over Horovod and Open MPI; its steps are epochs."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt
from pydantic.alias_generators import to_camel

from microcluster.jobs import mpirun
from microcluster.jobs.contract import GRADIENT_BYTES, Hardware, Origin, PinnedSource, Section, Sections
from microcluster.jobs.finished_data import FinishedData
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER, LOCAL_REPOSITORY, is_local, named_image, repository
from microcluster.jobs.plan import NO_CHECKPOINTS, DataPlan, Metric, Plan, World
from microcluster.jobs.rendering import render
from microcluster.jobs.texar.example import (
    CONFIGURATIONS,
    FILES,
    FORGET_BIAS,
    LARGEST_BYTES,
    LAYERS,
    TEXTS,
    TRAIN,
    exchanged_numbers,
    parameters,
)

BASE = "nvcr.io/nvidia/tensorflow:19.09-py3"
"""The first of NVIDIA's images with Python 3.6, which Texar 0.2.4 needs; it has TensorFlow 1.14 and Horovod."""
COMMIT = "0cce879591833a46ab844a9d5565383b270f1b15"
"""Of github.com/asyml/texar: the tag v0.2.4, of 2019-11-18."""
SOURCE = PinnedSource(
    program="Texar",
    variable="TEXAR_SOURCE",
    repository="https://github.com/asyml/texar",
    commit=COMMIT,
    release="0.2.4",
    content="dc78cd263d27",
    parts=("LICENSE", "texar", "examples/distributed_gpu"),
    folder="Texar",
)
STAND_IN_RELEASE = "stand-in 0.1.0"
EXAMPLE_FOLDER, STAND_IN_FOLDER = "/opt/texar/examples/distributed_gpu", "/opt/microcluster/language-model"
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
"""For our own program, and for Texar itself."""
VALID_WORDS = {"ptb": 73_760, "debian-en-10000": 4_700}
"""Of the shortest text of each. Where it gives a step, the words of an epoch, 929,589 and 68,723, give ten, and by a tenth of
them lm_ptb_distributed.py divides."""
EPOCHS = "epochs"


def _number(at_least: float, at_most: float) -> Any:
    return Annotated[float, Field(strict=True, ge=at_least, le=at_most)]


class Job(Section):
    """See `microcluster.jobs.contract.Section`."""

    local_source = SOURCE

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
        job, local = sections["job"], is_local(named_image(sections))
        held = SOURCE.among(hardware.local_programs) if local else None
        ours = job.get("trainer") == STAND_IN or not held
        original = f"not set: {held} in the local training image, {NO_CHECKPOINT}" if held else ORIGINAL
        found = {
            "job.config": Origin("tiny" if local else "small", IMAGE),
            "job.dataset": Origin(LOCAL_TEXTS[not ours], f"{IMAGE} and job.trainer") if local else Origin("ptb", IMAGE),
            "job.trainer": Origin(STAND_IN, ONLY_STAND_IN) if local and not held else Origin(None, original),
        }
        config = CONFIGURATIONS.get(str(job.get("config", found["job.config"].value)))
        values = dataclasses.asdict(config) if config else {}
        if values:
            found["job.maxSteps"] = Origin(values.pop(EPOCHS), f"{CONFIG}; a step is an epoch")
        return found | {f"job.{to_camel(name)}": Origin(value, CONFIG) for name, value in values.items()}

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what contradicts the cluster and the container; a preview may name a base on which the image cannot be built."""
        job, image = sections["job"], named_image(sections)
        found = _problems_of_batch(job.get("globalBatch"), hardware.ranks)
        if is_local(image):
            return found if job.get("trainer") == STAND_IN else found + _problems_of_words(job) + _problems_of_text(job)
        found += _problems_of_text(job)
        if job.get("trainer") == STAND_IN:
            found.append(f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds it; leave trainer out")
        if job.get("dataset") in LOCAL_TEXTS:
            found.append(
                f"job/dataset: only the local training image ({LOCAL_REPOSITORY}) holds {job['dataset']}; use ptb"
            )
        base = BASE.partition(":")[0]
        if ordering and f"{base.partition('/')[0]}/{repository(image)}" == base and image != BASE and "@" not in image:
            found.append(
                f"container/image: {image} has not the Python and TensorFlow for which templates/texar/Dockerfile pins the job's "
                f"packages; use {BASE}"
            )
        return found

    @property
    def _is_ours(self) -> bool:
        """Whether our own language model trains, which writes checkpoints, and not Texar itself."""
        return self.trainer == STAND_IN

    def plan(self, world: World) -> Plan:
        """Decide everything about the run."""
        data, text = self._data(world), TEXTS[self.dataset]
        local = is_local(world.image or "")
        trainer = (world.trainer or STAND_IN_RELEASE) if local else SOURCE.name
        folder = EXAMPLE_FOLDER if not local else LOCAL_PROGRAM_FOLDER if world.trainer else STAND_IN_FOLDER
        program = ("env", f"PYTHONPATH={world.path}", "python", SCRIPT, "--config", MODULE, "--data_path", data.folder)
        checkpoints = ("--checkpoint_dir", world.logdir) if self._is_ours else ()
        # Our own program goes on from the newest checkpoint by itself.
        ranks = mpirun.on_every_rank(world, (*world.noted, *program, *checkpoints))
        exchanged = GRADIENT_BYTES * exchanged_numbers(self.hidden_size, text.words)
        size = CHECKPOINT_BYTES * parameters(self.hidden_size, text.words) if self._is_ours else 0
        return Plan(
            title=(
                f"LSTM language model {self.config}, {LAYERS} layers of {self.hidden_size}, on {self.dataset}, batch "
                f"{self.global_batch} over all ranks"
            ),
            trainer=trainer,
            program_folder=folder,
            config_file=CONFIG_FILE,
            files={CONFIG_FILE: _configuration(self)},
            identity={"config": _configuration(self.model_copy(update={"max_steps": 0})), "data": data.id},
            processes=ranks,
            resume_processes=ranks,
            collective=mpirun.on_every_rank(world, world.preflight("python", CONFIG_FILE, exchanged, mpirun.WORLD)),
            reader="texar",
            checkpoints="tensorflow" if self._is_ours else NO_CHECKPOINTS,
            checkpoint_files=(
                "of our own language model only: .index (where each tensor lies), .meta (the graph), .data (the weights)"
            ),
            ranks=world.ranks,
            dockerfile=render("texar/Dockerfile", base=world.image, trainer=trainer, commit=COMMIT, bare=not local),
            data=data,
            metrics=METRICS,
            unit="epoch",
            result="test_perplexity",
            # A loss follows each epoch, and its evaluation, which names its step, right after it.
            print_steps=1,
            model_bytes=exchanged,
            checkpoint_bytes=size,
            learning_rate=self._learning_rate,
        )

    def _data(self, world: World) -> DataPlan:
        """Return the three files; Texar itself insists on the number of different words."""
        text = TEXTS[self.dataset]
        brought = f"-{world.data_id}" if world.data_id else ""
        words = (TRAIN, text.words) if text.exactly and not self._is_ours else None
        folder = f"{world.mount_point}/{text.folder}{brought}"
        return DataPlan(world.data_id or self.dataset, folder, FILES, text.recipe, LARGEST_BYTES, words=words)

    def _learning_rate(self, epoch: int) -> float:
        """Return the rate of an epoch, counted from 1."""
        return self.learning_rate * self.decay_rate ** max(epoch - 1 - self.decay_start, 0)


def _configuration(job: Job) -> str:
    return render("texar/language_model.py.j2", job=job, layers=LAYERS, forget_bias=FORGET_BIAS)


def _problems_of_words(job: Mapping[str, Any]) -> list[str]:
    """Texar itself asserts the number of different words."""
    few, enough = LOCAL_TEXTS
    if job.get("dataset") != few:
        return []
    return [
        f"job/dataset: Texar trains on exactly 10,000 different words, and {few} has 1,000; use {enough}, or trainer: stand-in"
    ]


def _problems_of_text(job: Mapping[str, Any]) -> list[str]:
    """Refuse what leaves Texar's program without a step."""
    batch, length = job.get("globalBatch"), job.get("sequenceLength")
    words = VALID_WORDS.get(str(job.get("dataset")))
    if not words or type(batch) is not int or type(length) is not int or batch < 1 or length < 1:
        return []
    longest = words // batch - 1
    if length <= longest:
        return []
    return [
        f"job/sequenceLength: {length} words with globalBatch {batch} leave no step in the {words} words by which Texar's "
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
