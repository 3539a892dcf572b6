"""The checks of a merged configuration, with upstream's four messages; the first problem ends the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from standin.tensorflow_names import FLOAT16, LazyAdamOptimizer

NORMS = ("layernorm_L2",)
NOT_HONOURED = (
    "finetune",
    "freeze_variables_regex",
    "hooks",
    "initializer",
    "larc_params",
    "load_model",
    "max_grad_norm",
    "regularizer",
    "use_trt",
)


class NotHonouredError(Exception):
    """A valid setting of OpenSeq2Seq that the stand-in does not carry out."""


def check_params(params: Mapping[str, Any], required: Mapping[str, Any], optional: Mapping[str, Any]) -> None:
    """Refuse a missing, ill-typed or unknown key.

    Args:
        required: for each key a type, a list of values, or None for anything.
        optional: likewise.
    """
    for name, kind in required.items():
        if name not in params:
            raise ValueError(f"{name} parameter has to be specified")
        _check_kind(name, params[name], kind)
    for name, kind in optional.items():
        if name in params:
            _check_kind(name, params[name], kind)
    for name in params:
        if name not in required and name not in optional:
            raise ValueError(f"Unknown parameter: {name}")


def check_model(params: Mapping[str, Any], mode: str, model: type) -> None:
    """Refuse what the base model would refuse; ``mode`` is train, eval or infer."""
    check_params(params, model.required, model.optional)
    _check_steps(params, mode)
    if not params["use_horovod"]:
        if "gpu_ids" not in params and "num_gpus" not in params:
            raise ValueError('Either "gpu_ids" or "num_gpus" has to be specified in the config')
        if params.get("iter_size", 1) > 1:
            raise ValueError("iter_size is only supported in Horovod mode")
    layer = params.get("data_layer_params", {})
    if mode != "train" and layer.get("shuffle", False):
        raise ValueError("Shuffle should not be performed in eval or infer modes")
    if isinstance(params.get("loss_scaling"), int):
        raise ValueError("loss_scaling has to be of type <class 'float'>")


def check_parts(params: Mapping[str, Any], batch_size: int, vocabulary_size: int) -> None:
    """Check data layer, encoder, decoder and loss, each with what the model itself fills in."""
    layer = params["data_layer_params"]
    check_params(layer, params["data_layer"].required, params["data_layer"].optional)
    if layer.get("pad_lengths_to_eight") and layer["max_length"] % 8:
        raise ValueError("If padding to 8 in data layer, then max_length should be multiple of 8")
    sizes = {"batch_size": batch_size, "tgt_vocab_size": vocabulary_size}
    filled = {
        "encoder": {"src_vocab_size": vocabulary_size},
        "decoder": sizes,
        "loss": sizes,
    }
    for part, extra in filled.items():
        check_params({**params.get(f"{part}_params", {}), **extra}, params[part].required, params[part].optional)


def check_honoured(params: Mapping[str, Any]) -> None:
    """Refuse what OpenSeq2Seq would do and the stand-in would silently not."""
    asked = [name for name in NOT_HONOURED if params.get(name)]
    if params.get("iter_size", 1) > 1:
        asked.append("iter_size")
    if not params["use_horovod"] and (params.get("num_gpus", 1) > 1 or len(params.get("gpu_ids", [])) > 1):
        asked.append("more than one GPU without Horovod")
    if params.get("dtype") is FLOAT16:
        asked.append("dtype tf.float16")
    if params.get("optimizer", "Adam") not in {"Adam", LazyAdamOptimizer}:
        asked.append(f"optimizer {params['optimizer']}")
    for part in ("encoder_params", "decoder_params"):
        kind = params.get(part, {}).get("norm_params", {}).get("type", NORMS[0])
        asked += [f"{part}/norm_params/type {kind}"] if kind not in NORMS else []
    if asked:
        raise NotHonouredError(f"The stand-in trainer does not carry out: {', '.join(asked)}. Remove it.")


def _check_steps(params: Mapping[str, Any], mode: str) -> None:
    if "max_steps" in params and "num_epochs" in params:
        raise ValueError("You can't provide both max_steps and num_epochs. Please, remove one of them from the config.")
    if mode == "train" and "max_steps" not in params and "num_epochs" not in params:
        raise ValueError("For the training mode either max_steps or num_epochs has to be provided")
    samples, losses = params.get("print_samples_steps"), params.get("print_loss_steps")
    if samples is not None and losses is not None and samples % losses:
        raise ValueError("print_samples_steps has to be a multiple of print_loss_steps.")


def _check_kind(name: str, value: Any, kind: Any) -> None:
    if isinstance(kind, list) and value not in kind:
        raise ValueError(f"{name} has to be one of {kind}")
    if isinstance(kind, type) and not isinstance(value, kind):
        raise ValueError(f"{name} has to be of type {kind}")
