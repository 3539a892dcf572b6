"""A run before a queue: Slurm with the Torque wrappers on a login host and two nodes with one home, as containers.

The image is no part of `make images`; `make test` builds it, and so does `fab images --only queue`.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import pytest
from image_containers import need
from product import emulator

from components.cluster import facts_of as cluster_facts_of
from emulator.machines.host_tools import wait_until
from emulator.queue.settings import QUEUE_IMAGE
from microcluster.accounts.shared.account import Terms
from microcluster.analysis.run_state import Outcome
from microcluster.config import stack as config
from microcluster.core import home
from microcluster.core import stack_keys as keys
from microcluster.core.home import Home
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import decided
from microcluster.lifecycle.account_opening import open_account
from microcluster.remote import job as remote_job
from microcluster.remote.openssh import login_host
from tests.integration.conftest import ROOT
from tests.product import free_port, write_settings

pytestmark = [pytest.mark.containers, pytest.mark.timeout(400)]
STACK, LIMIT_S, STEPS = "queue", 300, 60
SUBNET = "10.66.121.0/24"
DAEMON = "sleep 7251"
DIGITS = "/opt/microcluster/digits"
EXAMPLE = (
    "--network mlp --image-shape 1,8,8 --num-classes 10 --num-examples 1497 --batch-size 32 --disp-batches 10 --loss ce "
    f"--data-train {DIGITS}/train.rec --data-val {DIGITS}/val.rec --kv-store dist_sync --num-epochs {{maxSteps}} "
    "--model-prefix {logdir}/model"
)
PROGRAM = f"""
import os, runpy
if os.environ["DMLC_ROLE"] == "worker" and os.fork() == 0:  # It leaves the session: no step of the queue holds it any more.
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 2)
    if os.fork() == 0:
        os.execvp("sleep", "{DAEMON}".split())
    os._exit(0)
runpy.run_path(os.path.join(os.path.dirname(__file__), "digits.py"), run_name="__main__")
"""


@dataclass
class Site:
    """The site, and the facts of a stack whose run goes there."""

    facts: ClusterFacts
    account: str
    folder: Path

    def asking(self, **wanted: object) -> ClusterFacts:
        """The facts with another request to the queue."""
        return replace(self.facts, queue=replace(self.facts.queue, **wanted))

    def begin(self, verb: str, facts: ClusterFacts) -> subprocess.Popen[str]:
        """Start a step as Pulumi does."""
        argv, streams = (str(ROOT / ".venv" / "bin" / "fab"), f"step.{verb}"), {"stdin": subprocess.PIPE}
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        step = subprocess.Popen(argv, cwd=ROOT, **streams, **output)
        step.stdin.write(facts.to_json())
        step.stdin.close()
        return step

    def step(self, verb: str, facts: ClusterFacts) -> tuple[int, str]:
        """Run a step to its end."""
        step = self.begin(verb, facts)
        output = step.stdout.read()
        return step.wait(LIMIT_S), output

    def says(self, command: str) -> str:
        """Output of a person's command on the login host."""
        argv = ("ssh", "-F", str(self.facts.account_config_file), "login", command)
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout.strip()

    def run(self) -> Outcome:
        """The state of the run."""
        return remote_job.observe(login_host(str(self.facts.account_config_file)), self.facts)

    def terms(self) -> Terms | None:
        """Limits of the rental, as an account shows them that was opened now."""
        account = open_account("queue", str(self.facts.account_config_file)).account
        return account.terms(home.Owner(STACK, self.facts.mark))

    def processes(self, words: str) -> list[str]:
        """The processes on both nodes whose command line holds these words."""
        client = docker.from_env()
        nodes = [client.containers.get(f"{self.account}-{number}") for number in (2, 3)]
        found = [node.exec_run(("pgrep", "-f", words)).output.decode().split() for node in nodes]
        return [pid for pids in found for pid in pids]

    def waits_until(self, what: str, is_so) -> Outcome:
        """The run, once that is so of it."""

        def probe() -> Outcome | None:
            time.sleep(1)
            outcome = self.run()
            return outcome if is_so(outcome) else None

        return wait_until(what, probe, LIMIT_S)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site in a process of its own; everything of it goes again."""
    need(QUEUE_IMAGE, command="fab images --only queue")
    folder = tmp_path_factory.mktemp("queue")
    os.environ["MICROCLUSTER_HOME"] = str(folder / "home")
    state = Home.of().root / "emulator-queue"
    write_settings(state, free_port(), (SUBNET,), "198.51.100.176/28")
    with (state / "settings.toml").open("a") as settings:
        settings.write("kill_wait_s = 3\n")
    (folder / "program").mkdir()
    (folder / "program" / "train.py").write_text(PROGRAM)
    for theirs, ours in (("train.py", "digits.py"), ("networks.py", "networks.py")):
        shutil.copy(ROOT / "examples" / "digits_mxnet" / theirs, folder / "program" / ours)
    emulator("queue", state, "start")
    try:
        status = json.loads(emulator("queue", state, "status", "--json"))
        found = Site(facts_of(folder), status["account"], folder)
        wait_until("both nodes", lambda: found.says("pbsnodes -a").count("state = free") == 2, 120)
        yield found
    finally:
        emulator("queue", state, "reset")
        del os.environ["MICROCLUSTER_HOME"]


def facts_of(folder: Path, *modules: str, **more: object) -> ClusterFacts:
    """The facts that the components make of a stack file with these modules and keys of the job."""
    state = Home.of().root / "emulator-queue"
    cluster = {"account": "queue", "queue": "gpu", "walltime": "00:02:00", "folder": "/home/researcher/microcluster"}
    cluster |= {"processors": 2, "modules": list(modules)}
    job = {
        **{"kind": "mxnet", "source": str(folder / "program"), "script": "train.py", "maxSteps": STEPS},
        **{"arguments": f"{EXAMPLE} --pace 0.05", "resume": "--load-epoch {step}"},
        **{"preflight": "skip: the e2e test of MXNet has it"},
        **more,
    }
    values = {"microcluster:cluster": cluster, "microcluster:job": job, "microcluster:guard": {"lease": 30}}
    stack = config.with_files(config.parse(STACK, values | {"queue:sshConfig": str(state / "ssh_config")}))
    keys.ensure(Home.of().keys / STACK, STACK)
    return decided(cluster_facts_of(stack, config.keys_of(STACK)))


def test_a_command_killed_while_the_queue_is_busy_finds_its_job_again(site):
    code, output = site.step("check-queue", site.facts)
    assert code == 0, output
    blocker = site.says(
        "printf '#!/bin/sh\\nsleep 300\\n' >b.sh; qsub -q gpu -l nodes=2:ppn=2,walltime=00:10:00 -j oe -o b.log b.sh"
    )
    wait_until("the job of somebody else", lambda: site.says(f"squeue -h -o %T -j {blocker}") == "RUNNING", 60)
    killed = site.begin("start-job", site.facts)
    lines = [killed.stdout.readline() for _ in range(3)]
    assert any("is number 1 of 1 that wait in queue gpu" in line for line in lines), lines
    killed.kill()
    assert site.run().phase == "queued"
    again = site.begin("start-job", site.facts)
    assert "found as job" in again.stdout.readline()
    site.says(f"qdel {blocker}")
    assert f"run {site.facts.run}: running" in again.stdout.read()
    assert site.says("qstat").count("mc" + site.facts.mark) == 1


def test_the_walltime_ends_a_run_after_a_checkpoint_and_the_next_resumes(site):
    ended = site.waits_until("the end of the walltime", lambda run: run.state in ("failed", "finished", "stopped"))
    assert (ended.state, ended.cause) == ("failed", "walltime"), ended
    saved, terms = max(ended.checkpoints), site.terms()
    assert f"step {saved}" in ended.reason and saved < STEPS
    assert site.processes(DAEMON) == []
    code, output = site.step("start-job", site.asking(walltime_s=900))
    assert code == 0 and "submitted as job" in output
    assert site.waits_until("the end", lambda run: run.state == "finished").step == STEPS
    assert (site.terms(), terms.lease_minutes) == (terms, 1800)
    resumed = f"grep -h resuming microcluster/runs/{site.facts.run}/progress.jsonl"
    assert json.loads(site.says(resumed).splitlines()[-1])["step"] == saved


def test_leaving_the_queue_proves_the_end_of_every_process_on_every_node(site):
    longer = replace(site.asking(walltime_s=900), job=site.facts.job.model_copy(update={"max_steps": 100_000}))
    code, output = site.step("start-job", longer)
    assert code == 0, output
    site.waits_until("a step", lambda run: run.state == "running" and run.step)
    assert len(site.processes(DAEMON)) == 2
    code, output = site.step("stop-job", longer)
    assert "stopped on every machine" in output
    assert site.terms() is not None, "what was stopped may go on"
    code, output = site.step("leave-queue", longer)
    assert site.terms() is None
    assert code == 0 and "the queue has no job with the stack's mark" in output
    assert site.processes(DAEMON) == site.processes("train.py") == []
    assert site.run().state == "stopped"


def test_the_receipt_counts_the_node_hours_of_every_submission(site):
    account = open_account("queue", str(site.facts.account_config_file))
    charges = account.charges(home.Owner(STACK, site.facts.mark))
    assert len(charges) == 3 and account.is_emulated
    assert account.identity().account_id == f"researcher@{site.account}"
    assert all(not row.is_open and row.so_far > 0 and row.currency == "node hours" for row in charges)


def test_the_sites_older_mxnet_module_compresses_gradients(site):
    compressed = {"mxnetVersion": "1.6.0", "arguments": f"{EXAMPLE} --gc-type 2bit --gc-threshold 0.5 --lr 0.02"}
    # The preflight ends a run that finds another version than the stack file's.
    short = facts_of(site.folder, "mxnet/1.6.0", **compressed, maxSteps=40, preflight="run")
    facts = replace(short, queue=replace(short.queue, walltime_s=900))
    for verb in ("check-queue", "start-job"):
        code, output = site.step(verb, facts)
        assert code == 0, output
    ended = replace(site, facts=facts).waits_until("the end", lambda run: run.state in ("failed", "finished"))
    assert (ended.state, ended.step) == ("finished", 40), ended
    assert ended.metrics["validation_accuracy"] > 0.9, ended
