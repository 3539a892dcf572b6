"""The stack file as one typed, frozen object; reports all problems at once, before anything is ordered. And whose the stack is."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from microcluster.accounts.registry import ACCOUNTS, DEFAULT, FORMER_NAMES, AccountSettings, account_of, name_in
from microcluster.accounts.shared.cluster_section import ClusterSection
from microcluster.config.folder_reader import FolderError, read_tree
from microcluster.config.forecast import Forecast, with_forecast
from microcluster.config.local_files import find_files, find_whole, unpinned
from microcluster.config.repository import cloned
from microcluster.config.rules_and_defaults import (
    TIME_SCALE,
    complete,
    problems_of_account,
    problems_of_budget,
    problems_of_sections,
)
from microcluster.config.safe_yaml import TextProblem, read
from microcluster.config.sections import AccountName, ContainerSection, GuardSection, StackFile, stack_file
from microcluster.config.validation_messages import sentence, unknown_key
from microcluster.core.home import PUBLIC_KEY, Home, KeysError, Owner, mark_of
from microcluster.core.plain_text import count, printable
from microcluster.jobs.finished_data import Data, data_of
from microcluster.jobs.folder_tree import FolderTree
from microcluster.jobs.image import TRAINER_FILE, is_local, local_name
from microcluster.jobs.job_section import Section

NAMESPACE = "microcluster"
STACK_NAME = r"(?=.{1,40}$)[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
"""Pattern of a stack's name. It is part of every machine's domain, where the vendor allows no underscore and no double dash."""
SECTIONS = tuple(f"{NAMESPACE}:{section}" for section in StackFile.model_fields)
TOP_LEVEL = ("config", "encryptionsalt", "encryptedkey", "secretsprovider", "environment")
HASHES = "data-hashes.json"
LONGEST_NOTE = 300
STACKS = Path(__file__).parents[2] / "stacks"
Checked = TypeVar("Checked", bound=BaseModel)


class ConfigError(Exception):
    """All problems of one stack file, with paths and suggestions."""


@dataclass(frozen=True)
class StackKeys:
    """Ssh keys of a stack, and the owner that all it rents bears."""

    owner: Owner
    public_key: str
    key_file: str
    rank_key_file: str


@dataclass(frozen=True)
class Stack:
    """One stack file, checked and complete."""

    name: str
    cluster: ClusterSection
    container: ContainerSection | None
    """Settings of the container; None where the account's machines run none."""
    job: Section
    account: AccountSettings
    origins: tuple[tuple[str, str, str], ...]
    """(path, value, origin) of every value."""
    forecast: Forecast | None = None
    """Expected hours and dollars, where the model was ever timed on this hardware."""
    data: Data | None = None
    """The user's finished data; of a path, with its files after `with_files`."""
    tree: FolderTree | None = None
    """The folder of the user's own program, after `with_files`."""
    trainer: str | None = None
    """Trainer in the local training image; None in every other one."""
    notes: tuple[str, ...] = ()
    """Sentences of the preview on the program's files, after `with_files`."""
    guard: GuardSection | None = None
    """Limits of the rental; None where the stack file does not say."""

    @property
    def local_image(self) -> str | None:
        """The folder of images/ from which the container's image is built on this computer, or None."""
        return local_name(self.container.image) if self.container else None


def load() -> Stack:
    """Return the stack that Pulumi runs, or raise ConfigError."""
    import pulumi  # noqa: PLC0415 - takes longer than all else of a verb, and only the program that Pulumi runs needs it
    from pulumi.runtime.config import CONFIG  # noqa: PLC0415

    values = {key: _plain(value) for key, value in CONFIG.get().items()}
    return with_files(parse(pulumi.get_stack(), values, ordering=not pulumi.runtime.is_dry_run()))


def with_files(stack: Stack) -> Stack:
    """Return the stack with the program and data files that it names on this computer, or raise ConfigError."""
    stack = _with_program(stack)
    if not stack.data or not stack.data.path:
        return stack
    wanted, hashes = stack.job.data_of("/data", None), Home.of().root / "cache" / HASHES
    try:
        if wanted.content:
            data = find_whole(stack.data, stack.cluster.disk_of_data_gb, hashes)
        else:
            data = find_files(stack.data, wanted.files, wanted.optional, hashes)
    except (FolderError, ValueError) as refused:
        raise _refusal(stack.name, [f"job/data: {problem}" for problem in refused.args]) from refused
    except OSError as error:
        raise _refusal(stack.name, [f"job/data: {error.filename or stack.data.path}: {error.strerror}"]) from error
    travels = (("job.data", *data.tree.summary),) if data.tree else ()
    return replace(stack, data=data, origins=(*stack.origins, *travels))


def keys_of(stack: str) -> StackKeys:
    """Return the keys of a stack, which ``make setup`` makes, and its owner."""
    folder = Home.of().folder_of(stack)
    try:
        public_key = " ".join((folder / PUBLIC_KEY).read_text().split()[:2])
        mark = mark_of(folder)
    except FileNotFoundError as error:
        raise ConfigError(
            f"stack {stack} has no ssh key in {folder}, so its orders cannot be marked. Run: make setup"
        ) from error
    except KeysError as damaged:
        raise ConfigError(str(damaged)) from damaged
    return StackKeys(Owner(folder.name, mark), public_key, str(folder / "id_ed25519"), str(folder / "rank_ed25519"))


def read_file(stack: str, *, ordering: bool = False) -> Stack:
    """Return the checked stack of a stack file, for verbs that run outside Pulumi."""
    parsed = parse(stack, read_values(path_of(stack)), ordering=ordering)
    # A running stack can be watched and ended without its files.
    return with_files(parsed) if ordering else parsed


def read_account(stack: str) -> AccountSettings:
    """Return the account of a stack file, even if the rest is wrong: its orders must be found and cancelled."""
    values, _ = _with_names_of_today(read_values(path_of(stack)))
    cluster = values.get(f"{NAMESPACE}:cluster")
    name = _checked(stack, AccountName, "cluster", cluster if isinstance(cluster, Mapping) else {}).account
    written = _sections(values, name)
    problems = problems_of_account(name, written)
    if problems:
        raise _refusal(stack, problems)
    return _account(name, written)


def read_guard(stack: str) -> GuardSection | None:
    """Return the guard of a stack file, even if the rest is wrong: what is rented must come to its end."""
    values = read_values(path_of(stack))
    written = values.get(f"{NAMESPACE}:guard")
    return None if written is None else _checked(stack, GuardSection, "guard", written)


def _checked(stack: str, model: type[Checked], name: str, written: Any) -> Checked:
    """Return one section of a stack file, or raise ConfigError."""
    try:
        return model.model_validate(written)
    except ValidationError as error:
        rows = [sentence({**one, "loc": (name, *one["loc"])}, StackFile) for one in error.errors()]
        raise _refusal(stack, rows) from error


def stacks() -> tuple[str, ...]:
    """Return the names of the stack files, sorted."""
    return tuple(sorted(file.name.split(".")[1] for file in STACKS.glob("Pulumi.*.yaml")))


def path_of(stack: str) -> Path:
    """Return a stack's file, or raise ConfigError."""
    path = STACKS / f"Pulumi.{stack}.yaml"
    if not re.fullmatch(STACK_NAME, stack):
        raise ConfigError(
            f"There is no stack '{printable(stack)}', and there can be none: its name is part of the machines' domain. "
            "Use letters, digits and single dashes between them, at most 40."
        )
    if not path.is_file():
        near = difflib.get_close_matches(stack, stacks(), 1)
        raise ConfigError(
            f"There is no stack '{printable(stack)}': stacks/Pulumi.{printable(stack)}.yaml does not exist. "
            f"Stacks: {', '.join(stacks())}." + (f" Did you mean '{near[0]}'?" if near else "")
        )
    return path


def read_values(path: Path) -> dict[str, Any]:
    """Return the ``config`` of a stack file, with full keys such as ``microcluster:cluster``."""
    try:
        content = read(path.read_bytes())
        return _config_of(content)
    except TextProblem as problem:
        raise ConfigError(
            f"stacks/{path.name} is not YAML as a stack file is, nothing was ordered: {problem}"
        ) from problem


def environment_of(stack: str) -> str | None:
    """Return Pulumi environments that a readable stack file names; None where it names none."""
    found = (read(path_of(stack).read_bytes()) or {}).get("environment")
    return None if found is None else json.dumps(found)


def _config_of(content: Any) -> dict[str, Any]:
    content = {} if content is None else content
    if not isinstance(content, Mapping) or not isinstance(content.get("config") or {}, Mapping):
        raise TextProblem("config: should be a mapping of sections; see stacks/Pulumi.v100.yaml")
    for key in content:
        if key not in TOP_LEVEL:
            raise TextProblem(unknown_key(str(key), str(key), TOP_LEVEL))
    if any(f"{name}:" in str(content.get("environment")) for name in (NAMESPACE, *ACCOUNTS)):
        raise TextProblem(
            f"environment: keys of {NAMESPACE} and of the account stand under config, where every command reads them"
        )
    return dict(content.get("config") or {})


def parse(stack: str, values: Mapping[str, Any], *, ordering: bool = False) -> Stack:
    """Return the checked stack.

    Args:
        values: the stack file's ``config``, full keys such as ``microcluster:cluster``.
        ordering: whether an order follows; a preview accepts the documentation's address.

    Raises:
        ConfigError: with every problem, its path and a suggestion.
    """
    values, problems = _with_names_of_today(values)
    written = _sections(values, NAMESPACE)
    name = name_in(written.get("cluster")) or DEFAULT
    account = _sections(values, name)
    local_programs = _local_programs()
    completed, reasons = complete(written, local_programs)
    problems += _strange_keys(values, name) + problems_of_account(name, account)
    problems += problems_of_sections(written, completed, ordering=ordering)
    file = stack_file(completed.get("cluster"), completed.get("job"))
    parsed = None
    try:
        parsed = file.model_validate(completed)
    except ValidationError as error:
        problems += [sentence(one, file) for one in error.errors()]
    if parsed:
        problems += problems_of_budget(parsed)
    if problems:
        raise _refusal(stack, problems)
    parsed, forecast, reasons = with_forecast(parsed, written, reasons)
    job, container = parsed.job, parsed.container
    named = getattr(job, "data", None)
    trainer = None
    if job.local_source and container and is_local(container.image):
        trainer = job.local_source.stand_in
        if job.trainer is None:
            trainer = job.local_source.among(local_programs) or trainer
    return Stack(
        name=stack,
        cluster=parsed.cluster,
        container=container,
        job=job,
        account=_account(name, account),
        origins=(*_origins(parsed, written, reasons), *(forecast.rows() if forecast else ())),
        forecast=forecast,
        data=data_of(named) if named else None,
        trainer=trainer,
        guard=parsed.guard,
    )


def _with_program(stack: Stack) -> Stack:
    """Return the stack with the folder of the user's own program, or raise ConfigError."""
    named = stack.job.sent_source
    if not named:
        return stack
    folder = STACKS.parent / named if named[0] not in "~$" else Home.of().expand(named)
    try:
        if stack.job.commit:
            folder = cloned(named, stack.job.commit, stack.job.source_key_file)
        tree = read_tree(folder, getattr(stack.job, "script", None))
    except FolderError as refused:
        raise _refusal(stack.name, [f"job/source: {problem}" for problem in refused.args]) from refused
    except OSError as error:
        raise _refusal(stack.name, [f"job/source: {error.filename or folder}: {error.strerror}"]) from error
    try:
        files = {name: unpinned(folder / name) for name in getattr(stack.job, "requirement_files", ())}
    except ValueError as problem:
        raise _refusal(stack.name, [f"job/requirements: {problem}"]) from problem
    if stack.job.commit is None and not Path(named).is_absolute() and named[0] not in "~$":
        tree = replace(tree, path=named)  # Of another clone it is the same.
    notes = (
        f"{name} leaves versions open: {printable(', '.join(lines), LONGEST_NOTE)}"
        for name, lines in files.items()
        if lines
    )
    return replace(stack, tree=tree, origins=(*stack.origins, ("travels", *tree.summary)), notes=tuple(notes))


def _local_programs() -> tuple[str, ...]:
    """Return the trainers that the last `make images` put into the local image beside the stand-ins.

    A preview works offline, so it reads this record and does not ask Docker or a registry.
    """
    try:
        return tuple((Home.of().root / TRAINER_FILE).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return ()


def _account(name: str, written: Mapping[str, Any]) -> AccountSettings:
    file = written.get(account_of(name).key.name)
    return AccountSettings(name, str(Home.of().expand(file)) if file else None, float(written.get(TIME_SCALE, 1)))


def _refusal(stack: str, problems: list[str]) -> ConfigError:
    lines = "\n".join(f"  {line}" for line in sorted(set(problems)))
    return ConfigError(
        f"stack {stack}: {count(len(problems), 'problem')} in stacks/Pulumi.{stack}.yaml, nothing was ordered\n{lines}"
    )


def _sections(values: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    prefix = f"{namespace}:"
    return {key.removeprefix(prefix): value for key, value in values.items() if str(key).startswith(prefix)}


def _with_names_of_today(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values under the accounts' present names, and a problem for each name of before."""
    today, problems = {}, []
    for key, value in values.items():
        before, _, rest = str(key).partition(":")
        now = f"{FORMER_NAMES[before]}:{rest}" if before in FORMER_NAMES else key
        today[now] = value
        if now != key:
            problems.append(f"{printable(key)}: is called {printable(now)} now")
    cluster = values.get(f"{NAMESPACE}:cluster")
    named = cluster.get("account") if isinstance(cluster, Mapping) else None
    if isinstance(named, str) and named in FORMER_NAMES:
        today[f"{NAMESPACE}:cluster"] = {**cluster, "account": FORMER_NAMES[named]}
        problems.append(f"cluster/account: '{named}' is called '{FORMER_NAMES[named]}' now")
    return today, problems


def _strange_keys(values: Mapping[str, Any], account: str) -> list[str]:
    """Name unknown sections; one may be a misspelled one of ours."""
    strange = [str(key) for key in values if not str(key).startswith((f"{NAMESPACE}:", f"{account}:"))]
    known = (*SECTIONS, f"{account}:{account_of(account).key.name}")
    return [unknown_key(key, f"{NAMESPACE}:{key.rpartition(':')[2]}", known) for key in strange]


def _plain(value: str) -> Any:
    """Parse a value of Pulumi's config: sections are JSON texts, other values are plain."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def _origins(
    parsed: StackFile, written: Mapping[str, Any], reasons: Mapping[str, str]
) -> Iterable[tuple[str, str, str]]:
    for section, values in parsed.model_dump(by_alias=True).items():
        for key, value in (values or {}).items():
            if key in (written.get(section) or {}):
                origin = "stack file"
            else:
                origin = reasons.get(f"{section}.{key}", "not set" if value is None else "default")
            yield f"{section}.{key}", str(value), origin
