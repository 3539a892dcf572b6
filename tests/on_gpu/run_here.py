"""One run of the real agent on the machine that this is on: planned, placed, started, looked at and ended as `fab` does it, without ssh.

What stays out of the proof is `microcluster/remote`: connections, firewall, Docker, the ranks' keys. With one node the agent itself
never opens a connection.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import agent
from agent.kill_run import NO_CONTAINER
from agent.nodes.node_facts import address_or_none
from microcluster.analysis.failure_hints import next_step
from microcluster.analysis.run_state import judge
from microcluster.jobs.cluster_facts import ClusterFacts, HostFacts, MachineLimits, SourceFile
from microcluster.jobs.kinds import section_of
from microcluster.jobs.run_spec import RunFolder, decided

AGENT = Path(agent.__file__).parent
WORK = os.environ["WORK"]
NODE, WORD = "gpu-0", "0a0b0c"
START_S, LOOK_S, END_S = 60, 30, 60
ALIVE = ("preparing", "running", "stalled")


def card():
    """Return the network card that the plan names: the first with a private address, else the loopback, which a single node may use."""
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    return next((name for name in names if address_or_none(name)), "lo")


def sources(*folders):
    """Return the texts of programs, as a stack file's `source` brings them."""
    found = [path for folder in folders for path in sorted(Path(folder).glob("*.py"))]
    return tuple(SourceFile(path.name, path.read_text()) for path in found)


def torch_packages():
    """Return where torch lies: a run's own environment, made by a Python that is one itself, does not see its packages."""
    argv = [sys.executable, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"]
    return subprocess.check_output(argv, text=True).strip()


class RunHere:
    """A run; ``job`` is the section of a stack file, ``gpu`` what a catalog would say that was ordered."""

    def __init__(self, job, texts, *, slots=1, gpu=None, idle_s=None):
        name = card()
        section = {
            **job,
            "source": "here",
            "environment": {"PYTHONPATH": os.environ["TORCH_PACKAGES"], **job.get("environment", {})},
        }
        facts = ClusterFacts(
            stack="on-gpu",
            mark="00000000",
            hosts=(HostFacts(NODE, "here", "", address_or_none(name), ""),),
            interface=name,
            slots=slots,
            gpu=gpu,
            mount_point=WORK,
            job=section_of(section).model_validate(section),
            texts=texts,
            guard=MachineLimits(idle_s=idle_s) if idle_s else None,
        )
        self.facts = decided(facts)
        self.planned = RunFolder(self.facts, word=WORD)
        self.folder = Path(self.planned.path)
        self.environment = {
            key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "TORCH_PACKAGES")
        }

    def start(self):
        """Place the run's files and detach its supervisor, with the words of `microcluster.remote.job`."""
        files = [(f"agent/{path.relative_to(AGENT)}", path.read_text()) for path in sorted(AGENT.rglob("*.py"))]
        files += list(self.planned.texts().items())
        self._ask(
            ["python3", "-c", (AGENT / "place_files.py").read_text(), str(self.folder)], START_S, json.dumps(files)
        )
        said = self._ask(
            ["python3", f"{self.folder}/agent", "supervise.supervisor", "start", str(self.folder)], START_S
        )
        if said.strip() != "started":
            raise RuntimeError(f"the supervisor says: {said}")
        return self

    def look(self):
        """Return the run's state as `fab status` has it."""
        return judge(
            json.loads(self._ask(["python3", f"{self.folder}/agent", "records.run_snapshot", str(self.folder)], LOOK_S))
        )

    def wait(self, is_so, limit_s, every_s=1.0):
        """Look until something is so, the run is over, or the time is; return the last look."""
        deadline = time.monotonic() + limit_s
        while True:
            found = self.look()
            if is_so(found) or found.state not in ALIVE or time.monotonic() >= deadline:
                return found
            time.sleep(every_s)

    def end(self):
        """End every process of the run, as `fab stop` does; return {ended, left}."""
        argv = ["python3", "-", f"{WORK}/runs", "only", self.facts.run, NO_CONTAINER, ""]
        return json.loads(self._ask(argv, END_S, (AGENT / "kill_run.py").read_text()))

    def events(self, name="progress.jsonl"):
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def preflight(self):
        path = self.folder / "preflight.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def failure(self):
        path = self.folder / "failure.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def ranks(self, script):
        """Return {rank: process} of the run's ranks themselves, not of what wraps them."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                values = dict(
                    one.split(b"=", 1) for one in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if b"=" in one
                )
            except OSError:
                continue
            is_ours = values.get(b"MICROCLUSTER_RUN") == self.facts.run.encode()
            if is_ours and len(words) > 1 and words[1].endswith(script.encode()):
                found[int(values.get(b"RANK", b"0"))] = int(pid)
        return found

    def hint(self):
        return next_step(self.look(), "on-gpu")

    def _ask(self, argv, limit_s, stdin=""):
        done = subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=limit_s, env=self.environment, check=False
        )
        if done.returncode and "start" not in argv:
            raise RuntimeError(
                f"{argv[:3]} ended with exit code {done.returncode}: {(done.stdout + done.stderr)[-500:]}"
            )
        return done.stdout
