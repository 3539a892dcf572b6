"""The user's own program: what its kinds have in common, whatever starts its ranks."""

import hashlib
import json
import re
import shlex
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from core.plain_text import printable, shown
from microcluster.jobs.contract import MOST_STEPS, Hardware, Origin, Section, Sections, matching
from microcluster.jobs.image import is_ours, named_image, pythons
from microcluster.jobs.plan import DEFAULT_MODEL_BYTES, NO_CHECKPOINTS, Plan, Process, World
from microcluster.jobs.rendering import render

PROGRAM = "the user's own program"
CONFIG_FILE = "program.json"
NOT_OF_THE_RUN = ("maxSteps", "stallS", "stopGraceS", "preflight", "keep")
"""Keys that may change while a run stays the same one."""
LEFT_OUT = {
    "max_steps": "no progress bar and no time left; the program's own end is the run's",
    "checkpoints": "the program writes no checkpoints, and a run that dies starts again from the beginning",
    "python": "python in the image, or python3 on the machines",
}
PROGRAM_FOLDER = "/opt/program"
"""Of a program that the image brings; one that the stack sends lies in the run's folder."""
ENVIRONMENT = "environment"
"""The folder, in the run's, of an environment that the run has made for itself."""
READERS = {"json": "json_lines", "mxnet": "mxnet"}
"""The agent's module for what ``progress`` names; a pattern has one of its own."""
LONGEST = 1000
SOURCE = re.compile(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9_.~-]+)+|(~|\.{1,2}|\$MICROCLUSTER_HOME)?/?[A-Za-z0-9_./ -]*")
SCRIPT = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.py")
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,_-]+\])?==[A-Za-z0-9.+!-]+")
SCRIPT_WORD = re.compile(r".+\.py")
COMMAND = re.compile(r"(/[A-Za-z0-9_.+-]+)+|[A-Za-z][A-Za-z0-9_.+-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(r".*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_.*)?", re.IGNORECASE)
"""As a word of the name: TOKENIZERS_PARALLELISM holds no secret."""
TAKEN = re.compile(
    r"PATH|PORT|MICROCLUSTER_.*|RANK|WORLD_SIZE|LOCAL_(RANK|WORLD_SIZE)|(GROUP|ROLE)_(RANK|WORLD_SIZE|NAME)|MASTER_(ADDR|PORT)|"
    r"NODE_RANK|(NCCL|GLOO|TP)_SOCKET_IFNAME|OMPI_COMM_WORLD_.*|"
    r"DMLC_(ROLE|PS_ROOT_URI|PS_ROOT_PORT|NUM_SERVER|NUM_WORKER|NODE_HOST)|WANDB_(MODE|DIR|RUN_ID|RESUME)"
)
"""What finds the programs and places the ranks; another value would break the run or be ignored."""
REPEATED_TWICE = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[[^\]]+\]|[^\\()\[])[+*]\)[+*]")
"""What is repeated already, repeated as a whole: each further character of a line doubles the time of a search."""
WANDB_KEY, WANDB_FOLDER = "WANDB_API_KEY", "wandb"
"""The key of Weights & Biases, and what its package makes in the folder that it is given."""
WANDB = re.compile(r"wandb(\[.*\])?==")
WANDB_MODE = f"""if [ "${{GROUP_RANK:-${{NODE_RANK:-0}}}}" != 0 ]; then export WANDB_MODE=disabled
elif [ -r "$0" ]; then {WANDB_KEY}=$(cat "$0"); export {WANDB_KEY} WANDB_MODE=online; fi
exec "$@"
"""
"""Only the first node takes part: a program that starts it on each node would claim one run twice. The key stays in its file until then."""


def _words(value: str) -> str:
    """Take words as a shell splits them; no shell ever sees them."""
    try:
        shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{value[:80]!r} cannot be split into words: {error}") from error
    if not value.isprintable():
        raise ValueError(f"{value[:80]!r} holds signs that cannot be printed")
    return value


def pattern_or(*words: str) -> AfterValidator:
    """Accept one of some words, or a regular expression with the group ``step``."""

    def check(value: str) -> str:
        if value in words:
            return value
        try:
            names = set(re.compile(value).groupindex)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{value[:80]!r} is no regular expression: {error}") from error
        twice = REPEATED_TWICE.search(value)
        if twice:
            raise ValueError(
                f"{value[:80]!r} repeats what is repeated already, which can take for ever: {twice.group()}"
            )
        if "step" not in names:
            raise ValueError(f"{value[:80]!r} has no group of the name step: (?P<step>\\d+)")
        return value

    return AfterValidator(check)


def _variables(found: Any) -> Any:
    """Take whole numbers as texts; a yes or no, or a fraction, is one thing in YAML and another to a program."""
    if not isinstance(found, dict):
        raise ValueError("is no mapping of names and values; for example OMP_NUM_THREADS: 4")
    problems = [_problem_of_variable(name, value) for name, value in found.items()]
    if any(problems):
        raise ValueError("; ".join(filter(None, problems)))
    return {name: str(value) for name, value in found.items()}


def _problem_of_variable(name: Any, value: Any) -> str | None:
    if not isinstance(name, str) or not VARIABLE.fullmatch(name):
        return f"{shown(name)} is no name of an environment variable: letters, digits and _"
    if SECRET.fullmatch(name):
        return (
            f"{name} looks like a secret, and a stack file holds none: put it into a file on the machines (`fab ssh` opens a shell "
            "there) that the program reads; WANDB_API_KEY is taken from your own environment"
        )
    if TAKEN.fullmatch(name):
        return f"{name} is set by what starts the ranks; leave it out"
    if isinstance(value, bool) or not isinstance(value, str | int):
        return f"{name} has to be a text; put its value in quotes"
    if not str(value).isprintable() or len(str(value)) > LONGEST:
        return f"the value of {name} holds signs that cannot be printed, or is longer than {LONGEST} characters"
    return None


Words = Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(_words)]
Requirement = Annotated[StrictStr, matching(REQUIREMENT, "a pinned requirement; for example numpy==1.23.5")]


class OwnProgram(Section):
    """One run of the user's own program; a kind adds how its ranks start."""

    started_by: ClassVar[str]
    """What starts the ranks, as the agent's probe calls it."""

    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)] | None = None
    source: Annotated[
        StrictStr,
        matching(SOURCE, "a folder, or the https address of a repository"),
        Field(description="folder whose texts travel with the job, or https address of a repository"),
    ]
    commit: Annotated[
        Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{40}$")] | None,
        Field(description="40 hex digits; with a repository only"),
    ] = None
    requirements: Annotated[tuple[Requirement, ...], Field(description="`name==version` each")] = ()
    progress: Annotated[
        StrictStr,
        Field(
            max_length=LONGEST,
            description='`json`: lines such as `{"step": 10, "loss": 2.3}`; or a pattern with the groups `step`, `loss` and others',
        ),
        pattern_or("json"),
    ] = "json"
    checkpoints: Annotated[
        Annotated[StrictStr, Field(max_length=LONGEST), pattern_or()] | None,
        Field(
            description="pattern of files or folders in `{logdir}`, their path or bare name, with the group `step`; all of one step is one checkpoint"
        ),
    ] = None
    resume: Annotated[
        Words | None,
        Field(description="what is added to go on; `{checkpoint}` is the newest whole checkpoint, `{step}` its step"),
    ] = None
    python: Annotated[
        Annotated[StrictStr, matching(COMMAND, "a command or an absolute path; for example python3.9")] | None,
        Field(
            description="interpreter: a command or a path, in the image or on the machines; requirements are installed for it"
        ),
    ] = None
    environment: Annotated[
        dict[str, str],
        BeforeValidator(_variables),
        Field(default_factory=dict, description="variables of every rank; secrets stay in files"),
    ]

    @property
    @abstractmethod
    def title(self) -> str:
        """What is trained, in a few words."""

    @abstractmethod
    def words(self, world: World) -> tuple[str, ...]:
        """Return the argv of the program."""

    @abstractmethod
    def on_every_rank(self, world: World, command: Sequence[str], variables: Mapping[str, str]) -> Sequence[Process]:
        """Return what starts ``command`` as every rank, with ``variables`` in its environment beside the kind's own."""

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say which keys contradict each other."""
        job, found = sections["job"], []
        if ("commit" in job) != str(job.get("source")).startswith("https://"):
            found.append(
                "job/commit: belongs to a repository, and a repository needs one: source: https://..., commit: 40 digits"
            )
        if job.get("maxSteps") is None:
            filled = [key for key in ("arguments", "command", "resume") if "{maxSteps}" in str(job.get(key))]
            found += [f"job/{key}: {{maxSteps}} cannot be filled in, because job.maxSteps is not set" for key in filled]
        if job.get("resume") is not None and job.get("checkpoints", cls.model_fields["checkpoints"].default) is None:
            found.append(
                "job/resume: job.checkpoints is not set, so there is nothing to go on from; set it or leave resume out"
            )
        python, named = str(job.get("python", "")), named_image(sections)
        known = pythons(named)
        if python and known and python.removeprefix("/usr/bin/") not in known:
            found.append(f"job/python: image {named} has no {printable(python)}; it has {' and '.join(known)}")
        return found

    @classmethod
    def defaults(cls, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Say what it means that an optional key is left out."""
        return {
            f"job.{to_camel(name)}": Origin(None, f"not set: {meaning}")
            for name, meaning in LEFT_OUT.items()
            if cls.model_fields[name].default is None
        }

    @property
    def sent_source(self) -> str | None:
        """The folder whose texts travel with the job."""
        return None if self.commit else self.source

    def folder(self, world: World) -> str:
        """Return where the program starts."""
        return PROGRAM_FOLDER if world.image and self.commit else f"{world.path}/program"

    def interpreter(self, world: World) -> str:
        """Return the interpreter that runs the program; without a container it is that of the run's own environment."""
        return (self.python if world.image else None) or "python"

    def filled(self, world: World, text: str) -> tuple[str, ...]:
        """Return the words of a text; ``{checkpoint}`` and ``{step}`` are left for the agent, which knows the newest one."""
        words = shlex.split(text)
        for placeholder, value in {"{logdir}": world.logdir, "{maxSteps}": str(self.max_steps or "")}.items():
            words = [word.replace(placeholder, value) for word in words]
        return tuple(words)

    def plan(self, world: World) -> Plan:
        """Decide everything about the run."""
        config, command = self._config(world), self.words(world)
        tracks = any(WANDB.match(one) for one in self.requirements)
        wrapped = (*world.noted, *(self._tracked(world) if tracks else ()))
        resumed = (*command, *self.filled(world, self.resume or ""))
        preflight = world.preflight(self.interpreter(world), CONFIG_FILE, DEFAULT_MODEL_BYTES, self.started_by)
        variables = {name: value.replace("{logdir}", world.logdir) for name, value in self.environment.items()}
        return Plan(
            title=self.title,
            trainer=PROGRAM,
            program_folder=self.folder(world),
            config_file=CONFIG_FILE,
            files={CONFIG_FILE: config, **{f"program/{file.name}": file.text for file in world.texts}},
            identity={"config": config},
            processes=self.on_every_rank(world, (*wrapped, *command), variables),
            resume_processes=self.on_every_rank(world, (*wrapped, *resumed), variables),
            collective=self.on_every_rank(world, preflight, variables),
            reader=READERS.get(self.progress, "pattern"),
            reader_options={} if self.progress in READERS else {"pattern": self.progress},
            checkpoints="files" if self.checkpoints else NO_CHECKPOINTS,
            checkpoint_options={"pattern": self.checkpoints} if self.checkpoints else {},
            checkpoint_files="the files that job.checkpoints names",
            ranks=world.ranks,
            dockerfile=self._dockerfile(world.image) if world.image else None,
            make_environment=None if world.image else ("sh", "-c", self._environment(world)),
            imports=self._imports(world, command, variables),
            exit_code_decides=True,
            artifacts=(WANDB_FOLDER,),
            secrets=(WANDB_KEY,) if tracks else (),
            not_shown=self._not_shown(),
        )

    def _config(self, world: World) -> str:
        """Return what is written down of the job: each file by its hash, because the text lies beside it."""
        shown = self.model_dump(mode="json", by_alias=True, exclude=None if self.commit else {"source"})
        files = {file.name: hashlib.sha256(file.text.encode()).hexdigest() for file in world.texts}
        kept = {key: value for key, value in shown.items() if key not in NOT_OF_THE_RUN}
        return json.dumps({**kept, "files": files}, indent=1, sort_keys=True) + "\n"

    def _tracked(self, world: World) -> tuple[str, ...]:
        """Return the words before a command that tracks itself with Weights & Biases: offline, or online with a key that was given.

        The run there has our run's id and word, so that an attempt that goes on continues its curves, and a second training does not.
        """
        settings = (
            "WANDB_MODE=offline",
            f"WANDB_DIR={world.path}",
            f"WANDB_RUN_ID={world.run}-{world.word}",
            "WANDB_RESUME=allow",
        )
        return ("env", *settings, "sh", "-c", WANDB_MODE, f"{world.secrets}/{WANDB_KEY}")

    def _rendered(self, template: str, **inputs: object) -> str:
        """Return a template that brings the requirements, and the repository where the program lies in one."""
        repository = self.source if self.commit else None
        given = {"requirements": self.requirements, "repository": repository, "commit": self.commit}
        return render(f"own_program/{template}", **given, **inputs)

    def _dockerfile(self, base: str) -> str:
        """Return the image with all of that on its base."""
        return self._rendered("Dockerfile", base=base, bare=not is_ours(base), python=self.python)

    def _environment(self, world: World) -> str:
        """Return what makes a virtual environment with all of that, on top of the packages that the machine brings."""
        places = {"folder": f"{world.path}/{ENVIRONMENT}", "program": self.folder(world)}
        return self._rendered("environment.sh.j2", python=self.python or "python3", **places)

    def _imports(self, world: World, command: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
        """Return what imports the script's own imports by the program's interpreter; nothing for a program that is no script."""
        script = next((word for word in command if SCRIPT_WORD.fullmatch(word)), None)
        if script is None:
            return ()
        settings = [f"{name}={value}" for name, value in variables.items()]
        tried = PurePosixPath(self.folder(world)) / script
        return ("env", *settings, self.interpreter(world), f"{world.agent}/launch/script_imports.py", str(tried))

    def _not_shown(self) -> tuple[str, ...]:
        """Say what nobody can know of the run beforehand, or by its lines."""
        bar = () if self.max_steps else ("no progress bar (no job.maxSteps)",)
        no_loss = self.progress not in READERS and "loss" not in re.compile(self.progress).groupindex
        return (*bar, *(("no loss (no group loss in job.progress)",) if no_loss else ()))


class OwnScript(OwnProgram):
    """A Python script of the user's own, which every rank runs."""

    script: Annotated[
        StrictStr,
        matching(SCRIPT, "the path of a Python script below the source"),
        Field(description="path of a Python script below the source"),
    ]
    arguments: Annotated[
        Words, Field(description="`{maxSteps}` and `{logdir}` (where checkpoints belong) are filled in")
    ] = ""

    @property
    def title(self) -> str:
        """The script and its arguments."""
        return " ".join(filter(None, (self.script, self.arguments)))

    def words(self, world: World) -> tuple[str, ...]:
        """Return Python, the script and its arguments."""
        script = f"{self.folder(world)}/{self.script}"
        return (self.interpreter(world), script, *self.filled(world, self.arguments))
