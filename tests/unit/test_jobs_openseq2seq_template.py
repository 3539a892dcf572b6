"""The rendered configuration is judged before it travels: each trap of OpenSeq2Seq is named with its reason."""

import pytest
from config_lint import problems
from launching import transformer

from microcluster.jobs import openseq2seq
from microcluster.jobs.openseq2seq import Job

JOB = transformer(
    model="transformer-base",
    maxSteps=50_000,
    batchPerGpu=128,
    evalSteps=4001,
    checkpointSteps=2000,
    dataset="wmt16-en-de",
)
MIXED = JOB.model_copy(update={"precision": "mixed", "batch_per_gpu": 256})


def rendered(job: Job = JOB) -> str:
    return job.configuration(f"/data/{openseq2seq.DATASETS[job.dataset].folder}", "/data/runs/x/logdir")


@pytest.mark.parametrize("model", openseq2seq.SIZES)
@pytest.mark.parametrize("precision", openseq2seq.DTYPES)
@pytest.mark.parametrize("dataset", openseq2seq.DATASETS)
def test_every_configuration_that_we_render_may_travel(model: str, precision: str, dataset: str) -> None:
    changed = {"model": model, "precision": precision, "dataset": dataset}
    assert problems(rendered(JOB.model_copy(update=changed))) == []


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('"use_horovod": True', '"use_horovod": False', "every rank would train for itself"),
        ('"max_steps": 50000,', '"max_steps": 50000, "num_epochs": 3,', "exactly one of max_steps"),
        ('"max_steps": 50000,', "", "exactly one of max_steps"),
        ('"print_samples_steps": 100', '"print_samples_steps": 150', "no multiple of print_loss_steps 100"),
        ('"print_loss_steps": 100', '"print_loss_steps": None', "nobody can tell that the run goes on"),
        ('"save_checkpoint_steps": 2000', '"save_checkpoint_steps": 299998', "a crash would lose hours"),
        ('"save_checkpoint_steps": 2000', '"save_checkpoint_steps": None', "neither checkpoints nor best models"),
        ('"eval_steps": 4001,', "", "eval_steps has to be set"),
        ('"dtype": tf.float32', '"dtype": "float32"', "the graph can be built with tf.float32"),
        ('"dtype": tf.float32', '"dtype": "mixed"', "small gradients vanish"),
        ('"dtype": tf.float32', '"dtype": tf.float32, "loss_scaling": 512.0', "no effect without 'mixed'"),
        ('"dtype": tf.float32', '"dtype": tf.float32, "loss_scale": 512.0', "it is called loss_scaling now"),
        ("\"logdir\": '/data/runs/x/logdir'", '"logdir": "logs/"', "absolute path"),
        ("data_root = '/data/wmt16_de_en/'", "data_root = '/data/wmt16_de_en'", "has to end with a slash"),
        ('"relu_dropout": 0.1', '"relu_dropout": 0', "relu_dropout is 0 and has to be a float"),
        ('"alpha": 0.6', '"alpha": 1', "alpha is 1 and has to be a float"),
        ('"batch_size_per_gpu": 128', '"batch_size_per_gpu": True', "a whole number above 0"),
        ('"use_horovod": True', '"use_horovod": False, "iter_size": 2', "iter_size works with use_horovod alone"),
        ('"num_heads": 8', '"num_heads": 7', "cannot be shared out among 7 heads"),
        ('"d_model": 512', '"d_model": 256', "is not the encoder's hidden_size 512"),
        ('"max_length": 56', '"max_length": 55, "pad_lengths_to_eight": True', "no multiple of eight"),
        ("base_model = Text2Text", "", "base_model is missing"),
        ('"max_steps": 50000', '"max_steps": 50_000', "no Python 3.5"),
        ("data_root = '/data", "data_root = f'/data", "no Python 3.5"),
        ("data_root = ", "data_root: str = ", "no Python 3.5"),
    ],
)
def test_each_trap_is_refused_with_its_reason(before: str, after: str, reason: str) -> None:
    text = rendered()
    assert before in text
    assert any(reason in problem for problem in problems(text.replace(before, after)))


@pytest.mark.parametrize("name", ["data_root", "base_params", "train_params", "eval_params"])
def test_a_name_where_a_value_has_to_be_written_out_is_refused(name: str) -> None:
    found = problems(f"{rendered()}\n{name} = tf.somewhere\n")
    assert len(found) == 1 and f"{name} is tf.somewhere and has to be" in found[0]


@pytest.mark.parametrize(("scaling", "reason"), [("512", "512 crashes"), ('"Twice"', "'Backoff', 'LogMax' or a float")])
def test_a_loss_scale_that_the_model_cannot_take_is_refused(scaling: str, reason: str) -> None:
    text = rendered(MIXED).replace("\"loss_scaling\": 'Backoff'", f'"loss_scaling": {scaling}')
    assert any(reason in problem for problem in problems(text))


@pytest.mark.parametrize(
    ("value", "reason"), [("'repeat': False", "end after one step"), ("'shuffle': True, 'repeat': True", "shuffle")]
)
def test_an_evaluation_that_would_end_the_run_is_refused(value: str, reason: str) -> None:
    head, _, evaluation = rendered().partition("eval_params = {")
    broken = evaluation.replace('"shuffle": False,\n        "repeat": True', f'"shuffle": False,\n        {value}')
    assert any(reason in problem for problem in problems(f"{head}eval_params = {{{broken}"))


def test_an_evaluation_with_nothing_to_compare_with_is_refused() -> None:
    head, _, evaluation = rendered().partition("eval_params = {")
    broken = evaluation.replace('"target_file"', '"other_file"')
    assert any("no target_file" in problem for problem in problems(f"{head}eval_params = {{{broken}"))
