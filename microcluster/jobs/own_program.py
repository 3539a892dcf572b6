"""The user's own program: what its kinds have in common, whatever starts its ranks."""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from agent import spec
from agent.spec import LONGEST_METRIC
from core.plain_text import printable, shown
from microcluster.jobs.image import is_ours, named_image, pythons
from microcluster.jobs.job_section import MOST_STEPS, Hardware, Origin, Section, Sections, matching
from microcluster.jobs.ranks import Program
from microcluster.jobs.rendering import render
from microcluster.jobs.run_plan import NO_CHECKPOINTS, Argv, Plan, World

PROGRAM = "the user's own program"
CONFIG_FILE = "program.json"
NOT_OF_THE_RUN = {"max_steps", "stall_s", "stop_grace_s", "preflight", "keep", "not_secret", "pointers"}
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
FORMATS = {None: NO_CHECKPOINTS, "mxnet": "mxnet"}
"""The agent's modules for what ``progress`` and ``checkpoints`` name; a pattern has one of its own."""
LONGEST, LONGEST_WORDS = 1000, 8000
SOURCE = re.compile(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9_.~-]+)+|(~|\.{1,2}|\$MICROCLUSTER_HOME)?/?[A-Za-z0-9_./ -]*")
INDEX = re.compile(r"https://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9_.~+-]+)*/?")
SCRIPT = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./-]*\.py")
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,_-]+\])?==[A-Za-z0-9.+!-]+")
POINTER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
SCRIPT_WORD = re.compile(r".+\.py")
COMMAND = re.compile(r"(/[A-Za-z0-9_.+-]+)+|[A-Za-z][A-Za-z0-9_.+-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SECRET = re.compile(
    r"(.*PASSWORD|(.*_)?((API|ACCESS)?KEY|TOKEN|SECRET|PASSWD|PASSPHRASE|CREDENTIALS?|COOKIES?|PAT|PASS|PWD|DSN))(_.*)?",
    re.IGNORECASE,
)
"""As a whole word of the name: TOKENIZERS_PARALLELISM and MONKEY hold no secret."""
SETTING = re.compile(r"(?i)(?!.*(PASSWORD|PASSWD|PASSPHRASE)=)\w+=(-?\d{1,9}|true|false)")
"""No secret whatever its name, as MAX_TOKEN=4096; but a password may be a number."""
SECRET_VALUE = re.compile(
    r"(?i)[a-z][a-z0-9+.-]{0,30}://[^/@\s:]*:[^/@\s]+@|PRIVATE KEY-----|^(gh[opsu]_|github_pat_|glpat-|hf_|nvapi-|sk-|AKIA)[a-z0-9]{16}"
)
"""An address with a login in it, a private key, and keys that show whose they are."""
SECRET_HINT = (
    "looks like a secret, and a stack file holds none: put it into a file on the machines (`fab ssh` opens a shell there) that the "
    "program reads; WANDB_API_KEY is taken from your own environment. If it is none, list its name in job.notSecret"
)
LONG_NAME = re.compile(rf"\(\?P<\w{{{LONGEST_METRIC + 1}}}")
TAKEN = re.compile(
    r"PATH|PORT|MICROCLUSTER_.*|RANK|WORLD_SIZE|LOCAL_(RANK|WORLD_SIZE)|(GROUP|ROLE)_(RANK|WORLD_SIZE|NAME)|MASTER_(ADDR|PORT)|"
    r"NODE_RANK|(NCCL|GLOO|TP)_SOCKET_IFNAME|OMPI_COMM_WORLD_.*|"
    r"DMLC_(ROLE|PS_ROOT_URI|PS_ROOT_PORT|NUM_SERVER|NUM_WORKER|NODE_HOST)|WANDB_(MODE|DIR|RUN_ID|RESUME)"
)
"""Variables that find the programs and place the ranks; another value would break the run or be ignored."""
REPEATED_TWICE = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[[^\]]+\]|[^\\()\[])[+*]\)[+*]")
"""A repetition inside a repetition: each further character of a line doubles the time of a search."""
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


def _index(value: str) -> str:
    """Accept a package index; what is refused is not repeated, because it may hold a password."""
    if not INDEX.fullmatch(value):
        raise ValueError(
            "is no https address without login, password and query; for example https://download.pytorch.org/whl/cu118"
        )
    return value


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
    if TAKEN.fullmatch(name):
        return f"{name} is set by what starts the ranks; leave it out"
    if isinstance(value, bool) or not isinstance(value, str | int):
        return f"{name} has to be a text; put its value in quotes"
    if not str(value).isprintable() or len(str(value)) > LONGEST:
        return f"the value of {name} holds signs that cannot be printed, or is longer than {LONGEST} characters"
    return None


def _is_secret(name: Any, value: Any) -> bool:
    is_named_so = SECRET.fullmatch(str(name)) and not SETTING.fullmatch(f"{name}={value}")
    return bool(is_named_so or SECRET_VALUE.search(str(value)[:LONGEST]))


Words = Annotated[StrictStr, Field(max_length=LONGEST_WORDS), AfterValidator(_words)]
Requirement = Annotated[StrictStr, matching(REQUIREMENT, "a pinned requirement; for example numpy==1.23.5")]


class OwnProgram(Section):
    """One run of the user's own program; a kind adds how its ranks start."""

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
    extra_index: Annotated[
        Annotated[StrictStr, AfterValidator(_index)] | None,
        Field(description="https address of one more package index, beside the usual one, for `requirements`"),
    ] = None
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
    pointers: Annotated[
        tuple[Annotated[StrictStr, matching(POINTER, "the name of a file, without a folder")], ...] | None,
        Field(
            description="names of further files that say which checkpoint the program goes on from; the usual ones are known"
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
    not_secret: Annotated[
        tuple[StrictStr, ...] | None,
        Field(description="names of `environment` that look like a secret, and hold none"),
    ] = None

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
        # Here and not as types: a run of before these rules has to be read.
        variables = job.get("environment")
        named = variables.items() if isinstance(variables, dict) else ()
        open_ones = job.get("notSecret") if isinstance(job.get("notSecret"), list) else ()
        found += [
            f"job/environment: {printable(str(name))} {SECRET_HINT}"
            for name, value in named
            if _is_secret(name, value) and name not in open_ones
        ]
        if LONG_NAME.search(str(job.get("progress"))):
            found.append(f"job/progress: has a group whose name is longer than {LONGEST_METRIC} characters")
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

    def decided(
        self, world: World, title: str, line: str, places: Mapping[str, str] | None = None
    ) -> tuple[Plan, Program]:
        """Return the plan without what starts the ranks, and the program that they run.

        Args:
            title: what is trained, in a few words.
            line: the program's words; a first word ``python`` is the interpreter that job.python names.
            places: what is filled in beside ``{logdir}`` and ``{maxSteps}``, by name.
        """
        # On a machine it is the one of the run's own environment.
        python = (world.image and self.python) or "python"
        places = {"logdir": world.logdir, "maxSteps": str(self.max_steps or ""), **(places or {})}
        command = _filled(line, places)
        if command[0] == "python":
            command = (python, *command[1:])
        tracks = any(map(WANDB.match, self.requirements))
        words = (*_tracked(world), *command) if tracks else command
        program = Program(
            words,
            resumed=words + _filled(self.resume or "", {**places, "checkpoint": spec.CHECKPOINT, "step": spec.STEP}),
            python=python,
            config_file=CONFIG_FILE,
            variables={name: value.replace("{logdir}", world.logdir) for name, value in self.environment.items()},
        )
        plan = Plan(
            title=title,
            trainer=PROGRAM,
            program_folder=self.folder(world),
            config_file=CONFIG_FILE,
            files={CONFIG_FILE: self._config(world), **{f"program/{file.name}": file.text for file in world.texts}},
            reader=READERS.get(self.progress, "pattern"),
            reader_options={} if self.progress in READERS else {"pattern": self.progress},
            checkpoints=FORMATS.get(self.checkpoints, "file_formats"),
            checkpoint_options=(
                ({"pattern": self.checkpoints} if self.checkpoints else {})
                | ({"pointers": list(self.pointers)} if self.pointers else {})
            ),
            checkpoint_files="the files that job.checkpoints names",
            imports=self._imports(world, program, command),
            exit_code_decides=True,
            artifacts=(WANDB_FOLDER,),
            secrets=(WANDB_KEY,) if tracks else (),
            not_shown=self._not_shown(),
            make_environment=None if world.image else ("sh", "-c", self._environment_script(world)),
        )
        return plan, program

    def dockerfile(self, world: World) -> str:
        """Bring the requirements, and the repository where the program lies in one."""
        return render("own_program/Dockerfile", job=self, base=world.image, bare=not is_ours(world.image))

    def _config(self, world: World) -> str:
        """Return what is written down of the job: each file by its hash, because the text lies beside it."""
        left_out = NOT_OF_THE_RUN if self.commit else {*NOT_OF_THE_RUN, "source"}
        if not self.extra_index:  # A run of before there was such a key keeps its id.
            left_out = {*left_out, "extra_index"}
        shown = self.model_dump(mode="json", by_alias=True, exclude=left_out)
        shown["files"] = {file.name: hashlib.sha256(file.text.encode()).hexdigest() for file in world.texts}
        return json.dumps(shown, indent=1, sort_keys=True) + "\n"

    def _environment_script(self, world: World) -> str:
        """Bring the same to a machine without containers."""
        folder = f"{world.path}/{ENVIRONMENT}"
        return render("own_program/environment.sh.j2", job=self, folder=folder, program=self.folder(world))

    def _imports(self, world: World, program: Program, command: Argv) -> Argv:
        """Return what looks for the script's imports by the program's interpreter; nothing for a program that is no script."""
        script = next(filter(SCRIPT_WORD.fullmatch, command), None)
        if script is None:
            return ()
        settings = [f"{name}={value}" for name, value in program.variables.items()]
        tried = PurePosixPath(self.folder(world)) / script
        return ("env", *settings, program.python, f"{world.path}/agent/launch/script_imports.py", str(tried))

    def _not_shown(self) -> Argv:
        """Say what nobody can know of the run beforehand, or by its lines."""
        found = []
        if self.max_steps is None:
            found.append("no progress bar (no job.maxSteps)")
        if self.progress not in READERS and "loss" not in re.compile(self.progress).groupindex:
            found.append("no loss (no group loss in job.progress)")
        return tuple(found)


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

    def program(self, world: World, places: Mapping[str, str] | None = None) -> tuple[Plan, Program]:
        """Return the plan without what starts the ranks, and the script that they run; ``places`` are as in `decided`."""
        script = shlex.quote(f"{self.folder(world)}/{self.script}")
        title = f"{self.script} {self.arguments}".rstrip()
        return self.decided(world, title, f"python {script} {self.arguments}", places)


def _filled(text: str, places: Mapping[str, str]) -> Argv:
    """Return the words of a text in which each ``{place}`` is filled in; ``{{place}}`` is the way to write one that is left alone."""
    names = "|".join(places)
    place = re.compile(rf"\{{(\{{(?:{names})\}})\}}|\{{({names})\}}")
    return tuple(place.sub(lambda found: found[1] or places[found[2]], word) for word in shlex.split(text))


def _tracked(world: World) -> Argv:
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
