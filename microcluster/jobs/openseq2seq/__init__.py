"""The kind ``openseq2seq``: NVIDIA's en-de Transformer, trained by OpenSeq2Seq over Horovod and Open MPI."""

from collections.abc import Mapping, Sequence

from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.contract import JobKind
from microcluster.jobs.launch.mpirun import WORLD, on_every_rank
from microcluster.jobs.openseq2seq import model, section, translation
from microcluster.jobs.openseq2seq.datasets import DATASETS, LARGEST_FINISHED_BYTES, NEEDED
from microcluster.jobs.openseq2seq.image import SOURCE, training_image
from microcluster.jobs.openseq2seq.model import OpenSeq2SeqJob
from microcluster.jobs.values import (
    GRADIENT_BYTES,
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
    Workload,
)


class OpenSeq2Seq(JobKind):
    """See `microcluster.jobs.contract.JobKind`."""

    name = "openseq2seq"
    runtimes = ("container",)
    section = section.OpenSeq2SeqSection
    facts = OpenSeq2SeqJob
    metrics = (
        Metric(
            "bleu", "BLEU", "bleu", "score", note="teacher-forced and on sentence pieces: no score of a translation"
        ),
        Metric("learning_rate", "learning rate", scalar="learning_rate"),
    )
    config_file = "config.py"
    checkpoint_files = (
        "checkpoint (which one is newest), .meta (the graph), .index (where each tensor lies), .data (the weights)"
    )
    translator = translation
    local_source = SOURCE

    def defaults(self, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Return what follows from model, image and GPU."""
        return section.defaults(sections, hardware)

    def problems(self, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what contradicts the container's image."""
        return section.problems(sections, ordering=ordering)

    def describe(self, job: OpenSeq2SeqJob) -> str:
        """Name model, data, precision and batch."""
        return f"{job.model} on {job.dataset}, {job.precision}, {job.batch_per_gpu} pairs per rank"

    def image(self, container: Container) -> Image:
        """Return the image with the trainer."""
        return training_image(container)

    def data(self, job: OpenSeq2SeqJob, mount_point: str) -> DataPlan:
        """Return the sentence pairs and the vocabulary."""
        data = DATASETS[job.dataset]
        vocabulary = (data.vocabulary, data.vocabulary_size)
        return DataPlan(
            model.data_id(job),
            model.data_folder(job, mount_point),
            *(data.files, data.optional, data.pairs, vocabulary, NEEDED, data.recipe, LARGEST_FINISHED_BYTES),
        )

    def identity(self, job: OpenSeq2SeqJob, mount_point: str) -> Mapping[str, object]:
        """Return the configuration and what names the data."""
        return {"config": model.render_config(job, mount_point, logdir="-"), "data": model.data_id(job)}

    def files(self, run: Run) -> Mapping[str, str]:
        """Return the configuration that ``run.py`` reads."""
        return {self.config_file: model.render_config(run.job, run.mount_point, f"{run.path}/logdir")}

    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return one mpirun on the launcher, which starts every rank."""
        return [on_every_rank(run, (*run.wrapper, *model.program(f"{run.path}/{self.config_file}", resume=resume)))]

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return the same mpirun with another program."""
        return [on_every_rank(run, (*argv, WORLD))]

    def reader(self, job: OpenSeq2SeqJob) -> AgentModule:
        """Return what reads the log of ``run.py``."""
        return AgentModule("openseq2seq")

    def checkpoints(self, job: OpenSeq2SeqJob) -> AgentModule:
        """Return what knows the framework's checkpoints."""
        return AgentModule("tensorflow")

    def schedule(self, job: OpenSeq2SeqJob) -> Schedule:
        """Return the steps between evaluations and between loss lines."""
        return Schedule(job.eval_steps, model.SIZES[job.model].print_steps, mixed=job.precision == "mixed")

    def workload(self, job: OpenSeq2SeqJob) -> Workload | None:
        """Return the published model's step; another data set has another vocabulary and other lengths."""
        parameters = model.PUBLISHED_PARAMETERS.get((job.model, job.dataset))
        if parameters is None:
            return None
        return Workload(job.model, job.precision, job.batch_per_gpu, GRADIENT_BYTES * parameters)

    def model_bytes(self, job: OpenSeq2SeqJob) -> int:
        """Return the size of all gradients."""
        return GRADIENT_BYTES * model.parameters(job)

    def checkpoint_bytes(self, job: OpenSeq2SeqJob) -> int:
        """Return the size of all variables."""
        return model.CHECKPOINT_BYTES * model.parameters(job)

    def learning_rate(self, job: OpenSeq2SeqJob, step: int) -> float:
        """Return the rate by the transformer's policy."""
        return model.learning_rate(job, step)

    def warmup_steps(self, job: OpenSeq2SeqJob) -> int:
        """Return how long the rate rises."""
        return model.SIZES[job.model].warmup_steps


KIND = OpenSeq2Seq()
