"""The stand-in trainer's arguments, configuration file and checks."""

import copy

import pytest
from launching import transformer
from standin.configuration import check, overridden, parse_options, read_config
from standin.upstream_names import DType, LazyAdamOptimizer, Text2Text


@pytest.fixture
def config_file(tmp_path):
    job = transformer()
    path = tmp_path / "config.py"
    path.write_text(job.configuration("/data/debian_en_de", "/data/runs/x/logdir"))
    return str(path)


@pytest.fixture
def train(config_file):
    return copy.deepcopy(read_config(config_file, []).merged("train"))


def test_the_rendered_configuration_is_read_without_tensorflow_and_passes_every_check(config_file):
    config = read_config(config_file, [])
    assert (config.model, config.base["dtype"], config.base["optimizer"]) == (
        Text2Text,
        DType.float32,
        LazyAdamOptimizer,
    )
    assert config.merged("train")["data_layer_params"]["shuffle"] is True
    assert config.merged("eval")["data_layer_params"]["shuffle"] is False


def test_a_modes_parameters_win_over_the_base_and_the_command_line(config_file):
    words = ["--batch_size_per_gpu=4", "--lr_policy_params/learning_rate=1.5", "--use_horovod=False"]
    config = read_config(config_file, words)
    assert config.base["use_horovod"] is False, "a boolean is read as a literal"
    assert config.merged("train")["batch_size_per_gpu"] == 4
    assert config.merged("eval")["batch_size_per_gpu"] == 16
    assert config.merged("train")["lr_policy_params"]["learning_rate"] == 1.5


def test_the_default_mode_is_train_other_words_are_left_for_the_configuration_and_no_other_mode_runs():
    options, rest = parse_options(["--config_file=x", "--use_horovod=True", "--max_steps=5"])
    assert (options.mode, rest) == ("train", ["--use_horovod=True", "--max_steps=5"])
    with pytest.raises(ValueError, match="Mode has to be one of"):
        parse_options(["--config_file=x", "--mode=interactive_infer"])


@pytest.mark.parametrize(
    "word", ["--use_horovod=true", "--use_horovod", "--unknown=1", "--optimizer=Adam", "--steps=x", "--benchmark"]
)
def test_a_word_that_no_base_parameter_takes_ends_with_code_2(word):
    with pytest.raises(SystemExit) as ended:
        overridden({"use_horovod": True, "optimizer": LazyAdamOptimizer, "steps": 1}, [word])
    assert ended.value.code == 2


class Part:
    required = {"size": int}
    optional = {"rate": float, "kind": ["a", "b"], "any": None}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "size parameter has to be specified"),
        ({"size": "8"}, "size has to be of type <class 'int'>"),
        ({"size": 8, "rate": 0}, "rate has to be of type <class 'float'>"),
        ({"size": 8, "kind": "c"}, "kind has to be one of ['a', 'b']"),
        ({"size": 8, "other": 1}, "Unknown parameter: other (the stand-in trainer knows fewer than OpenSeq2Seq)"),
    ],
)
def test_the_first_wrong_parameter_is_named_with_upstreams_message(params, message):
    with pytest.raises(ValueError) as refused:
        check(params, Part)
    assert str(refused.value) == message
    check({"size": True, "any": object()}, Part)  # A boolean is a whole number, and what has no kind is anything.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("iter_size", 2), ("num_epochs", 2), ("num_gpus", 2), ("loss_scaling", 512)),
        *(("dtype", "half"), ("optimizer", "SGD")),
    ],
)
def test_what_the_stand_in_would_not_carry_out_is_refused_by_name(train, name, value):
    with pytest.raises(ValueError, match=name):
        check({**train, name: value}, Text2Text)


def test_a_parameter_of_a_part_is_checked_as_well(config_file):
    config = read_config(config_file, [])
    config.base["encoder_params"]["attention_dropout"] = 0
    with pytest.raises(ValueError, match="attention_dropout has to be of type <class 'float'>"):
        config.merged("train")
