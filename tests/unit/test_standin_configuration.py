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
    config = read_config(config_file, ["--batch_size_per_gpu=4", "--lr_policy_params/learning_rate=1.5"])
    assert config.merged("train")["batch_size_per_gpu"] == 4
    assert config.merged("eval")["batch_size_per_gpu"] == 16
    assert config.merged("train")["lr_policy_params"]["learning_rate"] == 1.5


@pytest.mark.parametrize(("word", "value"), [("--use_horovod=True", True), ("--use_horovod=False", False)])
def test_a_boolean_is_read_as_a_python_literal(word, value):
    assert overridden({"use_horovod": False}, [word])["use_horovod"] is value


@pytest.mark.parametrize(
    "word", ["--use_horovod=true", "--use_horovod", "--unknown=1", "--optimizer=Adam", "--steps=x", "--benchmark"]
)
def test_a_word_that_no_base_parameter_takes_ends_with_code_2(word):
    with pytest.raises(SystemExit) as ended:
        overridden({"use_horovod": True, "optimizer": LazyAdamOptimizer, "steps": 1}, [word])
    assert ended.value.code == 2


def test_a_mode_that_cannot_run_is_refused():
    with pytest.raises(ValueError, match="Mode has to be one of"):
        parse_options(["--config_file=x", "--mode=interactive_infer"])


def test_the_default_mode_is_train_and_other_words_are_left_for_the_configuration():
    options, rest = parse_options(["--config_file=x", "--use_horovod=True", "--max_steps=5"])
    assert (options.mode, rest) == ("train", ["--use_horovod=True", "--max_steps=5"])


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


def test_a_boolean_passes_as_a_whole_number_and_what_has_no_kind_as_anything():
    check({"size": True, "any": object()}, Part)


@pytest.mark.parametrize(
    "change",
    [
        {"iter_size": 2},
        {"num_epochs": 2},
        {"num_gpus": 2},
        {"loss_scaling": 512},
        {"dtype": "half"},
        {"optimizer": "SGD"},
    ],
)
def test_what_the_stand_in_would_not_carry_out_is_refused_by_name(train, change):
    with pytest.raises(ValueError, match=next(iter(change))):
        check({**train, **change}, Text2Text)


def test_a_parameter_of_a_part_is_checked_as_well(config_file):
    config = read_config(config_file, [])
    config.base["encoder_params"]["attention_dropout"] = 0
    with pytest.raises(ValueError, match="attention_dropout has to be of type <class 'float'>"):
        config.merged("train")
