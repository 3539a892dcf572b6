"""The rendered configuration has none of the mistakes that end a run of OpenSeq2Seq early, many of them with exit code 0."""

import ast
from typing import Any

import pytest
from launching import transformer
from standin.configuration import merge, read_config

from microcluster.jobs import openseq2seq

PRECISIONS = {"fp32": ("float32", None), "mixed": ("mixed", "Backoff")}
FLOATS = ("alpha", "attention_dropout", "relu_dropout", "layer_postprocess_dropout", "label_smoothing")
"""For which the loader takes no whole number."""
KNOWN = """
    use_horovod num_gpus batch_size_per_gpu max_steps save_summaries_steps print_loss_steps print_samples_steps eval_steps
    save_checkpoint_steps logdir dtype loss_scaling optimizer optimizer_params lr_policy lr_policy_params encoder encoder_params
    decoder decoder_params loss loss_params beta1 beta2 epsilon learning_rate warmup_steps d_model encoder_layers hidden_size
    num_heads filter_size attention_dropout relu_dropout layer_postprocess_dropout pad_embeddings_2_eight remove_padding
    num_hidden_layers beam_size alpha extra_decode_length EOS_ID GO_SYMBOL END_SYMBOL PAD_SYMBOL label_smoothing
"""
"""The parameters that OpenSeq2Seq knows: it refuses any other."""


@pytest.mark.parametrize("model", openseq2seq.SIZES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dataset", openseq2seq.DATASETS)
def test_every_configuration_that_we_render_may_travel(tmp_path, model, precision, dataset):
    job = transformer(model=model, precision=precision, dataset=dataset, evalSteps=4001, checkpointSteps=2000)
    text = job.configuration("/data/set", "/data/runs/x/logdir", {})
    nodes = ast.walk(ast.parse(text, feature_version=(3, 5)))  # From 3.12 on it takes f-strings all the same.
    assert not [node for node in nodes if isinstance(node, ast.JoinedStr)]
    (tmp_path / "config.py").write_text(text)
    config = read_config(str(tmp_path / "config.py"))
    base = config["base_params"]
    nested = [name for value in base.values() if isinstance(value, dict) for name in value]
    assert {*base, *nested} <= set(KNOWN.split())
    assert base["use_horovod"] is True, "every rank would train for itself"
    assert (base["max_steps"], "num_epochs" in base) == (300, False)
    assert (base["batch_size_per_gpu"], base["eval_steps"], base["save_checkpoint_steps"]) == (16, 4001, 2000)
    assert base["print_samples_steps"] % base["print_loss_steps"] == 0, "the model refuses it"
    assert base["logdir"] == "/data/runs/x/logdir", "ranks start in their login's folder"
    assert (base["dtype"], base.get("loss_scaling")) == PRECISIONS[precision], "small gradients vanish without a scale"
    assert base["lr_policy_params"]["d_model"] == base["encoder_params"]["hidden_size"]
    for part in ("encoder_params", "decoder_params", "loss_params"):
        assert base[part].get("hidden_size", 0) % base[part].get("num_heads", 1) == 0
        assert all(isinstance(base[part][name], float) for name in FLOATS if name in base[part])
    layers: dict[str, Any] = {
        mode: merge(base, config[f"{mode}_params"])["data_layer_params"] for mode in ("train", "eval")
    }
    assert (layers["eval"]["repeat"], layers["eval"]["shuffle"]) == (True, False), "several ranks end after one step"
    assert all(
        layers[mode][file].startswith("/data/set/") for mode in layers for file in ("source_file", "target_file")
    )
