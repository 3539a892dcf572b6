"""A run on a machine as its real agent shows it: the folder of a small finished run, and the well-formed answer to every question of the product."""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import agent
from components.cluster import facts_of
from microcluster.config import stack as config
from microcluster.core.files import write_whole
from microcluster.core.home import Owner
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder, decided
from tests.tiny_checkpoint import save
from tests.unit.fake_machine import FakeMachine
from tests.unit.sampled_run import SampledRun

WORD, STEPS, ANSWER_LIMIT_S = "0a1b2c", 300, 60
TOOLS = (
    *(
        "sh",
        "cat",
        "test",
        "find",
        "wc",
        "basename",
        "dirname",
        "stat",
        "sha256sum",
        "head",
        "tail",
        "ls",
        "env",
        "sort",
    ),
    *("nice", "echo", "printf", "timeout", "dd", "cut", "tr", "sed", "awk", "grep"),
)
ASKED = ("records.run_snapshot", "records.inventory", "readers.scalars", "checkpoints.listing")
"""The agent's programs that only read."""
SAID = {"supervise.supervisor": "started\n", "supervise.guard": ""}
KILLED = json.dumps({"ended": 0, "left": [], "unseen": ""}) + "\n"
PROVIDED = b"""system=ubuntu 18.04
python=3.6
apt=/usr/bin/apt-get
absent=
docker=Docker version 20.10.7, build f0df350
toolkit=/usr/bin/nvidia-container-runtime
runtimes={"nvidia":{"path":"nvidia-container-runtime"},"runc":{"path":"runc"}}
driver=works
"""
SSHD = b"""root:
passwordauthentication no
kbdinteractiveauthentication no
challengeresponseauthentication no
permitrootlogin prohibit-password
pubkeyauthentication yes
authenticationmethods publickey
"""
FIXED = {
    "nvidia-smi": b"Tesla P100-PCIE-16GB, 16280, 440.118.02, 0\n" * 2,
    "uname": b"4.15.0-20-generic\n",
    "docker image inspect": b"sha256:1\n",
    "timedatectl": b"System clock synchronized: yes\n",
}
CLUSTER = {"datacenter": "lon06", "flavor": "AC1_16X120X100", "adminCidrs": ["198.51.100.7/32"]}
SECTIONS = {
    "cluster": CLUSTER,
    "container": {"image": "r.test/microcluster/training:local"},
    "job": {"kind": "openseq2seq", "model": "transformer-tiny", "maxSteps": STEPS, "dataset": "debian-en-de"},
}


class Everything(dict[str, str]):
    """Images of a machine that has every one."""

    def __missing__(self, name: str) -> str:
        return "sha256:1"


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    stdout: bytes
    stderr: bytes = b""
    code: int = 0


def facts_below(place: Path) -> ClusterFacts:
    """Return the facts of a cluster whose data disk is a folder on this computer; hosts and keys are filled in later."""
    parsed = config.parse("hostile", {f"microcluster:{name}": section for name, section in SECTIONS.items()})
    nobody = config.StackKeys(Owner("hostile", "1f3a9c42"), "ssh-ed25519 AAAA", "key", "rank_key")
    facts = decided(facts_of(config.with_files(parsed), nobody))
    return replace(facts, mount_point=str(place))


def write_run(facts: ClusterFacts) -> None:
    """Write the run's folder as its launcher has it after a run that finished."""
    folder = RunFolder(facts, ("sha256:1", "sha256:1"), WORD)
    path = Path(folder.path)
    (path / "logdir").mkdir(parents=True)
    shutil.copytree(Path(agent.__file__).parent, path / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in folder.texts().items():
        (path / name).write_text(text)
    made = SampledRun(steps=STEPS + 1, print_steps=10, eval_steps=100, copy_steps=100).events()
    lines = {"progress.jsonl": [], "samples.jsonl": []}
    for event in [{"event": "phase", "phase": "preparing", "t": 900.0}, *made]:
        lines["samples.jsonl" if event["event"] == "sample" else "progress.jsonl"].append(json.dumps(event) + "\n")
    texts = {name: "".join(each) for name, each in lines.items()}
    texts |= {"exit_code": "0\n", "phase": "training\n", "word": WORD + "\n"}
    texts |= {"job.log": "".join(f"*** Global step {n}: ***  Train loss: 3.5\n" for n in range(STEPS))}
    texts |= {"preflight.json": json.dumps({"rows": [], "nodes": {}}), "logdir/notes.txt": "notes\n"}
    for name, text in texts.items():
        (path / name).write_text(text)
    save(path / "logdir", f"model.ckpt-{STEPS}")
    (path / "logdir" / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{STEPS}"\n')
    data = folder.data
    for name in (*data.files, *data.needed):
        file = Path(data.folder) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("one line\n" * 3)


def write_fetched(facts: ClusterFacts, place: Path) -> None:
    """Write the folder that a fetch of this run leaves on the person's computer."""
    folder, data = Path(RunFolder(facts).path), RunFolder(facts).data
    request = {"first": True, "step": None, "hashed": True, "everything": False}
    request |= {"data": data.folder, "names": list(data.needed)}
    argv = (sys.executable, str(folder / "agent"), "records.inventory", str(folder), json.dumps(request))
    listed = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)["files"]
    for one in listed:
        (place / one["path"]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(one["source"], place / one["path"])
        one["there"] = {"gpu-0": one.pop("written")}
        del one["step"]  # Not kept in a manifest.
    known = {"run": facts.run, "word": WORD, "stack": "hostile", "step": STEPS, "fetched": "2026-11-27T00:00:00+00:00"}
    (place / "manifest.json").write_text(json.dumps({**known, "files": listed}))


@dataclass
class Truth:
    """Answers what the machine of a run would answer; each question is carried out once, and its answer kept for all cases.

    Attributes:
        place: the folder that is the machines' data disk; nothing in it is changed by an answer.
        kept: the folder with the answers.
    """

    place: Path
    kept: Path

    def answer(self, line: str, given: bytes) -> Answer:
        """Return the answer to one line of a shell with this standard input."""
        file = self.kept / hashlib.sha256(line.encode("utf-8", "surrogateescape") + b"\0" + given).hexdigest()
        with contextlib.suppress(FileNotFoundError):
            known = json.loads(file.read_text())
            return Answer(known["stdout"].encode("latin-1"), known["stderr"].encode("latin-1"), known["code"])
        found = self._made(line, given)
        write_whole(
            file,
            json.dumps(
                {
                    "stdout": found.stdout.decode("latin-1"),
                    "stderr": found.stderr.decode("latin-1"),
                    "code": found.code,
                    "line": line[:2000],
                }
            ),
        )
        return found

    def _made(self, line: str, given: bytes) -> Answer:
        words = shlex.split(line)
        text = given.decode("utf-8", "replace")
        if words[0] == "docker" and words[1] == "exec":
            is_translation = words[-2:-1] == ["cat"] and words[-1].endswith("/translated")
            return Answer(
                b"one\ntwo\n" if is_translation else given
            )  # A tokenizer that changes nothing; of what infers, nothing is read.
        if words[0] == "cat" and words[-1].endswith("/translated"):
            return Answer(b"one\ntwo\n")
        if words[:2] == ["test", "-f"] and words[-1].endswith("/translated"):
            return Answer(b"")
        said = _of_the_agent(words, text)
        if said is not None:
            return Answer(said.encode())
        if _only_reads(words, text) and str(self.place) in line:
            return self._run(line, given)
        return self._of_a_machine(words, text)

    def _of_a_queue(self, words: list[str]) -> Answer:
        """Return what a login shell answers: the run is over, and the queue is empty."""
        if "batch.login" not in words:
            return Answer(b"")
        folder = words[1].removesuffix("/agent")
        return self._run(shlex.join(("python3", words[1], "records.run_snapshot", folder)), b"")

    def _of_a_machine(self, words: list[str], given: str) -> Answer:
        """Return what a machine in memory answers on which every step was done before; what it does not know succeeds in silence."""
        if words[0] == "sh" and words[3:4] in (["provided"], ["sshd-settings"]):
            return Answer(PROVIDED if words[3] == "provided" else SSHD)
        if words[:2] == ["bash", "-l"]:
            return self._of_a_queue(words[words.index("inside") + 1 :])
        if words[0] == "date":
            return Answer((b"%d\n" if words[1:] == ["+%s"] else b"%f\n") % time.time())
        fixed = {**FIXED, "docker info": f"{self.place}/docker\n".encode()}
        for beginning, said in fixed.items():
            if " ".join(words).startswith(beginning):
                return Answer(said)
        try:
            done = FakeMachine(images=Everything()).run(words, stdin=given, accept=range(256))
            return Answer(done.stdout.encode(), done.stderr.encode(), done.exit_code)
        except (AttributeError, LookupError, StopIteration, ValueError):
            return Answer(b"")

    def _run(self, line: str, given: bytes) -> Answer:
        """Carry the line out here, with programs that only read."""
        tools = self.kept / "bin"
        if not tools.exists():
            tools.mkdir(parents=True)
            for name in TOOLS:
                if path := shutil.which(name):
                    (tools / name).symlink_to(path)
            (tools / "python3").symlink_to(os.path.realpath(sys.executable))
        environment = {"PATH": str(tools), "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            ["sh", "-c", line], input=given, capture_output=True, env=environment, timeout=ANSWER_LIMIT_S, check=False
        )
        return Answer(done.stdout, done.stderr, done.returncode)


def _of_the_agent(words: list[str], given: str) -> str | None:
    """Return what the agent's programs print that would change something, None for all others."""
    joined = " ".join(words)
    if "End every process of a run on this host" in given:
        return KILLED
    for program, said in SAID.items():
        if program in joined:
            return said
    return None


def _only_reads(words: list[str], given: str) -> bool:
    """Tell whether a command of the product changes nothing on its machine."""
    if words[0] in ("test", "cat", "find", "wc", "sha256sum", "stat"):
        return True
    if words[:2] == ["python3", "-c"] and "records.inventory" in words[2]:
        return True
    if words[0] == "python3":
        return any(program in words for program in ASKED) or (words[1] == "-" and "getsize" in given)
    return words[0] == "sh" and words[3:4] in (
        [each] for each in ("look", "runs", "is-whole", "pieces", "describe", "end")
    )


def as_json(answer: Answer) -> Any:
    """Return what an answer says where it is one JSON object or list; None for everything else."""
    try:
        found = json.loads(answer.stdout)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None
