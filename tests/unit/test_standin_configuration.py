"""The stand-in trainer's arguments and configuration file."""

import sys

import pytest
from launching import transformer
from standin.configuration import merge, parse_options, read_config


def test_the_rendered_configuration_is_read_without_tensorflow_and_a_modes_parameters_win_over_the_base(tmp_path):
    path = tmp_path / "config.py"
    path.write_text(transformer(batchPerGpu=4).configuration("/data/debian_en_de", "/data/runs/x/logdir"))
    config = read_config(str(path))
    assert "tensorflow" not in sys.modules
    assert (config["base_params"]["dtype"], config["base_params"]["optimizer"]) == ("float32", "Adam")
    train, evaluation = (merge(config["base_params"], config[f"{mode}_params"]) for mode in ("train", "eval"))
    assert (train["batch_size_per_gpu"], evaluation["batch_size_per_gpu"]) == (4, 16)
    assert (train["data_layer_params"]["shuffle"], evaluation["data_layer_params"]["shuffle"]) == (True, False)


def test_what_is_merged_leaves_the_base_as_it_is_in_nested_parameters_too():
    base = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge(base, {"a": {"b": 5}}) == {"a": {"b": 5, "c": 2}, "d": 3}
    assert base == {"a": {"b": 1, "c": 2}, "d": 3}


@pytest.mark.parametrize(
    "words", [["--mode=eval"], [], ["--mode=infer", "--max_steps=5"], ["--mode=infer", "--use_horovod"]]
)
def test_a_mode_that_there_is_not_and_a_word_that_means_nothing_end_with_code_2(words):
    with pytest.raises(SystemExit) as ended:
        parse_options(["--config_file=x", *words])
    assert ended.value.code == 2


def test_the_words_of_a_training_and_of_a_translation_are_taken():
    train = parse_options(["--config_file=x", "--use_horovod=True", "--mode=train_eval", "--continue_learning"])
    assert (train.mode, train.continue_learning, train.logdir) == ("train_eval", True, None)
    infer = parse_options(
        ["--config_file=x", "--mode=infer", "--use_horovod=False", "--logdir=y", "--infer_output_file=z"]
    )
    assert (infer.mode, infer.logdir, infer.infer_output_file) == ("infer", "y", "z")
