import asyncio
import json
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks as pulumi_mocks
from test_config import written

from components.cluster import TrainingClusterArgs, declare_cluster, facts_of
from components.job import TrainingJob, TrainingJobArgs
from microcluster.config import stack as config
from microcluster.config.stack import StackKeys
from microcluster.core.home import Owner

OWNER = StackKeys(Owner("dev", "1f3a9c42"), "ssh-ed25519 AAAA", "/keys/dev/id_ed25519", "/keys/dev/rank_ed25519")
MACHINE = {"publicIp": "203.0.113.9", "privateIp": "10.64.21.3", "hostKey": "ssh-ed25519 BBBB"}
OUTPUTS = {
    "softlayer:index:VirtualGuest": MACHINE,
    "softlayer:index:Ledger": {"backendRouterId": "7", "pricePerHour": "8.99"},
    "paperspace:index:Machine": MACHINE,
    "paperspace:index:PrivateNetwork": {"subnet": "10.64.21.0/24"},
    "paperspace:index:SharedDrive": {"address": "10.64.21.9", "share": "sdshare", "username": "u1"},
    "paperspace:index:Ledger": {"pricePerHour": "2.09"},
}


class Monitor(pulumi_mocks.MockMonitor):
    """Pulumi's stand-in, which also keeps where states from before a change have what is declared."""

    def __init__(self, account: pulumi_mocks.Mocks) -> None:
        super().__init__(account)
        self.older: set[str] = set()

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - Pulumi's name
        self.older |= {self.make_urn(each.spec.parentUrn, request.type, request.name) for each in request.aliases}
        return super().RegisterResource(request)


class Account(pulumi_mocks.Mocks):
    """An account in which everything is there at once."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.made[args.name] = args
        return f"{args.name}-id", {**args.inputs, **OUTPUTS.get(args.typ, {})}

    def call(self, args: pulumi_mocks.MockCallArgs) -> dict[str, Any]:
        raise AssertionError(f"the program calls {args.token}, which a preview could not")


def declared(stack: config.Stack, jobs: list[TrainingJob] | None = None, *, preview: bool = False) -> dict[str, Any]:
    """Run the program on a stack; return what it declared, by name, and add its job to ``jobs``."""
    asyncio.set_event_loop(asyncio.new_event_loop())
    account = Account()
    monitor = Monitor(account)
    pulumi.runtime.set_mocks(account, project="microcluster", stack=stack.name, preview=preview, monitor=monitor)

    @pulumi.runtime.test
    def program() -> None:
        args = TrainingClusterArgs(stack, OWNER)
        job = TrainingJob("job", TrainingJobArgs(args, declare_cluster("cluster", args)))
        (jobs if jobs is not None else []).append(job)

    program()
    return account.made


def declare(preview: bool = False, **changes: Any) -> dict[str, Any]:
    return declared(config.parse("dev", written(**changes)), preview=preview)


def of_type(made: dict[str, Any], kind: str) -> list[Any]:
    return [args for args in made.values() if args.typ.endswith(f":{kind}")]


def test_the_stack_becomes_guests_behind_one_router() -> None:
    guests = of_type(declare(cluster__nodes=3), "VirtualGuest")
    assert {guest.inputs["hostname"] for guest in guests} == {"gpu-0", "gpu-1", "gpu-2"}
    assert {guest.inputs["backendRouterId"] for guest in guests} == {"7"}
    assert {guest.inputs["domain"] for guest in guests} == {"dev-1f3a9c42.microcluster"}


def test_a_renamed_stack_declares_what_it_did_before() -> None:
    before, after = (declared(config.parse(name, written())) for name in ("dev", "big"))
    assert {name: args.inputs for name, args in after.items()} == {name: args.inputs for name, args in before.items()}


def test_with_a_private_vlan_every_guest_names_it_and_no_router() -> None:
    made = declare(cluster__privateVlan=1234)
    guests, (ledger,) = of_type(made, "VirtualGuest"), of_type(made, "Ledger")
    assert ledger.inputs["privateVlanId"] == "1234"
    assert {guest.inputs["privateVlanId"] for guest in guests} == {"1234"}
    assert all(guest.inputs.get("backendRouterId") is None for guest in guests)


def test_port_22_is_open_to_the_operator_and_nothing_else_is() -> None:
    groups = {group.inputs["name"]: group.inputs["rules"] for group in of_type(declare(), "SecurityGroup")}
    ingress = [rule for rule in groups["cluster-network-public"] if rule["direction"] == "ingress"]
    assert ingress == [
        {"direction": "ingress", "protocol": "tcp", "portMin": 22, "portMax": 22, "remoteCidr": "198.51.100.7/32"}
    ]
    assert all("remoteCidr" in rule or "remoteSelf" in rule for rule in groups["cluster-network-private"][1:])


def test_every_node_is_prepared_mounted_and_given_its_container() -> None:
    commands = [args.inputs["create"].rpartition(" ")[2] for args in of_type(declare(), "Command")]
    assert sorted(commands) == sorted(
        2 * ["step.prepare-node", "step.mount-volume", "step.start-container"] + ["step.bring-image", "step.start-job"]
    )


def test_a_preview_has_a_line_for_each_part_of_a_node() -> None:
    made = declare(cluster__dataDiskGb=1000, preview=True)
    parts = {name: args for name, args in made.items() if name.startswith("cluster-gpu-0") and not args.custom}
    assert {name: args.typ.rpartition(":")[2] for name, args in parts.items()} == {
        "cluster-gpu-0": "GpuNode",
        "cluster-gpu-0-data": "SanVolume",
        "cluster-gpu-0-container": "TrainingContainer",
    }
    volume = parts["cluster-gpu-0-data"].inputs
    assert volume == {"sizeGb": 1000, "mountPoint": "/data", "pricePerHour": "0.28"}
    assert parts["cluster-gpu-0-container"].inputs["image"] == made["cluster-image"].inputs["tag"]


def test_steps_keep_their_identity_in_states_from_before_they_had_parts() -> None:
    declare(cluster__nodes=1)
    steps = {
        "GpuNode": ("cluster-gpu-0-data-mounted", "cluster-gpu-0-container-running"),
        "TrainingCluster": ("cluster-image-brought",),
    }
    urn = "urn:pulumi:stack::project::microcluster:index:{}$command:local:Command::{}"
    older = {urn.format(parent, name) for parent, names in steps.items() for name in names}
    assert pulumi.runtime.settings.get_monitor().older == older


def test_one_step_brings_the_image_to_all_nodes_and_every_container_waits_for_it() -> None:
    made = declare(cluster__nodes=3)
    brought = made["cluster-image-brought"].inputs
    assert [host["name"] for host in json.loads(brought["stdin"])["hosts"]] == ["gpu-0", "gpu-1", "gpu-2"]
    for node in range(3):
        assert made[f"cluster-gpu-{node}-container-running"].inputs["triggers"][1:] == brought["triggers"]


def test_the_job_is_stopped_before_its_machines_go_and_only_the_job_has_something_to_undo() -> None:
    undone = {name: args.inputs["delete"] for name, args in declare().items() if args.inputs.get("delete")}
    assert undone == {"job-run": "exec .venv/bin/fab step.stop-job"}
    assert all(args.inputs["create"] == args.inputs["update"] for args in of_type(declare(), "Command"))
    assert declare(preview=True).keys() == declare().keys(), "a preview declares the same"


def test_a_step_on_one_node_learns_nothing_of_the_others() -> None:
    cluster = json.loads(declare()["cluster-gpu-1-prepared"].inputs["stdin"])
    assert [host["name"] for host in cluster["hosts"]] == ["gpu-1"]
    assert "job" not in cluster


def test_the_job_knows_every_host_what_a_step_should_take_and_what_all_machines_cost() -> None:
    cluster = json.loads(declare()["job-run"].inputs["stdin"])
    assert [host["name"] for host in cluster["hosts"]] == ["gpu-0", "gpu-1"], "in the order of their ranks"
    assert cluster["job"]["maxSteps"] == 50000
    assert cluster["prediction"] == {"compute_s": 0.5927, "seconds": 1.695, "wire_bytes": 365285376}
    assert cluster["per_hour"] == 8.99
    assert "prediction" not in json.loads(declare(job__model="transformer-tiny")["job-run"].inputs["stdin"])


def test_the_preview_warns_of_an_interval_that_puts_much_more_at_risk(monkeypatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, resource: said.append(text))
    declare(preview=True)
    assert said == []
    declare(preview=True, job__checkpointSteps=5000)
    assert [text[:55] for text in said] == ["job.checkpointSteps: 5000 puts 2.4 h and $30.60 at risk"]


def test_more_steps_change_the_facts_and_not_the_run() -> None:
    short, long = declare()["job-run"].inputs, declare(job__maxSteps=60000)["job-run"].inputs
    assert short["stdin"] != long["stdin"]
    assert short["triggers"] == long["triggers"]


def registry_key_file(**changes: object) -> str | None:
    return facts_of(config.parse("dev", written(**changes)), OWNER).container.registry_key_file


def write_private(path) -> None:
    path.write_text("c0ffee\n")
    path.chmod(0o600)


@pytest.mark.parametrize(("name", "mode"), [("ngc_key", 0o644), ("paperspace_key", 0o600)])
def test_a_key_that_does_not_serve_is_refused_before_anything_is_ordered(tmp_path, monkeypatch, name, mode) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    write_private(tmp_path / name)
    (tmp_path / name).chmod(mode)
    with pytest.raises(config.ConfigError, match="is not used, as .* Nothing was ordered"):
        registry_key_file(container__registryKeyFile=f"$MICROCLUSTER_HOME/{name}")


def test_the_registry_key_of_the_home_serves_nvidias_registry_alone(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    assert registry_key_file() is None
    write_private(tmp_path / "ngc_key")
    assert registry_key_file() == str(tmp_path / "ngc_key")
    for image in (
        "evil.test/x:1",
        "nvcr.io.evil.test/x:1",
        "ngc.microcluster.internal:5000/microcluster/training:local",
    ):
        assert registry_key_file(container__image=image) is None
    assert registry_key_file(container__registryKeyFile="$MICROCLUSTER_HOME/other") == str(tmp_path / "other")


def test_the_registry_key_beside_the_accounts_file_goes_before_that_of_the_home(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    beside = tmp_path / "emulator" / "ngc_key"
    beside.parent.mkdir()
    write_private(beside)
    write_private(tmp_path / "ngc_key")
    emulated = written() | {"softlayer:configFile": "$MICROCLUSTER_HOME/emulator/softlayer.conf"}
    assert facts_of(config.parse("dev", emulated), OWNER).container.registry_key_file == str(beside)


def test_finished_data_reach_the_job_with_what_names_them() -> None:
    sha256 = "ab" * 32
    named = config.parse("dev", written(job__data=f"https://example.com/wmt16.tar#sha256={sha256}"))
    data = facts_of(named, OWNER).data
    assert data is not None
    assert (data.id, data.address, data.sha256) == (sha256[:12], "https://example.com/wmt16.tar", sha256)


SHOWN = 150
"""Characters of an output that Pulumi shows."""


@pytest.mark.parametrize(("stack", "starts_over"), [("texar-p100", True), ("texar-local", False)])
def test_the_preview_says_that_a_program_without_checkpoints_starts_over(stack, starts_over, tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))  # Whose local image holds our own programs alone.
    declared(config.read_file(stack), jobs := [], preview=True)
    assert ("starts over" in jobs[0].at_risk) is starts_over


def test_the_preview_says_that_a_program_saves_nothing_and_that_no_bar_and_no_loss_can_be_shown() -> None:
    program = {"kind": "horovod", "source": "examples/horovod_regression", "script": "train.py"}
    job = program | {"progress": r"#(?P<step>\d+)"}
    declared(config.with_files(config.parse("dev", written() | {"microcluster:job": job})), jobs := [], preview=True)
    assert "starts over" in jobs[0].at_risk
    assert "no progress bar" in jobs[0].plan and "no loss" in jobs[0].plan and len(jobs[0].plan) <= SHOWN


def test_an_output_says_who_holds_the_guard_and_that_there_is_none() -> None:
    jobs: list[TrainingJob] = []
    for guard in ({"microcluster:guard": {"lease": 30}}, {}):
        declared(config.parse("v100", {**written(), **guard}), jobs)
    held, none = (job.guard for job in jobs)
    assert "fab watch" in held and held.endswith("fab guard --install --stack v100")
    assert none.startswith("none: nothing but fab down") and len(held) + 40 <= 150


def test_the_ranks_find_their_card_by_the_private_network() -> None:
    made = declare()
    facts = {name: json.loads(made[name].inputs["stdin"]) for name in ("job-run", "cluster-gpu-0-prepared")}
    assert facts["job-run"]["interface"] == "10.0.0.0/8"
    assert facts["cluster-gpu-0-prepared"]["interface"] == "eth0", "or a rented node's steps would run again"
