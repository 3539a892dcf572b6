"""Runs before a queue: the section, the login host, what is refused before it is submitted, the place in it, the node hours."""

import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from test_analysis_run_state import seen
from test_config import written

from components.cluster import TrainingClusterArgs, facts_of
from microcluster.accounts.queue.account import Queue as Queue_
from microcluster.accounts.queue.account import charge
from microcluster.analysis.run_state import judge
from microcluster.config import stack as config
from microcluster.config.stack import ConfigError, StackKeys
from microcluster.core.home import Owner
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts, Queue
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job, queue
from microcluster.remote.errors import Completed, RemoteError

SEAWULF = {"account": "queue", "site": "seawulf", "queue": "gpu", "walltime": "08:00:00", "folder": "/gpfs/me/runs"}
JOB = {
    **{"kind": "torchrun", "source": "examples/translation_torch", "script": "train.py", "maxSteps": 10},
    "checkpoints": r"(?P<step>\d+)",
}


def parsed(**changed: object) -> config.Stack:
    cluster = {key: value for key, value in {**SEAWULF, "processors": 20, **changed}.items() if value is not None}
    return config.parse("dev", {"microcluster:cluster": cluster, "microcluster:job": JOB, "queue:sshConfig": "~/site"})


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"nodes": 3}, "cluster/nodes: 3 is over the limit of 2 of queue gpu (seawulf"),
        ({"walltime": "09:00:00"}, "cluster/walltime: 09:00:00 is over the limit of 8 h of queue gpu"),
        ({"processors": 64}, "cluster/processors: 64 is over the limit of 28 of queue gpu"),
        ({"queue": "gpux"}, "cluster/queue: 'gpux' is no queue of seawulf; one of gpu, gpu-long"),
        ({"walltime": "8h"}, "cluster/walltime: '8h' is not HH:MM:SS"),
        (
            {"walltime": 172800},
            "cluster/walltime: 172800 is a number, and a text is wanted; write it in quotes, for example '02:00:00'",
        ),
        (
            {"interface": "10.0.0.256/16"},
            "cluster/interface: '10.0.0.256/16' is not a network card or an IPv4 network",
        ),
        ({"interface": "eth0,eth1"}, "cluster/interface: 'eth0,eth1' is not a network card"),
        ({"walltime": "00:01:00"}, "cluster/walltime: '00:01:00' is too short"),
        ({"site": "seawolf"}, "cluster/site: 'seawolf' is not a site in the catalog; did you mean 'seawulf'?"),
        ({"folder": "~/runs"}, "cluster/folder"),
        ({"modules": ["a; rm -rf ~"]}, "cluster/modules"),
    ],
)
def test_what_the_queue_would_never_run_is_refused_with_its_limit(changed, wanted):
    with pytest.raises(ConfigError, match=re.escape(wanted)):
        parsed(**changed)


def test_the_longer_queue_takes_more_and_an_unknown_site_has_no_limits():
    for card in ("eth0", "enP1p1s0f0", "bond_pub", "br-ex", "eth0.42", "10.10.0.0/16"):
        assert parsed(interface=card).cluster.facts()["interface"] == card
    assert parsed(queue="gpu-long", walltime="48:00:00").cluster.queue == "gpu-long"
    assert parsed(site=None, walltime="99:00:00", nodes=7).cluster.nodes == 7


def test_names_of_before_are_refused_with_those_of_today(monkeypatch):
    former = {**SEAWULF, "account": "pbs"}
    values = {"microcluster:cluster": former, "microcluster:job": JOB, "pbs:sshConfig": "~/site"}
    with pytest.raises(ConfigError, match="nothing was ordered") as refused:
        config.parse("dev", values)
    assert "cluster/account: 'pbs' is called 'queue' now" in str(refused.value)
    assert "pbs:sshConfig: is called queue:sshConfig now" in str(refused.value)
    monkeypatch.setattr(config, "path_of", lambda stack: None)
    monkeypatch.setattr(config, "read_values", lambda path: values)
    assert config.read_account("dev").name == "queue", "what is rented must be found and ended"


def test_a_key_in_the_stack_file_is_refused_with_its_proper_place():
    with pytest.raises(ConfigError, match="Name user and key in an OpenSSH configuration"):
        config.parse("dev", {"microcluster:cluster": SEAWULF, "microcluster:job": JOB, "queue:password": "x"})


def test_the_facts_hold_the_request_to_the_queue_and_the_runs_folder():
    stack = parsed(modules=["torque/6.0.2"])
    facts = facts_of(stack, StackKeys(Owner("slurm", "1f3a9c42"), "", "/key", "/rank"))
    assert facts.queue == Queue("gpu", 2, 20, 8 * 3600, ("torque/6.0.2",))
    assert (facts.mount_point, facts.container) == ("/gpfs/me/runs", None)


def test_the_lease_goes_with_each_submission_and_changes_no_other_step():
    cluster = {**SEAWULF, "processors": 20}
    values = {"microcluster:cluster": cluster, "microcluster:job": JOB, "queue:sshConfig": "~/site"}
    stack = config.parse("dev", values | {"microcluster:guard": {"lease": 30}})
    args = TrainingClusterArgs(stack, StackKeys(Owner("dev", "1f3a9c42"), "", "/key", "/rank"))
    assert (args.decided.lease_minutes, args.facts.lease_minutes) == (1800, None)
    rented = config.parse("dev", written() | {"microcluster:guard": {"lease": 30}})
    assert facts_of(rented, StackKeys(Owner("dev", "1f3a9c42"), "", "/key", "/rank")).lease_minutes is None


REAL = Path(__file__).parent / "real_queues"
RECORD = {
    **{"name": "mc1f3a9c4200e11", "stack": "dev", "mark": "1f3a9c42", "run": "00e11aabbccd", "queue": "gpu"},
    **{"nodes": 2, "walltime": 7200, "submitted": 0.0, "folder": "/f"},
}


INTENTS = [RECORD | {"name": f"mc1f3a9c4200e1{last}"} for last in "123"]


class Site:
    """A login host that answers with what real commands printed."""

    user = "researcher"
    facts = HostFacts("login", "login", "192.0.2.9", "192.0.2.9", "")

    def run(self, argv, *, stdin="", timeout_s=0.0, accept=(0,)) -> Completed:
        texts = {"qstat": "slurm_qstat_q.txt", "pbsnodes": "slurm_pbsnodes.txt"}
        name = next((texts[word] for word in argv if word in texts), None)
        return Completed(153 if "qstat" in argv else 0, (REAL / name).read_text() if name else "", "")


def facts(**wanted: object) -> ClusterFacts:
    asked = {"name": "gpu", "nodes": 2, "processors": 4, "walltime_s": 3600} | wanted
    return ClusterFacts("dev", "1f3a9c42", queue=Queue(**asked), mount_point="/home/me/runs")


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"walltime_s": 9 * 3600}, "the walltime of 9 h is over the queue's 8 h"),
        ({"nodes": 3}, "2 of its 2 nodes are up and have 4 processors"),
        ({"processors": 50}, "0 of its 2 nodes are up and have 50 processors"),
        ({"name": "short"}, "it has no queue short; it has gpu, gpu-long"),
    ],
)
def test_a_request_that_the_live_queue_never_runs_is_refused_before_submission(wanted, reason):
    with pytest.raises(RemoteError, match=f"{reason}.*Nothing was submitted"):
        queue.prepare(Site(), facts(**wanted))
    queue.prepare(Site(), facts())


def test_a_jobs_name_has_the_mark_fits_torque_and_differs_by_run():
    dev = replace(facts(), run="00e11aabbccd")
    others = replace(dev, run="00e11aabbcce"), replace(dev, mount_point="/scratch/me")
    names = {queue.request_of(each)["name"] for each in (dev, *others)}
    assert len(names) == 3
    assert all(name.startswith("mc1f3a9c42") and len(name) == 15 for name in names)


class Busy(Site):
    """A queue with jobs, and what this person's jobs have written down."""

    def __init__(self, *written: dict) -> None:
        self.written = "".join(f"{json.dumps(each)}\n" for each in written)

    def run(self, argv, **options) -> Completed:
        if "leave" in argv:
            return Completed(0, '{"failed": "job 3 is still there"}', "")
        if argv[0] == "date":
            return Completed(0, "10000\n", "")
        return Completed(0, (REAL / "slurm_qstat.txt").read_text() if "qstat" in argv else self.written, "")


def test_only_this_persons_living_jobs_with_a_record_belong_to_the_stack():
    busy = Busy(*INTENTS)
    assert [job.number for job, _ in queue.jobs_of(busy, "dev-1f3a9c42")] == ["3", "4", "5"]
    assert queue.jobs_of(busy, "dev-00000000") == queue.jobs_of(Busy()) == []
    two = Busy(INTENTS[0] | {"stack": "copy"}, *INTENTS[1:])  # Two stacks with one key.
    assert [job.number for job, _ in queue.jobs_of(two, "dev-1f3a9c42")] == ["4", "5"]
    assert [each.owner.stack for each in Queue_(two).resources()][0] == "copy"
    busy.user = "somebody"
    assert queue.jobs_of(busy) == []


def test_an_earlier_runs_queued_job_prevents_another_submission(monkeypatch):
    monkeypatch.setattr(job, "wait_for_ssh", lambda login: None)
    with pytest.raises(RemoteError, match=r"for run 00e11aabbccd \(leave\): job 3 is still there"):
        job.start_job([Busy(RECORD)], replace(facts(), run="ffff00001111"))


def test_a_waiting_run_is_being_prepared_and_says_since_when_it_waits():
    place = {"job": "7", "queue": "gpu", "position": 2, "waiting": 5, "waited_s": 90.0}
    waiting = {"alive": True, "phase": "queued", "queue": place, "stopped": True, "events": [], "silent_s": None}
    outcome = judge(seen(**waiting, exit_code=1))
    assert (outcome.state, outcome.phase, outcome.phase_s) == ("preparing", "queued", 90.0)
    assert outcome.doing == "job 7 is number 2 of 5 that wait in queue gpu"


@pytest.mark.parametrize(
    ("life", "is_running", "hours"),
    [
        ({"ended": 1800.0}, False, Decimal(1)),
        ({"seen": 2690.0}, True, Decimal("1.5")),
        ({"seen": 1780.0}, False, Decimal(1)),
        ({"seen": 1780.0, "nodes": 1}, False, Decimal("0.5")),
    ],
)
def test_the_receipt_counts_each_nodes_hours_until_end_or_last_sight(life, is_running, hours):
    start = {**RECORD, "id": "7", "started": 0.0, **life}
    found = charge(start, datetime.fromtimestamp(2700, UTC), is_running=is_running)
    assert (found.so_far, found.currency, found.is_open) == (hours, "node hours", is_running)


def test_every_start_of_a_job_is_charged_and_only_the_last_open():
    starts = [{**RECORD, "id": "3", "started": began, "seen": began + 1780} for began in (9000.0, 0.0)]
    found = Queue_(Busy(RECORD, *starts)).charges(Owner("dev", "1f3a9c42"))
    assert [(each.opened.timestamp(), each.is_open) for each in found] == [(0, False), (9000, True)]
    assert found[0].so_far == 1


def test_a_queued_run_has_one_folder_and_nodes_without_known_addresses():
    stack = parsed()
    owner = StackKeys(Owner("slurm", "1f3a9c42"), "", "/key", "/rank")
    folder = RunFolder(replace(facts_of(stack, owner), run="00e11aabbccd"))
    assert folder.document.checkpoints.shared == f"{folder.path}/logdir"
    assert folder.document.machines.ssh[-2:] == ["batch.step", folder.path]
    assert folder.document.machines.addresses == ("{node-0}", "{node-1}")


class Here(Site):
    """A login host whose shell is this computer's, with these programs first in its path."""

    def __init__(self, folder: Path, **programs: str) -> None:
        self.folder = folder
        for name, text in programs.items():
            (folder / name.replace("_", ".")).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name.replace("_", ".")).chmod(0o755)

    def run(self, argv, **options) -> Completed:
        environment = {"HOME": str(self.folder), "PATH": f"{self.folder}:/usr/bin:/bin"}
        # Without -l, which would set the path anew.
        words = [word for word in argv if word != "-l"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        return Completed(done.returncode, done.stdout, done.stderr)


def of_python(python: str | None, **changed: object) -> ClusterFacts:
    job = parsed().job.model_copy(update={"python": python, **changed})
    return replace(facts(modules=("anaconda/2",)), job=job)


OLD = """exec python3 -c 'import sys; sys.version_info = (2, 7); exec(sys.argv[1])' "$2\""""


@pytest.mark.parametrize(
    ("programs", "wanted", "reason"),
    [
        ({"python3": "exit 127"}, of_python("python3"), "there is no python3 of 3.5 or newer.*there is no python3"),
        ({"python3_6": "exit 1"}, of_python("python3.6"), "python3.6 has no module venv"),
        ({}, of_python("python2.7"), "with anaconda/2 loaded: there is no python2.7"),
        ({"python2_7": OLD}, of_python("python2.7"), "python2.7 is Python 2: .* and give job.preflight"),
        (
            {"python2_7": OLD},
            of_python("python2.7", requirements=("numpy==1.16.0",), preflight="skip: Python 2"),
            "leave job.requirements out",
        ),
    ],
)
def test_an_unfit_interpreter_is_a_sentence_before_the_submission(tmp_path, programs, wanted, reason):
    with pytest.raises(RemoteError, match=f"(?s){reason}.*Nothing was submitted"):
        queue.check_interpreters(Here(tmp_path, **programs), wanted)


def test_a_sites_python_2_is_accepted_without_requirements_and_without_the_preflight(tmp_path):
    queue.check_interpreters(Here(tmp_path, python2_7=OLD), of_python("python2.7", preflight="skip: Python 2"))


def queued(folder: Path, **job: object) -> RunFolder:
    known = parsed()
    run = replace(facts_of(known, StackKeys(Owner("slurm", "1f3a9c42"), "", "/key", "/rank")), run="00e11aabbccd")
    return RunFolder(replace(run, job=known.job.model_copy(update=job), mount_point=str(folder)))


COMMIT = {"source": "https://example.com/a/program", "commit": "0123456789abcdef0123456789abcdef01234567"}
PYTHON = (
    'case "$*" in *"-m venv"*) for folder; do :; done; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python" ;; esac'
)
GIT = 'echo "$@" >> "$HOME/asked"; [ "$1" != clone ] || { for folder; do :; done; mkdir -p "$folder"; echo > "$folder/train.py"; }'


def test_a_repository_comes_on_the_login_host_and_the_job_finds_it(tmp_path):
    run = queued(tmp_path, **COMMIT)
    login = Here(tmp_path, python3=PYTHON, git=GIT)
    queue.make_environment(login, run)
    assert (Path(run.path) / "program" / "train.py").exists()
    asked = (tmp_path / "asked").read_text()
    assert f"clone --quiet --no-checkout {COMMIT['source']}" in asked and COMMIT["commit"] in asked
    login.run(run.document.program.make_environment)  # As the job does, on a node without a network.
    assert (tmp_path / "asked").read_text() == asked


def test_a_repository_that_the_login_host_cannot_clone_is_a_sentence(tmp_path):
    login = Here(
        tmp_path, python3=PYTHON, git="echo 'fatal: unable to access it: Could not resolve host' >&2; exit 128"
    )
    with pytest.raises(
        RemoteError, match=r"run 00e11aabbccd on login: fatal: .*Could not resolve host\. Nothing was submitted"
    ):
        queue.make_environment(login, queued(tmp_path, **COMMIT))


def test_a_program_of_this_computer_leaves_the_login_host_alone(tmp_path):
    run = queued(tmp_path)
    queue.make_environment(Here(tmp_path), run)
    assert not Path(run.path).exists()


def test_seawulf_tests_every_card_by_an_environment_of_ones_own():
    stack, text = config.read_file("seawulf"), config.path_of("seawulf").read_text()
    folder = RunFolder(
        replace(facts_of(stack, StackKeys(Owner("seawulf", "1f3a9c42"), "", "/k", "/r")), run="00e11aabbccd")
    )
    assert folder.document.limits.preflight_skipped == "" and not any(
        "python" in each for each in stack.cluster.modules
    )
    made, python = stack.job.python.removesuffix("/bin/python"), f"mxnet-cu80=={stack.job.mxnet_version}"
    assert f"python3 -m venv {made} && {made}/bin/pip install numpy==1.13.3 {python}\n" in text
    (words,) = {one.argv[-5:] for one in folder.document.program.collective if one.role == "worker"}
    assert words[-2:] == ("parameter-server", str(stack.cluster.slots))
