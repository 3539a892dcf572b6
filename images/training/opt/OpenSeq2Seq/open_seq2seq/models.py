"""Parameters of the model itself."""

from standin.tensorflow_names import FLOAT16, FLOAT32


class Text2Text:
    """An encoder, a decoder and a loss over two languages."""

    required = {"use_horovod": bool, "batch_size_per_gpu": int, "data_layer": None, "encoder": None, "decoder": None}
    optional = {
        "logdir": str,
        "num_gpus": int,
        "gpu_ids": list,
        "load_model": str,
        "save_summaries_steps": None,
        "print_loss_steps": None,
        "print_samples_steps": None,
        "print_bench_info_steps": None,
        "save_checkpoint_steps": None,
        "num_checkpoints": int,
        "restore_best_checkpoint": bool,
        "eval_steps": int,
        "eval_batch_size_per_gpu": int,
        "random_seed": int,
        "num_epochs": int,
        "max_steps": int,
        "bench_start": int,
        "data_layer_params": dict,
        "optimizer": None,
        "optimizer_params": dict,
        "freeze_variables_regex": None,
        "initializer": None,
        "initializer_params": dict,
        "regularizer": None,
        "regularizer_params": dict,
        "dtype": [FLOAT16, FLOAT32, "mixed"],
        "lr_policy": None,
        "lr_policy_params": dict,
        "max_grad_norm": float,
        "larc_params": dict,
        "loss_scaling": None,
        "loss_scaling_params": dict,
        "summaries": list,
        "iter_size": int,
        "hooks": list,
        "use_xla_jit": bool,
        "use_trt": bool,
        "trt_precision_mode": str,
        "trt_max_workspace_size_bytes": int,
        "trt_minimum_segment_size": int,
        "trt_is_dynamic_op": bool,
        "trt_maximum_cached_engines": int,
        "encoder_params": dict,
        "decoder_params": dict,
        "loss": None,
        "loss_params": dict,
    }
