"""A machine in memory behind the interface of Host: files, disks, mounts, Docker and its containers."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.nodes.chain_copy import MARK
from microcluster.jobs import cluster_facts
from microcluster.remote.errors import CommandError, Completed
from microcluster.remote.host import Host
from microcluster.remote.training_image import RECEIVE

FACTS = cluster_facts.HostFacts("gpu-0", "101", "198.51.100.7", "10.112.7.2", "ssh-ed25519 AAAA")
GIB = 1024**3


@dataclass
class Disk:
    """Content of a block device; ``dirty`` names the end that has a non-zero byte."""

    size: int
    kind: str = ""
    label: str = ""
    uuid: str = ""
    signatures: str = ""
    dirty: str = ""
    partitions: int = 0


@dataclass
class FakeMachine(Host):
    """Answers the commands that the steps use, and remembers what they changed in ``changes``."""

    files: dict[str, str] = field(
        default_factory=lambda: {"/etc/fstab": "", "/etc/docker/daemon.json": '{"runtimes": {"nvidia": {}}}'}
    )
    modes: dict[str, int] = field(default_factory=dict)
    disks: dict[str, Disk] = field(default_factory=lambda: {"/dev/xvdc": Disk(2000 * GIB)})
    mounts: dict[str, str] = field(default_factory=dict)
    docker_root: str = "/var/lib/docker"
    images: dict[str, str] = field(default_factory=dict)
    registry: dict[str, str] = field(default_factory=dict)
    published: dict[str, str] = field(default_factory=dict)
    registry_key: str = "right"
    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    facts: cluster_facts.HostFacts = FACTS
    network: "dict[str, FakeMachine]" = field(default_factory=dict)
    build_ends: tuple[int, str] = (0, "Successfully built")
    way_ends: int = 0
    chain_ends: str = ""
    is_busy: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.facts, "root", "/nowhere")
        self.network[self.facts.private_address] = self

    def connect(self) -> None:
        """Be there already."""

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout_s: float | None = None,
        accept: Sequence[int] = (0,),
        answer_bytes: int = 0,
    ) -> Completed:
        words = tuple(argv)
        handler = getattr(self, "_" + words[0].replace(".", "_"))
        answer = handler(words, stdin)
        code, out, *err = answer if isinstance(answer, tuple) else (0, answer or "")
        done = Completed(code, out, "".join(err))
        if code not in accept:
            raise CommandError(str(self), words, done)
        return done

    def _test(self, words, stdin):
        there = {"-f": self.files, "-b": self.disks, "-d": ()}[words[1]]
        return (0 if words[2] in there else 1), ""

    def _cat(self, words, stdin):
        return self.files[words[1]]

    def _stat(self, words, stdin):
        return f"{self.modes.get(words[-1], 0o644):o}\n"

    def _mkdir(self, words, stdin):
        return ""

    def _chmod(self, words, stdin):
        return ""

    def _rm(self, words, stdin):
        for path in words[1:]:
            self.files.pop(path, None)

    def _sh(self, words, stdin):
        if words[3:4] == ("put",):
            self.files[words[4]], self.modes[words[4]] = stdin, int(words[5], 8)
            self.changes.append(f"put {words[4]}")
        elif words[3:4] == ("pull",):
            return self._pull(words, stdin)
        elif words[3:4] == ("hand-over",):
            return self._hand_over(words[4], self.network[words[6]])
        elif words[3:4] == ("busy",):
            return (0 if self.is_busy else 1), ""
        elif words[3:4] == ("terminals",):
            self.mounts[words[5]] = words[4]
        elif words[3:4] == ("remove",):
            for name in self._with_mount(words[4]):
                self._docker_rm(("docker", "rm", "-f", name))
        elif words[3:4] == ("source",):
            return f"number of {self.mounts[words[4]]}"
        return ""

    def _pull(self, words, stdin):
        if stdin != self.registry_key:
            return 41, ""
        tag, by_digest = words[5:]
        now = self.registry.get(tag)
        if now:
            self.published[digest_of(now)] = now
        found = self.published.get(by_digest.partition("@")[2]) if by_digest else now
        if not found:
            return 42, ""
        self.images[tag] = found
        self.changes.append(f"pull {by_digest or tag}")
        return f"{digest_of(found)}\n" + ("moved\n" if now not in (None, found) else "")

    def _hand_over(self, image: str, target: "FakeMachine"):
        if self.way_ends == 255:
            return 255, "connect to host port 22: Connection timed out"
        door = target.files.pop("/root/.ssh/authorized_keys2", "")
        if f'from="{self.facts.private_address}"' not in door:
            return 255, "Permission denied (publickey)"
        target.images[image], target.labels[image] = self.images[image], self.labels.get(image, "")
        if self.way_ends:  # Docker's containerd store lists what it could not unpack.
            return self.way_ends, "write /layer.tar: no space left on device"
        self.changes.append(f"hand {image} to {target.facts.name}")
        return target._pass_on(image) if RECEIVE in door else ""

    def _pass_on(self, image: str):
        """Be in the middle of a chain; what breaks behind it is said, and is no failure of its own."""
        onward = self.network.get(self.files[RECEIVE].split()[-1])
        if not onward:
            return ""
        code, said = (255, self.chain_ends) if self.chain_ends else (0, "")
        if not code:
            answer = self._hand_over(image, onward)
            code, said = answer if isinstance(answer, tuple) else (0, answer)
        return f"{MARK}{json.dumps([onward.facts.private_address, said])}\n" if code else said

    def _env(self, words, stdin):
        code, said = self.build_ends
        if code:
            return code, said
        tag, label = (words[words.index(option) + 1] for option in ("--tag", "--label"))
        self.images[tag], self.labels[tag] = f"sha256:of {label}", label.partition("=")[2]
        self.files["Dockerfile"] = stdin
        self.changes.append(f"build {tag}")
        return ""

    def _blockdev(self, words, stdin):
        return f"{self.disks[words[2]].size}\n"

    def _blkid(self, words, stdin):
        disk = self.disks[words[-1]]
        if "-s" not in words:
            return (0, disk.kind) if disk.kind else (2, "")
        value = {"LABEL": disk.label, "TYPE": disk.kind, "UUID": disk.uuid}[words[words.index("-s") + 1]]
        return (0, value + "\n") if value else (2, "")

    def _wipefs(self, words, stdin):
        if words[1:-1] != ("--parsable",):
            return 1, "", f"wipefs: unrecognized option '{words[1]}' (of util-linux 2.27, as on Ubuntu 16.04)"
        disk = self.disks[words[-1]]
        found = disk.signatures or disk.kind
        return f"# offset,uuid,label,type\n0x438,,{disk.label},{found}\n" if found else ""

    def _lsblk(self, words, stdin):
        return "\n".join(["xvdc", *(f"xvdc{n}" for n in range(self.disks[words[-1]].partitions))])

    def _cmp(self, words, stdin):
        end = "first" if "0:0" in words else "last"
        return (1 if self.disks[words[-2]].dirty == end else 0), ""

    def _mkfs_ext4(self, words, stdin):
        disk = self.disks[words[-1]]
        disk.kind, disk.label, disk.uuid = "ext4", words[words.index("-L") + 1], "u-1"
        self.changes.append(f"format {words[-1]}")

    def _findmnt(self, words, stdin):
        device = self.mounts.get(words[-1])
        return (0, f"{device} {self.disks[device].label}") if device else (1, "")

    def _mount(self, words, stdin):
        line = next(line for line in self.files["/etc/fstab"].splitlines() if line.split()[1] == words[1])
        uuid = line.split()[0].removeprefix("UUID=")
        self.mounts[words[1]] = next(name for name, disk in self.disks.items() if disk.uuid == uuid)
        self.changes.append(f"mount {words[1]}")

    def _service(self, words, stdin):
        self.docker_root = json.loads(self.files["/etc/docker/daemon.json"]).get("data-root", "/var/lib/docker")
        self.changes.append("restart docker")

    def _python3(self, words, stdin):
        return ""

    def _docker(self, words, stdin):
        return getattr(self, "_docker_" + words[1])(words)

    def _docker_version(self, words):
        return "20.10"

    def _docker_info(self, words):
        return self.docker_root

    def _docker_image(self, words):
        known = self.labels if "Labels" in words[4] else self.images
        there = words[-1] in self.images
        return (0, known.get(words[-1], "") + "\n") if there else (1, "\n", f"Error: No such image: {words[-1]}\n")

    def _docker_rmi(self, words):
        return "" if self.images.pop(words[-1], None) else (1, "", f"Error: No such image: {words[-1]}\n")

    def _docker_container(self, words):
        found = self.containers.get(words[-1])
        return (0, json.dumps([found])) if found else (1, "[]", f"Error: No such container: {words[-1]}\n")

    def _with_mount(self, mount):
        binds = {name: found["HostConfig"]["Binds"] for name, found in self.containers.items()}
        return [name for name in binds if any(mount in bind.split(":") for bind in binds[name])]

    def _docker_rm(self, words):
        del self.containers[words[-1]]
        self.changes.append(f"remove {words[-1]}")

    def _docker_run(self, words):
        image, command = words[-3], list(words[-2:])
        name = words[words.index("--name") + 1]
        self.containers[name] = {
            "Image": self.images[image],
            "State": {"Running": True},
            "HostConfig": {
                "Runtime": next(word.partition("=")[2] for word in words if word.startswith("--runtime=")),
                "NetworkMode": "host",
                "Binds": [words[i + 1] for i, word in enumerate(words) if word == "-v"],
                "ShmSize": next(int(word.partition("=")[2]) for word in words if word.startswith("--shm-size=")),
                "Ulimits": [_ulimit(words[i + 1]) for i, word in enumerate(words) if word == "--ulimit"],
            },
            "Config": {
                "Cmd": command,
                "Env": [words[i + 1] for i, word in enumerate(words) if word == "-e"],
                "Labels": dict([words[words.index("--label") + 1].split("=", 1)]),
            },
        }
        self.changes.append(f"run {name}")


def digest_of(content: str) -> str:
    """Return what a registry calls an image of this content."""
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"


def _ulimit(word: str) -> dict[str, Any]:
    name, _, most = word.partition("=")
    return {"Name": name, "Soft": int(most), "Hard": int(most)}
