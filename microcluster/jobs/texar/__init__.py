"""The kind ``texar``: the distributed language model of Texar's examples, over Horovod and Open MPI."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microcluster.jobs.cluster_facts import Container, Data
from microcluster.jobs.contract import JobKind
from microcluster.jobs.launch.mpirun import WORLD, on_every_rank
from microcluster.jobs.rendering import render
from microcluster.jobs.texar import configurations, section
from microcluster.jobs.texar.image import SOURCE, training_image
from microcluster.jobs.texar.texts import FILES, LARGEST_BYTES, TEXTS, TRAIN
from microcluster.jobs.values import (
    GRADIENT_BYTES,
    NO_CHECKPOINTS,
    AgentModule,
    DataPlan,
    Hardware,
    Image,
    Metric,
    Origin,
    Process,
    Run,
    Schedule,
    Sections,
)

SCRIPT = "lm_ptb_distributed.py"
MODULE = "language_model"
"""The configuration's name for an import: none of the example's own modules, which lie beside the script, is called so."""
CHECKPOINT_BYTES = 4
"""Of one parameter: plain gradient descent keeps nothing beside it."""


@dataclass(frozen=True)
class TexarJob:
    """One training run; the fields are the keys of the stack file, and ``trainer`` is None for Texar itself."""

    kind: str
    config: str
    max_steps: int
    dataset: str
    global_batch: int
    sequence_length: int
    hidden_size: int
    keep_prob: float
    init_scale: float
    learning_rate: float
    decay_rate: float
    decay_start: int
    clip_norm: float
    trainer: str | None = None
    stall_s: int = 900
    keep: tuple[str, ...] = ()
    preflight: str = "run"
    data: Data | None = None


class Texar(JobKind):
    """See `microcluster.jobs.contract.JobKind`."""

    name = "texar"
    runtimes = ("container",)
    section = section.TexarSection
    facts = TexarJob
    metrics = (
        Metric("perplexity", "perplexity", note="of the training text, as it was learned"),
        Metric("validation_perplexity", "validation perplexity"),
        Metric("test_perplexity", "test perplexity"),
        Metric("words_per_second", "words per second", note="over all ranks"),
    )
    unit = "epoch"
    local_source = SOURCE
    result = "test_perplexity"
    config_file = f"{MODULE}.py"
    checkpoint_files = (
        "of our own language model only: .index (where each tensor lies), .meta (the graph), .data (the weights)"
    )

    def defaults(self, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Return what follows from the image and the configuration."""
        return section.defaults(sections, hardware)

    def problems(self, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what contradicts the number of ranks and the container's image."""
        return section.problems(sections, hardware, ordering=ordering)

    def describe(self, job: TexarJob) -> str:
        """Name configuration, size, text and batch."""
        layers = f"{configurations.LAYERS} layers of {job.hidden_size}"
        return f"LSTM language model {job.config}, {layers}, on {job.dataset}, batch {job.global_batch} over all ranks"

    def image(self, container: Container) -> Image:
        """Return the image with the program."""
        return training_image(container)

    def data(self, job: TexarJob, mount_point: str) -> DataPlan:
        """Return the three files; Texar itself insists on the number of different words."""
        text = TEXTS[job.dataset]
        name = job.data.id if job.data else job.dataset
        folder = f"{mount_point}/{text.folder}" + (f"-{job.data.id}" if job.data else "")
        words = (TRAIN, text.words) if text.exactly and not job.trainer else None
        return DataPlan(name, folder, FILES, (), (), None, (), text.recipe, LARGEST_BYTES, words)

    def identity(self, job: TexarJob, mount_point: str) -> Mapping[str, object]:
        """Return the configuration and what names the data."""
        return {"config": _rendered(job), "data": self.data(job, mount_point).id}

    def files(self, run: Run) -> Mapping[str, str]:
        """Return the configuration, which every rank imports by its name."""
        return {self.config_file: _rendered(run.job)}

    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return one mpirun on the launcher; our own program goes on from the newest checkpoint by itself."""
        job: TexarJob = run.job
        data = self.data(job, run.mount_point).folder
        words = ("env", f"PYTHONPATH={run.path}", "python", SCRIPT, "--config", MODULE, "--data_path", data)
        checkpoints = ("--checkpoint_dir", f"{run.path}/logdir") if job.trainer else ()
        return [on_every_rank(run, (*run.wrapper, *words, *checkpoints))]

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return the same mpirun with another program."""
        return [on_every_rank(run, (*argv, WORLD))]

    def reader(self, job: TexarJob) -> AgentModule:
        """Return what reads the log of the example."""
        return AgentModule("texar")

    def checkpoints(self, job: TexarJob) -> AgentModule:
        """Return what knows the checkpoints of our own program; Texar's writes none."""
        return AgentModule("tensorflow") if job.trainer else NO_CHECKPOINTS

    def schedule(self, job: TexarJob) -> Schedule:
        """Return that a loss follows each epoch, and its evaluation, which names its step, right after it."""
        return Schedule(print_steps=1)

    def model_bytes(self, job: TexarJob) -> int:
        """Return the size of the gradients that all ranks add up."""
        return GRADIENT_BYTES * configurations.exchanged_numbers(job.hidden_size, TEXTS[job.dataset].words)

    def checkpoint_bytes(self, job: TexarJob) -> int:
        """Return the size of all variables, or 0 for Texar itself."""
        numbers = configurations.parameters(job.hidden_size, TEXTS[job.dataset].words)
        return CHECKPOINT_BYTES * numbers if job.trainer else 0

    def learning_rate(self, job: TexarJob, step: int) -> float:
        """Return the rate of an epoch, counted from 1."""
        return job.learning_rate * job.decay_rate ** max(step - 1 - job.decay_start, 0)


def _rendered(job: TexarJob) -> str:
    shown = {"layers": configurations.LAYERS, "forget_bias": configurations.FORGET_BIAS}
    return render("texar/language_model.py.j2", job=job, **shown)


KIND = Texar()
