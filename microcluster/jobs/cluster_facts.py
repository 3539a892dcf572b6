"""The facts that a remote step needs, as frozen values and as one JSON document on its standard input."""

import dataclasses
import difflib
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from microcluster.jobs.kind import DEFAULT, KINDS, kind_of
from microcluster.jobs.values import ImageAdditions, Queue, Runtime


class ClusterFactsError(Exception):
    """The JSON is not a payload; the message is a full sentence that names the key."""


@dataclass(frozen=True)
class Host:
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
        registry_key_file: a path on the operator's computer.
        trainer: what trains in the local training image, where None is the stand-in.
        kind: of the job, which decides what the image holds.
        additions: what the stack file adds to the base.
    """

    name: str
    image: str
    runtime: str = "nvidia"
    ssh_port: int = 4444
    registry_key_file: str | None = None
    trainer: str | None = None
    kind: str = DEFAULT
    additions: ImageAdditions | None = None


@dataclass(frozen=True)
class SourceFile:
    """One text of the user's own program: its path below the source, and its content."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """The hash of the content."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class SentFile:
    """One file of the operator's computer that the launcher gets: its name there, its length in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Data:
    """Finished data that are brought: a tar behind an https ``address``, or ``files`` in or at ``path`` of the operator's computer.

    ``id`` names them; ``sha256`` is the address's, where it is known beforehand; ``is_tar`` says that the one file is a tar.
    """

    id: str
    address: str | None = None
    sha256: str | None = None
    path: str | None = None
    is_tar: bool = True
    files: tuple[SentFile, ...] = ()


@dataclass(frozen=True)
class Drive:
    """A network drive that every host mounts; its password is read from the account when it is mounted."""

    id: str
    address: str
    share: str
    username: str


class Job(Protocol):
    """What every kind's job has; its kind adds more. A run without a sign of life for ``stall_s`` seconds ends."""

    kind: str
    max_steps: int | None
    stall_s: int
    keep: tuple[str, ...]
    preflight: str
    data: Data | None


@dataclass(frozen=True)
class Prediction:
    """What planning expects of a step: seconds, of which the GPUs compute; bytes that each network card sends and receives."""

    seconds: float
    compute_s: float
    wire_bytes: int


@dataclass(frozen=True)
class ClusterFacts:
    """Everything about one stack's cluster and job; a step gets only the fields that it needs.

    Attributes:
        account: the name in the registry of accounts of where it was ordered; None for facts of before there was a second one.
        account_config_file: the file with the account's key.
        container: None on machines without the container step, where the processes run on the machine itself.
        shared_mount: where every host mounts one and the same drive, which then holds the checkpoints.
        drive: what is mounted there.
        admin_cidrs, private_subnet: who may reach port 22, and everything, where the hosts have a firewall of their own only.
        queue: with it the hosts are those that a queue grants, which are reached through the site's login host only.
        per_hour: what all hosts cost, in the account's currency, as it was priced before the order.
    """

    stack: str
    mark: str
    hosts: tuple[Host, ...] = ()
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
    job: Job | None = None
    run: str | None = None
    prediction: Prediction | None = None
    per_hour: float | None = None

    @property
    def runtime(self) -> Runtime:
        """What the machines have decides in what the processes run."""
        return "container" if self.container else "host"

    def to_json(self) -> str:
        """Return one line with sorted keys, without the fields that are None."""
        return json.dumps(_without_none(dataclasses.asdict(self)), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "ClusterFacts":
        """Parse ``text``; unknown, missing and ill-typed keys are named in one ClusterFactsError."""
        try:
            raw = json.loads(text)
        except ValueError as error:
            raise ClusterFactsError(f"reading the cluster facts on standard input: it is no JSON ({error}).") from error
        problems: list[str] = []
        payload = _parse(cls, raw, "", problems)
        if problems:
            raise ClusterFactsError("reading the cluster facts on standard input: " + "; ".join(problems) + ".")
        return payload

    def require(self, *names: str) -> None:
        """Raise ClusterFactsError unless every one of the optional fields ``names`` is set."""
        absent = [name for name in names if not getattr(self, name)]
        if absent:
            raise ClusterFactsError(
                f"reading the cluster facts of stack {self.stack}: this step needs {', '.join(absent)}."
            )


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, (list, tuple)) else value


def _parse(kind: type, raw: Any, path: str, problems: list[str]) -> Any:
    if not isinstance(raw, Mapping):
        problems.append(f"{path or 'the payload'} has to be an object")
        return None
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in sorted(set(raw) - set(fields)):
        close = difflib.get_close_matches(key, fields, 1)
        problems.append(f"{path}{key}: unknown key" + (f", did you mean '{close[0]}'?" if close else ""))
    hints = typing.get_type_hints(kind)
    values = {}
    for name, field in fields.items():
        if name in raw:
            values[name] = _value(hints[name], raw[name], path + name, problems)
        elif field.default is dataclasses.MISSING:
            problems.append(f"{path}{name}: missing")
    return None if problems else kind(**values)


def _value(hint: Any, raw: Any, path: str, problems: list[str]) -> Any:
    if typing.get_origin(hint) is types.UnionType:
        if raw is None:
            return None
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if hint is Job:
        named = raw.get("kind") if isinstance(raw, Mapping) else None
        if named not in KINDS:
            problems.append(f"{path}/kind: {named!r} is no kind of job; one of {', '.join(KINDS)}")
            return None
        hint = kind_of(named).facts
    if typing.get_origin(hint) in (tuple, dict):
        return _items(hint, raw, path, problems)
    if dataclasses.is_dataclass(hint):
        return _parse(hint, raw, path + "/", problems)
    if type(raw) is not hint:
        problems.append(f"{path} has to be of type {hint.__name__}, not {type(raw).__name__}")
    return raw


def _items(hint: Any, raw: Any, path: str, problems: list[str]) -> Any:
    kind = typing.get_origin(hint)
    if not isinstance(raw, list if kind is tuple else dict):
        problems.append(f"{path} has to be {'a list' if kind is tuple else 'an object'}")
        return kind()
    if kind is tuple:
        return tuple(_value(typing.get_args(hint)[0], item, f"{path}/{i}", problems) for i, item in enumerate(raw))
    return {key: _value(typing.get_args(hint)[1], item, f"{path}/{key}", problems) for key, item in raw.items()}
