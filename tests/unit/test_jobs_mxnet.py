"""The kind for MXNet: scheduler, servers and workers on their nodes, and the arguments of the image-classification example."""

import re

import launching
import pytest
from launching import on_gpus, run_id

from agent.run import document
from agent.run.document import Process
from microcluster.config import stack as config
from microcluster.jobs.run_spec import RunFolder

SOURCE = {"source": "examples/horovod_regression", "script": "train.py"}
ARGUMENTS = "--network mlp --kv-store dist_sync --model-prefix {logdir}/model --gpus {gpus}"
JOB = {"kind": "mxnet", "maxSteps": 5, **SOURCE, "arguments": ARGUMENTS, "resume": "--load-epoch {step}"}


def launched(*, on_machines: bool = False, nodes: int = 2, **job: object) -> RunFolder:
    """Return the run's folder; None takes a key away."""
    return launching.launched(on_gpus(JOB | job, "mxnet", nodes=nodes), on_machines=on_machines, first=9)


def processes(folder: RunFolder, *, resume: bool = False) -> dict[str, Process]:
    return {
        one.name: one
        for one in (folder.document.program.resume_processes if resume else folder.document.program.processes)
    }


def arguments(process: Process) -> dict[str, str]:
    """Return the trainer's arguments by name."""
    words = process.argv[process.argv.index("--network") :]
    return dict(zip(words[::2], words[1::2], strict=True))


def test_scheduler_servers_and_workers_are_placed_on_every_node_in_their_order_of_start_and_of_end() -> None:
    found = processes(launched(serversPerNode=2, workersPerNode=2))
    assert [(one.order, name, one.node) for name, one in found.items()] == [
        (0, "scheduler 0", 0),
        *((1, f"server {n}", n // 2) for n in range(4)),
        *((2, f"worker {n}", n // 2) for n in range(4)),
    ]
    assert all(one.ends_run for one in found.values()), "when any role dies, the others hang"
    assert launched().document.program.stop_order == ("worker", "server", "scheduler")
    assert processes(launched(), resume=True)["worker 1"].argv[-2:] == ("--load-epoch", document.STEP)
    for given in ("--kv-store=dist_sync", "--kv-store  dist_device_sync"):
        assert launched(arguments=ARGUMENTS.replace("--kv-store dist_sync", given)).document.logs.unit == "epoch"


def test_every_role_is_told_by_its_environment_and_announces_its_private_address() -> None:
    given = {"environment": {"MXNET_ENGINE_TYPE": "NaiveEngine"}, "python": "python3.11"}
    folder = launched(arguments=f"{ARGUMENTS} --data-train /data/a.rec --data-val=/data/b.rec", **given)
    found = processes(folder)
    for one in found.values():
        assert (one.environment["PYTHONUNBUFFERED"], one.environment["MXNET_ENGINE_TYPE"]) == ("1", "NaiveEngine")
        assert one.argv[one.argv.index("--network") - 2] == "python3.11"
        assert one.argv[5] == "launch.rank_wrapper", "its end is noted"
    assert {one.argv[:3] for one in (*found.values(), *folder.document.program.collective)} == {("env", "-u", "PORT")}
    server = found["server 1"].environment
    assert server["DMLC_ROLE"] == "server"
    assert (server["DMLC_PS_ROOT_URI"], server["DMLC_PS_ROOT_PORT"]) == ("10.0.0.9", document.PORT)
    assert server["DMLC_NODE_HOST"] == "10.0.0.10"
    assert (server["DMLC_NUM_SERVER"], server["DMLC_NUM_WORKER"]) == ("2", "2")
    compared = found["worker 0"].environment["MICROCLUSTER_DATA_FILES"]
    assert compared == "/data/a.rec /data/b.rec", "by the preflight"


def test_each_worker_of_a_node_gets_its_own_part_of_the_gpus() -> None:
    assert arguments(processes(launched())["worker 1"])["--gpus"] == "0,1"
    apart = processes(launched(workersPerNode=2))
    assert [arguments(apart[f"worker {n}"])["--gpus"] for n in range(4)] == ["0", "1", "0", "1"]
    shared = processes(launched(workersPerNode=3))
    assert [arguments(shared[f"worker {n}"])["--gpus"] for n in range(3)] == ["0", "1", "0"]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            {"arguments": f"{ARGUMENTS} --gc-type 2bit"},
            "job/arguments: MXNet 1.9.1 refuses --gc-type 2bit: since 1.7.0 Module.fit pushes and pulls in one call",
        ),
        ({"arguments": f"{ARGUMENTS} --gc-type=2bit", "mxnetVersion": "1.7.0"}, "MXNet 1.7.0 refuses --gc-type 2bit"),
        (
            {"arguments": "--network mlp --kv-store dist_sync"},
            "job/arguments: {logdir} is not among them, so that no checkpoint is saved",
        ),
        ({"arguments": "--folder /tmp", "checkpoints": "mxnet"}, "job/arguments: {logdir} is not among them"),
        ({"arguments": "--folder /tmp"}, "job/resume: job.checkpoints is not set, so there is nothing to go on from"),
        ({"arguments": "--network mlp --model-prefix {logdir}/model"}, "each worker of MXNet's examples trains alone"),
        ({"resume": None}, "job/resume: without it MXNet's examples begin again whenever a run goes on"),
        ({"arguments": "--network 'mlp"}, 'job/arguments: "--network \'mlp" cannot be split into words'),
        ({"mxnetVersion": "newest"}, "job/mxnetVersion: 'newest' is not a version"),
        ({"checkpoints": "model"}, "job/checkpoints: 'model' has no group of the name step"),
    ],
)
def test_what_mxnet_would_refuse_on_the_machines_is_refused_before_anything_is_ordered(job, expected) -> None:
    with pytest.raises(config.ConfigError, match=re.escape(expected)):
        launched(**job)


def test_one_worker_alone_may_use_the_local_key_value_store() -> None:
    folder = launched(arguments="--network mlp --kv-store local --model-prefix {logdir}/model", nodes=1)
    assert arguments(processes(folder)["worker 0"])["--kv-store"] == "local"


def test_a_program_of_ones_own_gets_its_own_arguments_alone() -> None:
    folder = launched(arguments="--folder {logdir}", resume="--from {step}")
    program = ("python", f"{folder.path}/program/train.py", "--folder", f"{folder.path}/logdir")
    assert processes(folder)["worker 0"].argv[-4:] == program
    assert processes(folder, resume=True)["server 0"].argv[-6:] == (*program, "--from", document.STEP)


def test_a_program_of_ones_own_that_saves_nothing_starts_over_and_the_preview_says_so() -> None:
    folder = launched(arguments="--rate 0.1", resume=None)
    made = folder.document
    assert (made.checkpoints.format, made.logs.exit_code_decides) == ("none", True)
    assert processes(folder) == processes(folder, resume=True)
    stack = on_gpus({**JOB, "arguments": "--rate 0.1", "resume": None}, "mxnet")
    origins = {path: origin for path, _, origin in stack.origins}
    assert "a run that dies starts again from the beginning" in origins["job.checkpoints"]


def test_the_preflight_expects_one_rank_for_each_worker_and_adds_up_over_the_servers() -> None:
    folder = launched(workersPerNode=2)
    assert folder.document.machines.ranks == ["10.0.0.9", "10.0.0.9", "10.0.0.10", "10.0.0.10"]
    roles = folder.document.program.collective
    assert {one.argv[-2:] for one in roles} == {("parameter-server", "2")}
    assert [one.environment["MICROCLUSTER_NUMBER"] for one in roles if one.role == "worker"] == ["0", "1", "2", "3"]


def test_the_program_is_told_the_file_at_which_it_ends_by_itself() -> None:
    folder = launched(stopGraceS=30)
    assert processes(folder)["worker 0"].environment["MICROCLUSTER_STOP_FILE"] == f"{folder.path}/stopped"
    assert folder.document.limits.stop_grace_s == 30
    assert run_id(folder) == run_id(launched())
