"""The stand-in trainer's arguments, configuration file and checks."""

import copy

import pytest
from open_seq2seq.models import Text2Text
from standin.command_line import overridden, parse_options
from standin.config_file import for_benchmark, merge, read_config
from standin.tensorflow_names import FLOAT32, LazyAdamOptimizer
from standin.validation import NotHonouredError, check_honoured, check_model, check_params, check_parts

from microcluster.jobs.openseq2seq.model import OpenSeq2SeqJob as Job
from microcluster.jobs.openseq2seq.model import render_config

VOCABULARY = 2048


@pytest.fixture
def config_file(tmp_path):
    job = Job(
        kind="openseq2seq",
        model="transformer-tiny",
        max_steps=300,
        precision="fp32",
        batch_per_gpu=16,
        eval_steps=100,
        checkpoint_steps=100,
        dataset="debian-en-de",
    )
    path = tmp_path / "config.py"
    path.write_text(render_config(job, "/data", "/data/runs/x/logdir"))
    return str(path)


@pytest.fixture
def train(config_file):
    return copy.deepcopy(read_config(config_file, []).merged("train"))


def test_the_rendered_configuration_runs_without_tensorflow_and_passes_every_check(config_file):
    config = read_config(config_file, [])
    assert (config.model, config.base["dtype"], config.base["optimizer"]) == (Text2Text, FLOAT32, LazyAdamOptimizer)
    for mode in ("train", "eval"):
        params = config.merged(mode)
        check_model(params, mode, config.model)
        check_parts(params, 16, VOCABULARY)
        check_honoured(params)


def test_a_modes_parameters_win_over_the_base_and_the_command_line(config_file):
    config = read_config(config_file, ["--batch_size_per_gpu=4", "--lr_policy_params/learning_rate=1.5"])
    assert config.merged("train")["batch_size_per_gpu"] == 4
    assert config.merged("eval")["batch_size_per_gpu"] == 16
    assert config.merged("train")["lr_policy_params"]["learning_rate"] == 1.5


def test_merging_reaches_into_nested_parameters_and_leaves_the_base_alone():
    base = {"a": {"b": 1, "c": 2}}
    assert merge(base, {"a": {"c": 3}}) == {"a": {"b": 1, "c": 3}}
    assert base == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize(("word", "value"), [("--use_horovod=True", True), ("--use_horovod=False", False)])
def test_a_boolean_is_read_as_a_python_literal(word, value):
    assert overridden({"use_horovod": None or False}, [word])["use_horovod"] is value


@pytest.mark.parametrize(
    "word", ["--use_horovod=true", "--use_horovod", "--unknown=1", "--optimizer=Adam", "--steps=x"]
)
def test_a_word_that_no_base_parameter_takes_ends_with_code_2(word):
    with pytest.raises(SystemExit) as ended:
        overridden({"use_horovod": True, "optimizer": LazyAdamOptimizer, "steps": 1}, [word])
    assert ended.value.code == 2


@pytest.mark.parametrize("mode", ["interactive_infer", "test"])
def test_a_mode_that_cannot_run_is_refused(mode):
    with pytest.raises(ValueError, match="Mode has to be one of|IPython"):
        parse_options(["--config_file=x", f"--mode={mode}"])


def test_the_default_mode_is_train_and_other_words_are_left_for_the_configuration():
    options, rest = parse_options(["--config_file=x", "--use_horovod=True", "--max_steps=5"])
    assert (options.mode, rest) == ("train", ["--use_horovod=True", "--max_steps=5"])


def test_a_benchmark_trains_a_few_steps_and_writes_nothing(train):
    params = for_benchmark(train, 20, None)
    assert (params["max_steps"], params["print_loss_steps"], params["bench_start"]) == (20, 1, 10)
    assert (params["logdir"], params["save_checkpoint_steps"], params["save_summaries_steps"]) == ("", None, None)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "size parameter has to be specified"),
        ({"size": "8"}, "size has to be of type <class 'int'>"),
        ({"size": 8, "rate": 0}, "rate has to be of type <class 'float'>"),
        ({"size": 8, "kind": "c"}, "kind has to be one of ['a', 'b']"),
        ({"size": 8, "other": 1}, "Unknown parameter: other"),
    ],
)
def test_the_first_wrong_parameter_is_named_with_upstreams_message(params, message):
    with pytest.raises(ValueError) as refused:
        check_params(params, {"size": int}, {"rate": float, "kind": ["a", "b"]})
    assert str(refused.value) == message


def test_a_boolean_passes_as_a_whole_number():
    check_params({"size": True}, {"size": int}, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_epochs": 2}, "both max_steps and num_epochs"),
        ({"print_samples_steps": 15}, "print_samples_steps has to be a multiple of print_loss_steps"),
        ({"loss_scaling": 512}, "loss_scaling has to be of type"),
        ({"use_horovod": False, "iter_size": 2}, "iter_size is only supported in Horovod mode"),
        ({"dtype": "half"}, "dtype has to be one of"),
        ({"automatic_loss_scaling": "Backoff"}, "Unknown parameter: automatic_loss_scaling"),
    ],
)
def test_the_model_refuses_parameters_that_contradict_each_other(train, change, message):
    with pytest.raises(ValueError, match=message):
        check_model({**train, **change}, "train", Text2Text)


def test_neither_steps_nor_epochs_is_refused_for_training(train):
    del train["max_steps"]
    with pytest.raises(ValueError, match="either max_steps or num_epochs"):
        check_model(train, "train", Text2Text)


def test_shuffling_is_refused_in_evaluation(config_file):
    params = read_config(config_file, []).merged("eval")
    params["data_layer_params"]["shuffle"] = True
    with pytest.raises(ValueError, match="[Ss]huffle"):
        check_model(params, "eval", Text2Text)


def test_an_encoder_parameter_of_the_wrong_type_is_refused(train):
    train["encoder_params"]["attention_dropout"] = 0
    with pytest.raises(ValueError, match="attention_dropout has to be of type <class 'float'>"):
        check_parts(train, 16, VOCABULARY)


@pytest.mark.parametrize(
    "change", [{"iter_size": 2}, {"max_grad_norm": 1.0}, {"load_model": "x"}, {"optimizer": "SGD"}]
)
def test_what_the_stand_in_would_not_carry_out_is_refused_by_name(train, change):
    with pytest.raises(NotHonouredError, match=next(iter(change))):
        check_honoured({**train, **change})
