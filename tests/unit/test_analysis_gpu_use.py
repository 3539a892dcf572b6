"""How busy the GPUs were, step by step."""

from sampled_run import SampledRun

from microcluster.analysis import gpu_use

TRAINED = [
    {"event": "phase", "phase": "training", "t": 0.0},
    *({"event": "train", "step": s, "t": float(s)} for s in (0, 100)),
]


def sample(node: str, t: float, *gpus: int) -> dict[str, object]:
    return {"event": "sample", "node": node, "t": t, "gpus": list(gpus)}


def test_mean_and_lowest_gpu_use_are_listed_by_step() -> None:
    samples = [
        sample("gpu-0", 50.0, 90, 100),
        sample("gpu-1", 50.1, 20, 40),
        sample("gpu-0", 70.0, 80),
        sample("gpu-1", 70.0, 60),
    ]
    assert gpu_use.by_step([*TRAINED, *samples]) == {
        "mean of all GPUs": [(50, 62.5), (70, 70.0)],
        "node that is used least": [(50, 30.0), (70, 60.0)],
    }


def test_one_machine_has_one_line_and_samples_without_gpus_or_beside_the_training_have_none() -> None:
    beside = [sample("gpu-0", -5.0, 9), sample("gpu-0", 60.0), sample("gpu-0", 500.0, 9), sample("gpu-0", 20.0, 50)]
    assert gpu_use.by_step([*TRAINED, *beside]) == {"mean of all GPUs": [(20, 50.0)]}


def test_a_whole_run_is_summarized() -> None:
    used = gpu_use.by_step(SampledRun().events())["mean of all GPUs"]
    assert len(used) > 300 and set(value for _, value in used) == {97.5}
