"""The facts that a remote step needs, as frozen values and as one JSON document on its standard input."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, SerializeAsAny, TypeAdapter, ValidationError

from microcluster.core.home import Home, Owner
from microcluster.jobs.finished_data import Data
from microcluster.jobs.folder_tree import FolderTree
from microcluster.jobs.job_section import Section
from microcluster.jobs.kinds import section_of

SSH_PORT = 4444
"""Port of sshd in a container; the ports of measurements lie beside it, also without a container."""
KEY_IN_HOME = re.compile(r'"key_file": ?("([^"]*)/keys/[^"/]+/id_ed25519")')


class ClusterFactsError(Exception):
    """The JSON is not a payload; the message is a full sentence that names the key."""


@dataclass(frozen=True)
class SourceFile:
    """One text of the user's own program, in facts of an earlier version: its path below the source, and its content."""

    name: str
    text: str


@dataclass(frozen=True)
class HostFacts:
    """One machine as SSH and MPI see it; ``host_key`` is the public line "ssh-ed25519 AAAA..."."""

    name: str
    guest_id: str
    public_address: str
    private_address: str
    host_key: str


@dataclass(frozen=True)
class Container:
    """The training container.

    Attributes:
        image: the base, on which the image is built.
        registry_key_file: a path on the operator's computer.
        trainer: what trains in the local training image; None in every other one.
        dockerfile: of the image, as the job's kind wants it; ``tag`` is the name of what is built by it.
        setup: the hash of the lines that runs change it by, where there are any; another one makes a new container.
    """

    name: str
    image: str
    runtime: str = "nvidia"
    ssh_port: int = SSH_PORT
    registry_key_file: str | None = None
    trainer: str | None = None
    dockerfile: str = ""
    tag: str = ""
    setup: str | None = None


@dataclass(frozen=True)
class Drive:
    """A network drive that every host mounts; its password is read from the account when it is mounted."""

    id: str
    address: str
    share: str
    username: str


@dataclass(frozen=True)
class Queue:
    """Request to a site's queue.

    Attributes:
        modules: environment modules that are loaded on the login host and in the job.
    """

    name: str
    nodes: int
    processors: int
    walltime_s: int
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """Forecast of a step: seconds, seconds of computing on the GPUs, and bytes that each network card sends and receives."""

    seconds: float | None
    compute_s: float | None
    wire_bytes: int


@dataclass(frozen=True)
class MachineLimits:
    """Limits at which the supervisor stops the program: a time in UTC seconds, and idle seconds."""

    stop_at: float | None = None
    idle_s: float | None = None


def _job(value: Any) -> Any:
    """Return the section that a stack file's ``job`` is, by its kind."""
    return section_of(value).model_validate(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class ClusterFacts:
    """Everything about one stack's cluster and job; a step gets only the fields that it needs.

    Attributes:
        stack: the name under which a command finds the stack; in what Pulumi keeps, the label, which no rename changes.
        label: the label for commands on a stack that was renamed.
        account: the name in the registry of accounts of where it was ordered; None for facts of before there was a second one.
        account_config_file: the file with the account's key.
        container: None on machines without the container step, where the processes run on the machine itself.
        shared_mount: where every host mounts one and the same drive, which then holds the checkpoints.
        drive: what is mounted there.
        admin_cidrs, private_subnet: who may reach port 22, and everything, where the hosts have a firewall of their own only.
        queue: with it the hosts are those that a queue grants, which are reached through the site's login host only.
        job: the section of the stack file; ``data`` and ``tree`` are what it names of the operator's computer; an earlier version
            wrote ``texts`` in place of a tree.
        lease_minutes: of nodes, where a queue grants them: what is written down beside the rental with each submission.
        per_hour: what all hosts cost, in the account's currency, as it was priced before the order.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    stack: str
    mark: str
    hosts: tuple[HostFacts, ...] = ()
    user: str = "root"
    key_file: str | None = None
    rank_key_file: str | None = None
    account: str | None = None
    account_config_file: str | None = None
    interface: str = "eth0"
    slots: int = 1
    gpu: str | None = None
    flavor: str | None = None
    port_speed_mbps: int | None = None
    data_disk_gb: int | None = None
    mount_point: str = "/data"
    shared_mount: str | None = None
    drive: Drive | None = None
    admin_cidrs: tuple[str, ...] = ()
    private_subnet: str | None = None
    queue: Queue | None = None
    container: Container | None = None
    job: Annotated[SerializeAsAny[Section], BeforeValidator(_job)] | None = None
    data: Data | None = None
    texts: tuple[SourceFile, ...] = ()
    tree: FolderTree | None = None
    run: str | None = None
    prediction: Prediction | None = None
    per_hour: float | None = None
    guard: MachineLimits | None = None
    lease_minutes: int | None = None
    label: str | None = None

    @property
    def owner(self) -> Owner:
        """Owner mark of everything that the stack rents."""
        return Owner(self.label or self.stack, self.mark)

    def to_json(self) -> str:
        """Return one line with sorted keys, without the fields that are None."""
        document = _facts().dump_python(self, mode="json", by_alias=True, exclude_none=True)
        return json.dumps(document, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "ClusterFacts":
        """Parse what another version may have written, also before the home was moved; unknown, missing and ill-typed keys are named in one ClusterFactsError."""
        try:
            return _facts().validate_json(_with_paths_of(Home.of(), text))
        except ValidationError as error:
            problems = "; ".join(f"{'/'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ClusterFactsError(f"reading the cluster facts on standard input: {problems}.") from error


def _with_paths_of(home: Home, text: str) -> str:
    """Return the facts with the files of a home that was moved where they are now; the path of the stack's key tells where it was."""
    found = KEY_IN_HOME.search(text)
    if found is None or Path(json.loads(found[1])).exists():
        return text
    now = json.dumps(str(home.root))[:-1]
    return re.sub(rf'(?<!\\)"{re.escape(found[2])}/', lambda _: f"{now}/", text)


@cache
def _facts() -> TypeAdapter[ClusterFacts]:
    return TypeAdapter(ClusterFacts)
