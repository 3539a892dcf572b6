"""What the program declares for a stack at Paperspace."""

import json
from typing import Any

import pytest
from test_config import problems
from test_program import declared

from microcluster.config import stack as config

CLUSTER = {"account": "paperspace", "region": "ny2", "machineType": "P4000x2", "adminCidrs": ["198.51.100.7/32"]}
JOB = {
    **{"kind": "torchrun", "source": "examples/translation_torch", "script": "train.py", "maxSteps": 240},
    "checkpoints": r"tmodel_(?P<step>\d+)\.pt",
}


def written(**cluster: Any) -> dict[str, Any]:
    return {"microcluster:cluster": CLUSTER | cluster, "microcluster:job": JOB}


def declare(**cluster: Any) -> dict[str, Any]:
    return declared(config.parse("dev", written(**cluster)))


def steps(made: dict[str, Any]) -> list[str]:
    return sorted(args.inputs["create"].rpartition(".")[2] for args in made.values() if args.typ.endswith(":Command"))


def facts_of(made: dict[str, Any], name: str) -> dict[str, Any]:
    return json.loads(made[name].inputs["stdin"])


def test_machines_of_one_network_are_prepared_and_mount_one_drive_and_run_no_container() -> None:
    made = declare()
    assert steps(made) == sorted([*2 * ["prepare-machine", "mount-drive"], "compare-drive", "start-job"])
    machines = [args.inputs for args in made.values() if args.typ == "paperspace:index:Machine"]
    assert {machine["networkId"] for machine in machines} == {"cluster-network-id"}
    assert {machine["templateId"] for machine in machines} == {"twnlo3zj"}
    assert made["cluster-drive"].inputs["networkId"] == "cluster-network-id"


def test_the_job_knows_its_user_its_drive_if_there_is_one_and_its_account_and_a_machine_who_may_reach_it() -> None:
    made = declare()
    facts = facts_of(made, "job-run")
    known = [facts[name] for name in ("account", "user", "shared_mount")]
    assert known == ["paperspace", "paperspace", "/mnt/training-data"]
    assert facts["drive"] == {"id": "cluster-drive-id", "address": "10.64.21.9", "share": "sdshare", "username": "u1"}
    assert "container" not in facts
    assert facts["interface"] == "10.64.21.0/24"
    machine = facts_of(made, "cluster-gpu-0-prepared")
    assert (machine["admin_cidrs"], machine["private_subnet"]) == (["198.51.100.7/32"], "10.64.21.0/24")
    without = declare(driveGb=0)
    assert steps(without) == sorted([*2 * ["prepare-machine"], "start-job"])
    assert "shared_mount" not in facts_of(without, "job-run")


def test_a_drive_that_is_kept_keeps_its_network_and_the_preview_says_what_both_cost() -> None:
    made = declare(keepDrive=True)
    assert made["cluster-drive"].inputs["keep"] and made["cluster-network"].inputs["keep"]
    cluster = config.parse("dev", written(keepDrive=True)).cluster
    assert cluster.prices.lines() == [
        "gpu-0, gpu-1: $1.02 an hour each: P4000x2 (2x P4000)",
        "gpu-0, gpu-1: $0.0104 an hour each, at most $7 a month: its disk of 100 GB",
        "gpu-0, gpu-1: $0.0045 an hour each, at most $3 a month: its dynamic address",
        "network: $0.0015 an hour, at most $1 a month: private network, stays after make down",
        "drive: $0.0238 an hour, at most $16 a month: 250 GB, stays after make down",
        "together: $2.0951 an hour, parts with a limit cost at most $37 a month together",
        "source: the vendor's price list of 2025-11-14, as the API shows no price",
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (written(region="ams1", machineType="RTX5000x2"), "cluster/region: ams1 does not sell RTX5000x2"),
        (written(driveGb=0, keepDrive=True), "cluster/keepDrive: there is no drive to keep"),
        (written(machineType="C5"), "cluster/machineType: 'C5' is not a machine type with GPUs"),
        (
            written() | {"microcluster:container": {"image": "nvcr.io/nvidia/x:1"}},
            "container: machines of the Paperspace account run",
        ),
        (written() | {"microcluster:job": {"kind": "openseq2seq"}}, "job/kind: openseq2seq cannot run on the machine"),
        (written() | {"paperspace:apiKey": "k"}, "paperspace:apiKey: does not belong in a stack file."),
    ],
)
def test_what_paperspace_does_not_sell_or_run_is_named_with_its_path(values: dict[str, Any], expected: str) -> None:
    assert any(line.startswith(expected) for line in problems(values))
