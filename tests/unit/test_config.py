import copy
import re
from collections.abc import Iterable
from typing import Any

import pytest

from microcluster.config import stack as config
from microcluster.core.home import owner_mark
from microcluster.jobs import image

V100 = {
    "microcluster:cluster": {"datacenter": "lon04", "flavor": "AC2_16X120X100", "adminCidrs": ["198.51.100.7/32"]},
    "microcluster:container": {"image": "nvcr.io/nvidia/tensorflow:19.05-py3"},
    "microcluster:job": {"kind": "openseq2seq", "model": "transformer-base", "maxSteps": 50000},
}


def written(**changes: Any) -> dict[str, Any]:
    """Return the V100 stack with ``cluster__nodes=3`` written into it; None takes a key out."""
    values = copy.deepcopy(V100)
    for path, value in changes.items():
        section, _, key = path.partition("__")
        target = values[f"microcluster:{section}"]
        target[key] = value
        if value is None:
            del target[key]
    return values


def problems(values: dict[str, Any], **options: bool) -> list[str]:
    with pytest.raises(config.ConfigError) as error:
        config.parse("dev", values, **options)
    return [line.strip() for line in str(error.value).splitlines()[1:]]


def test_precision_and_batch_follow_from_the_gpu() -> None:
    v100 = config.parse("dev", written()).job
    p100 = config.parse("dev", written(cluster__flavor="AC1_16X120X100")).job
    assert (v100.precision, v100.batch_per_gpu) == ("mixed", 256)
    assert (p100.precision, p100.batch_per_gpu) == ("fp32", 128)
    assert config.parse("dev", written(job__precision="fp32")).job.batch_per_gpu == 128


def test_every_value_can_be_traced_to_where_it_came_from() -> None:
    origins = {path: origin for path, _, origin in config.parse("dev", written()).origins}
    assert origins["cluster.datacenter"] == "stack file"
    assert origins["cluster.nodes"] == "default"
    assert "job.precision" in origins["job.batchPerGpu"]
    assert origins["cluster.image"] == "not set"


def origin_of(stack: config.Stack, path: str) -> str:
    return next(origin for known, _, origin in stack.origins if known == path)


def test_the_checkpoint_interval_follows_from_the_money_at_risk_and_says_how() -> None:
    v100 = config.parse("dev", written())
    assert v100.job.checkpoint_steps == 140
    assert origin_of(v100, "job.checkpointSteps") == (
        "computed: at most 10 min or $1 at $13.00 an hour (estimates of 2026-05) and 1.75 s per step, a tenth more allowed; "
        "writing takes 2% to 4% of the time"
    )
    p100 = config.parse("dev", written(cluster__flavor="AC1_16X120X100"))
    assert (p100.job.checkpoint_steps, v100.forecast.warning, p100.forecast.warning) == (210, "", "")


def test_an_interval_in_the_stack_file_holds_and_a_risky_one_warns() -> None:
    careless = config.parse("dev", written(job__checkpointSteps=5000))
    assert (careless.job.checkpoint_steps, origin_of(careless, "job.checkpointSteps")) == (5000, "stack file")
    assert careless.forecast.warning.startswith("job.checkpointSteps: 5000 puts 2.4 h and $30.60 at risk")
    assert "36 times the default of 140 steps (4.0 min and $0.86)" in careless.forecast.warning
    assert config.parse("dev", written(job__checkpointSteps=200)).forecast.warning == ""
    assert config.parse("dev", written(job__checkpointSteps=1)).forecast.warning == ""
    # Asking for more steps keeps the interval, because another one is another run.
    intervals = {config.parse("dev", written(job__maxSteps=steps)).job.checkpoint_steps for steps in (1, 50, 90_000)}
    assert intervals == {140}


def test_a_plan_shows_limits_of_each_link_preparation_and_kind_of_prices() -> None:
    plan = config.parse("dev", written()).forecast
    assert plan.summary == (
        "0.647 to 42.2 s per step, 11.2 to 592.6 h, $156 to $7,709 for 50000 steps, with preparation "
        "(depends on the link; estimates of 2026-05)"
    )
    assert plan.stake == "4.0 min and $0.86 between two checkpoints at the usual pace"
    on_fast = plan.hours(plan.prediction.links["5 Gb/s"])
    assert on_fast.low == pytest.approx(50_000 * plan.prediction.span.low / 3600 + 2.25, abs=0.01)


def test_the_longest_plan_fits_a_line_and_one_machine_has_no_network() -> None:
    longest = config.parse("dev", written(job__maxSteps=10_000_000, job__batchPerGpu=4096, cluster__nodes=64)).forecast
    assert len(longest.summary) < 150
    short = config.parse("dev", written(job__maxSteps=20)).forecast
    assert short.risk(5000) == short.risk(20), "a run that is shorter than the interval risks itself and no more"
    alone = config.parse("dev", written(cluster__nodes=1)).forecast
    assert alone.summary.startswith("0.533 to 0.652 s per step, 9.7 to 15.8 h") and "(one machine; " in alone.summary


@pytest.mark.parametrize(
    "untimed",
    [
        {"job__model": "transformer-tiny"},
        {"job__dataset": "debian-en-de"},
        {"cluster__flavor": "AC1_16X120X100", "job__precision": "mixed"},
        {"container__image": "r.test:5000/microcluster/training:standin"},
    ],
)
def test_what_nobody_has_timed_has_no_plan_and_a_fixed_interval(untimed: dict[str, Any]) -> None:
    stack = config.parse("dev", written(**untimed))
    assert stack.forecast is None
    assert "nothing like it was timed" in origin_of(stack, "job.checkpointSteps")
    assert stack.job.checkpoint_steps in (100, 200)


@pytest.mark.parametrize("batch", [1, 4096])
@pytest.mark.parametrize("nodes", [1, 2, 64])
@pytest.mark.parametrize("steps", [1, 10_000_000])
def test_the_largest_and_the_smallest_permitted_stack_have_a_plan(batch: int, nodes: int, steps: int) -> None:
    plan = config.parse("dev", written(job__batchPerGpu=batch, cluster__nodes=nodes, job__maxSteps=steps)).forecast
    assert 1 <= plan.checkpoint_steps <= 5000
    assert plan.risk().dollars <= 1 or plan.checkpoint_steps == 1


def test_a_port_that_is_too_slow_is_refused_with_a_way_out() -> None:
    (found,) = problems(written(cluster__portSpeedMbps=100, cluster__nodes=8))
    assert found.startswith("cluster/portSpeedMbps: 100 Mb/s between 8 nodes")
    assert found.endswith("use 1000, or nodes: 1")
    two = problems(written(cluster__portSpeedMbps=10, job__maxSteps="many"))
    assert [problem.partition(":")[0] for problem in two] == ["cluster/portSpeedMbps", "job/maxSteps"]
    assert config.parse("dev", written(cluster__nodes=1, cluster__portSpeedMbps=100)).cluster.nodes == 1


def test_all_problems_are_reported_together_with_their_path() -> None:
    values = written(cluster__datacenter="lon4", cluster__flavor="AC3_16X120X100", cluster__nodez=3)
    assert problems(values | {"softlayer:configfile": "~/.softlayer"}) == [
        "cluster/datacenter: 'lon4' is not a datacenter that sells GPUs; did you mean 'lon04'?",
        "cluster/flavor: 'AC3_16X120X100' is not a flavor; did you mean 'AC2_16X120X100'?",
        "cluster/nodez: unknown key; did you mean 'nodes'?",
        "softlayer:configfile: unknown key; did you mean 'configFile'?",
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cluster__nodes": 0}, "cluster/nodes: 0 should be greater than or equal to 1"),
        ({"cluster__portSpeedMbps": 10000}, "cluster/portSpeedMbps: 10000 is not a port speed that is sold"),
        ({"cluster__dataDiskGb": 2048}, "cluster/dataDiskGb: 2048 is not a disk size that is sold"),
        ({"cluster__datacenter": "lon06"}, "cluster/datacenter: lon06 does not sell AC2_16X120X100 (2x V100)"),
        ({"cluster__flavor": "ACL2_16X120X100"}, "cluster/flavor: ACL2_16X120X100 has local disks"),
        ({"cluster__adminCidrs": []}, "cluster/adminCidrs: [] List should have at least 1 item"),
        ({"cluster__image": "1", "cluster__os": "UBUNTU_18_64"}, "cluster/image: cannot be given together"),
        ({"cluster__router": 1, "cluster__privateVlan": 2}, "cluster/privateVlan: cannot be given together"),
        ({"cluster__os": "DEBIAN_9_64"}, "cluster/os: 'DEBIAN_9_64' is not a system for GPU flavors"),
        ({"job__kind": None}, "job/kind: is required"),
        ({"job__kind": "tensor2tensor"}, "job/kind: 'tensor2tensor' should be 'openseq2seq', 'horovod', "),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_path(changes: dict[str, Any], expected: str) -> None:
    found = problems(written(**changes))
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_the_documentation_address_passes_a_preview_and_is_refused_by_an_order() -> None:
    values = written(cluster__adminCidrs=["203.0.113.7/32"])
    assert config.parse("dev", values).cluster.admin_cidrs == ["203.0.113.7/32"]
    assert "203.0.113.7/32 is the documentation's address" in problems(values, ordering=True)[0]


@pytest.mark.parametrize("named", ["tensorflow", "tensorflow:19.05-py2", "tensorflow:20.01-tf1-py3"])
def test_an_order_refuses_a_base_without_the_pinned_packages_python(named: str) -> None:
    other = written(container__image=f"nvcr.io/nvidia/{named}")
    assert config.parse("dev", other).container.image.startswith("nvcr.io")
    (problem,) = problems(other, ordering=True)
    assert problem.startswith(f"container/image: nvcr.io/nvidia/{named} has another Python than 3.5")
    assert problem.endswith("use nvcr.io/nvidia/tensorflow:19.05-py3")


@pytest.mark.parametrize("named", ["tensorflow:18.09-py3", f"tensorflow@sha256:{64 * '0'}", "ours:1"])
def test_nvidias_plain_image_can_be_ordered_and_so_can_a_digest(named: str) -> None:
    assert config.parse("dev", written(container__image=f"nvcr.io/nvidia/{named}"), ordering=True)


def test_model_and_steps_follow_from_what_trains_in_the_image() -> None:
    standin = "r.test:5000/microcluster/training:standin"
    bare = {"microcluster:job": {"kind": "openseq2seq"}}
    real = config.parse("dev", V100 | bare).job
    assert (real.model, real.max_steps) == ("transformer-base", 50_000)
    local = config.parse("dev", written(container__image=standin) | bare).job
    assert (local.model, local.max_steps, local.dataset) == ("transformer-tiny", 300, "debian-en-de")


def trained_by(values: dict[str, Any]) -> tuple[str | None, str | None, str]:
    """Return the key's value, what trains in the local image, and where the value came from."""
    stack = config.parse("dev", values)
    (origin,) = (origin for path, _, origin in stack.origins if path == "job.trainer")
    return stack.job.trainer, stack.trainer, origin


LOCAL = {"container__image": "r.test:5000/microcluster/training:local", "job__model": "transformer-tiny"}


def test_in_the_local_image_trains_what_the_last_make_images_put_there(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    assert trained_by(written(**LOCAL))[:2] == ("stand-in", "stand-in 0.1.0")
    assert "OPENSEQ2SEQ_SOURCE" in trained_by(written(**LOCAL))[2]
    fact = tmp_path / image.TRAINER_FILE
    fact.parent.mkdir(parents=True)
    fact.write_text("OpenSeq2Seq 8681d381\n")
    assert trained_by(written(**LOCAL))[:2] == (None, "OpenSeq2Seq 8681d381")
    assert "OpenSeq2Seq 8681d381 in the local training image" in trained_by(written(**LOCAL))[2]
    assert trained_by(written(**LOCAL, job__trainer="stand-in")) == ("stand-in", "stand-in 0.1.0", "stack file")
    assert trained_by(written()) == (None, None, "not set: OpenSeq2Seq"), "NVIDIA's image gets it from its repository"
    assert problems(written(job__trainer="openseq2seq", **LOCAL)) == ["job/trainer: 'openseq2seq' should be 'stand-in'"]
    (problem,) = problems(written(job__trainer="stand-in"))
    assert problem.startswith("job/trainer: only the local training image (microcluster/training) holds the stand-in")


@pytest.mark.parametrize("strange", ["OpenSeq2Seq '; rm -rf /", "", "another OpenSeq2Seq 8681d381", "Texar 0.2.4\n"])
def test_a_fact_that_make_images_did_not_write_counts_as_none(strange: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    fact = tmp_path / image.TRAINER_FILE
    fact.parent.mkdir(parents=True)
    fact.write_text(strange)
    assert trained_by(written(**LOCAL))[:2] == ("stand-in", "stand-in 0.1.0")


def different_keys(one: str, other: str) -> set[str]:
    """Return the keys in which two stack files differ, those of each section one by one."""
    read = [config.read_values(config.STACKS / f"Pulumi.{stack}.yaml") for stack in (one, other)]
    flat = [
        {f"{key}.{name}": value for key, section in values.items() for name, value in _items(section)}
        for values in read
    ]
    return {key for key in flat[0].keys() | flat[1].keys() if flat[0].get(key) != flat[1].get(key)}


def _items(section: Any) -> Iterable[tuple[str, Any]]:
    return section.items() if isinstance(section, dict) else [("", section)]


GUARD = {"budget", "lease", "whenDone"}


@pytest.mark.parametrize(
    ("one", "other", "keys"),
    [
        ("p100", "v100", {"datacenter", "flavor", "budget"}),
        ("p100-local", "v100-local", {"datacenter", "flavor"}),
        ("p100", "local", {"configFile", "image", "adminCidrs", *GUARD}),
        ("p100", "p100-local", {"configFile", "image", "adminCidrs", *GUARD}),
        ("v100", "v100-local", {"configFile", "image", "adminCidrs", *GUARD}),
        ("local", "p100-local", set()),
    ],
)
def test_another_gpu_changes_three_keys_and_emulation_three_and_the_guard(one: str, other: str, keys: set[str]) -> None:
    assert {key.strip(".").rpartition(".")[2].rpartition(":")[2] for key in different_keys(one, other)} == keys


def test_a_stack_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(config.ConfigError, match="There is no stack 'p10': .* Stacks: fsdp-local, .* p100, .* v100"):
        config.read_file("p10")


def test_the_mark_comes_from_the_public_key_or_the_error_names_setup(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    with pytest.raises(config.ConfigError, match="make setup"):
        config.keys_of("dev")
    keys = tmp_path / "keys" / "dev"
    keys.mkdir(parents=True)
    (keys / "id_ed25519.pub").write_text("ssh-ed25519 AAAAC3Nz me@laptop\n")
    made = config.keys_of("dev")
    assert made.public_key == "ssh-ed25519 AAAAC3Nz"
    assert made.owner.mark == owner_mark("ssh-ed25519 AAAAC3Nz")
    assert len(made.owner.mark) == 8


def test_a_renewed_key_keeps_the_mark_and_a_damaged_mark_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    keys = tmp_path / "keys" / "dev"
    keys.mkdir(parents=True)
    (keys / "id_ed25519.pub").write_text("ssh-ed25519 AAAAnew me@laptop\n")
    (keys / "mark").write_text("1f3a9c42\n")
    assert (config.keys_of("dev").owner.mark, config.keys_of("dev").public_key) == ("1f3a9c42", "ssh-ed25519 AAAAnew")
    (keys / "mark").write_text("lost")
    with pytest.raises(config.ConfigError, match="it is not eight hex digits"):
        config.keys_of("dev")


def test_leaving_out_the_preflight_needs_a_reason() -> None:
    given = "skip: the port is slow on purpose"
    assert config.parse("dev", written(job__preflight=given)).job.preflight == given
    for careless in ("skip", "skip: ", "skip: no", "off", ""):
        assert "with a reason" in problems(written(job__preflight=careless))[0]


UNUSABLE = {
    "nvcr.io/nvidia/pytorch:22.05-py3": ("driver of branch 450", "driver of branch 450"),
    "nvcr.io/nvidia/tensorflow:24.05-tf2-py3": ("driver of branch 470", "driver of branch 470"),
    "nvcr.io/nvidia/pytorch:25.10-py3@sha256:" + "0" * 64: ("capability 7.5 or more, and a P100 has 6.0",) * 2,
    "docker.io/pytorch/pytorch:1.9.0-cuda10.2-cudnn7-runtime": ("driver of branch 440", "driver of branch 440"),
    "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime": ("capability 7.0 or more", "driver of branch 525"),
    "docker.io/pytorch/pytorch:2.11.0-cuda12.8-cudnn9-devel": ("capability 7.5 or more",) * 2,
    "docker.io/pytorch/pytorch:2.14.0-cuda13.2-cudnn9-devel": ("driver of branch 580",) * 2,
}
RUNS = (
    "nvcr.io/nvidia/tensorflow:19.05-py3",
    "nvcr.io/nvidia/pytorch:22.02-py3",
    "docker.io/pytorch/pytorch:1.4-cuda10.1-cudnn7-runtime",
)
UNKNOWN = (
    "docker.io/pytorch/pytorch:latest",
    "nvcr.io/nvidia/cuda:12.2.0-base-ubuntu22.04",
    "ghcr.io/me/torch:2.9-cuda12.8",
)


@pytest.mark.parametrize("named", UNUSABLE)
@pytest.mark.parametrize(("number", "flavor"), [(0, "AC1_16X120X100"), (1, "AC2_16X120X100")])
def test_an_image_that_card_or_driver_cannot_run_is_refused_by_name(named: str, number: int, flavor: str) -> None:
    (found,) = problems(written(container__image=named, cluster__flavor=flavor))
    assert found.startswith(f"container/image: {named[:60]}") and "docs/image-and-data.md" in found
    assert UNUSABLE[named][number].replace("P100 has 6.0", ("P100 has 6.0", "V100 has 7.0")[number]) in found


@pytest.mark.parametrize("named", [*RUNS, *UNKNOWN])
def test_an_image_that_runs_or_is_unknown_is_left_to_the_preflight(named: str) -> None:
    for flavor in ("AC1_16X120X100", "AC2_16X120X100"):
        assert config.parse("dev", written(container__image=named, cluster__flavor=flavor)).container.image == named


def test_a_machine_image_has_a_driver_of_its_own() -> None:
    newer = "docker.io/pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
    own = {"container__image": newer, "cluster__image": "2263543"}
    assert config.parse("dev", written(**own)).container.image == newer
    (found,) = problems(written(**own, cluster__flavor="AC1_16X120X100"))
    assert "driver" not in found and "capability 7.0 or more, and a P100 has 6.0" in found


def test_every_stack_has_a_salt_of_its_own() -> None:
    salts = [re.findall("^encryptionsalt: (.+)$", path.read_text(), re.MULTILINE) for path in config.STACKS.iterdir()]
    assert all(len(each) == 1 for each in salts)
    keys = {salt.split(":")[1] for (salt,) in salts}
    assert len(keys) == len(salts) == len(config.stacks())
