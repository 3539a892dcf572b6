"""The user's own program: what its kinds have in common, whatever starts its ranks."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from agent.run.document import CHECKPOINT, LONGEST_METRIC, NO_CHECKPOINTS, STEP, RunDocument
from microcluster.core.plain_text import printable
from microcluster.jobs import weights_and_biases
from microcluster.jobs.finished_data import LARGEST_WHOLE_BYTES, DataPlan, FinishedData
from microcluster.jobs.image import is_ours, named_image, pythons
from microcluster.jobs.job_section import MOST_STEPS, Hardware, Origin, Section, Sections
from microcluster.jobs.program_words import (
    LONGEST,
    MOST_LINES,
    Index,
    Interpreter,
    Line,
    LocalPath,
    Pointer,
    Requirement,
    Script,
    Source,
    Variables,
    Words,
    holds_secret,
    is_secret,
    pattern_or,
)
from microcluster.jobs.ranks import Argv, RankCommand
from microcluster.jobs.rendering import render

PROGRAM = "the user's own program"
NOT_OF_THE_RUN = {
    *("max_steps", "stall_s", "stop_grace_s", "preflight", "keep", "not_secret", "source_key_file", "pointers"),
}
"""Keys that may change while a run stays the same one."""
LATER = {"extra_index", "submodules", "setup", "working_folder", "resume_on"}
"""Keys that are left out where they are not set: a run of before there were such keys keeps its id."""
ANY = "any"
IN_FOLDER = ("sh", "-c", 'cd "$0" && exec "$@"')
LEFT_OUT = {
    "max_steps": "no progress bar and no time left; the program's own end is the run's",
    "checkpoints": "the program writes no checkpoints, and a run that dies starts again from the beginning",
    "python": "python in the image, or python3 on the machines",
    "resume_on": "same: another number of nodes or GPUs is another run, which starts over",
}
PROGRAM_FOLDER = "/opt/program"
"""Of a program that the image brings; one that the stack sends lies in the run's folder."""
CONTENT = "files"
"""Folder of data that are taken whole, in the folder of the data."""
READERS = {"json": "json_lines", "mxnet": "mxnet"}
FORMATS = {None: NO_CHECKPOINTS, "mxnet": "mxnet"}
"""The agent's modules for what ``progress`` and ``checkpoints`` name; a pattern has one of its own."""
SCRIPT_WORD = re.compile(r".+\.py")
REPOSITORY = re.compile(r"https://|[^/]+@")
SECRET_HINT = (
    "looks like a secret, and a stack file holds none: put it into a file on the machines (`fab ssh` opens a shell there) that the "
    "program reads; WANDB_API_KEY is taken from your own environment. If it is none, list its name in job.notSecret"
)
FOLDER = re.compile(r"\{(logdir|data)\}")
DATA = re.compile(r"(?<!\{)\{data\}")
LONG_NAME = re.compile(rf"\(\?P<\w{{{LONGEST_METRIC + 1}}}")
SETUP_LIMIT_S = 3600
"""Time limit of each line of job.setup."""
IN_CONTAINER = "/var/lib/microcluster"
"""Folder in a container, below which each run notes which lines it has run there; a new container has none."""


class OwnProgram(Section):
    """One run of the user's own program; a kind adds how its ranks start."""

    config_file = "program.json"
    goes_on_elsewhere: ClassVar[bool] = True
    """Whether another number of nodes may go on with a run, where its program can."""

    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)] | None = None
    source: Annotated[
        Source,
        Field(description="folder that travels with the job, or https or ssh address of a repository"),
    ]
    commit: Annotated[
        Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{40}$")] | None,
        Field(description="40 hex digits; with a repository only"),
    ] = None
    source_key_file: Annotated[
        LocalPath | None,
        Field(description="file of mode 0600 with a token for a private repository; it is cloned on this computer"),
    ] = None
    submodules: Annotated[
        StrictBool,
        Field(description="whether the repository has submodules; it is cloned on this computer"),
    ] = False
    requirements: Annotated[
        tuple[Requirement, ...],
        BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
        Field(description="`name==version` each, or a file of the source: `requirements.txt`"),
    ] = ()
    setup: Annotated[
        Annotated[tuple[Line, ...], Field(max_length=MOST_LINES)] | None,
        Field(
            description="lines of shell, each run once on every node before the program: `pip install -e .`; `{logdir}` is filled in"
        ),
    ] = None
    extra_index: Annotated[
        Index | None,
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
        Annotated[StrictStr, Field(max_length=LONGEST), pattern_or(rewritten=True)] | None,
        Field(
            description="pattern of files or folders in `{logdir}` with the group `step`; without it: files that are written over, as `ckpt\\.pt`"
        ),
    ] = None
    pointers: Annotated[
        tuple[Pointer, ...] | None,
        Field(description="names of further files that say which checkpoint is the newest; the usual ones are known"),
    ] = None
    resume: Annotated[
        Words | None,
        Field(description="what is added to go on; `{checkpoint}` is the newest whole checkpoint, `{step}` its step"),
    ] = None
    resume_on: Annotated[
        Literal["same", "any"] | None,
        Field(description="`any`: the run goes on with another number of nodes or GPUs; with `resume` only"),
    ] = None
    python: Annotated[
        Interpreter | None,
        Field(description="interpreter: a command or a path, in the image or on the machines"),
    ] = None
    environment: Annotated[
        Variables,
        Field(default_factory=dict, description="variables of every rank; secrets stay in files"),
    ]
    data: Annotated[
        FinishedData | None,
        Field(
            description="what `{data}` stands for: a folder or tar of this computer, or the https address of a tar (`#sha256=HEX` pins it)"
        ),
    ] = None
    not_secret: Annotated[
        tuple[StrictStr, ...] | None,
        Field(description="names of `environment` that look like a secret, and hold none"),
    ] = None

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say which keys contradict each other."""
        job, found = sections["job"], []
        if ("commit" in job) != bool(REPOSITORY.match(str(job.get("source")))):
            found.append(
                "job/commit: belongs to a repository, and a repository needs one: source: https://..., commit: 40 digits"
            )
        if job.get("sourceKeyFile") and not str(job.get("source")).startswith("https://"):
            found.append("job/sourceKeyFile: belongs to a repository behind https; over ssh your own keys are used")
        if job.get("submodules") and "commit" not in job:
            found.append("job/submodules: belongs to a repository; in a folder they travel with it")
        if job.get("maxSteps") is None:
            filled = [key for key in ("arguments", "command", "resume") if "{maxSteps}" in str(job.get(key))]
            found += [f"job/{key}: {{maxSteps}} cannot be filled in, because job.maxSteps is not set" for key in filled]
        if job.get("resume") is not None and job.get("checkpoints", cls.model_fields["checkpoints"].default) is None:
            found.append(
                "job/resume: job.checkpoints is not set, so there is nothing to go on from; set it or leave resume out"
            )
        if job.get("resumeOn") == ANY and not (cls.goes_on_elsewhere and job.get("resume")):
            why = "its words are missing in job.resume" if cls.goes_on_elsewhere else f"kind {job['kind']} cannot"
            found.append(f"job/resumeOn: any: the program has to go on with another number of nodes, and {why}")
        named = [
            key for key in ("arguments", "command", "resume", "environment", "setup") if DATA.search(str(job.get(key)))
        ]
        if job.get("data") is None:
            found += [f"job/{key}: {{data}} cannot be filled in, because job.data is not set" for key in named]
        elif not named:
            found.append(
                "job/data: nothing names {data}, the folder of the data on every node; give it to the program, in its words or in "
                "job.environment"
            )
        # Here and not as types: a run of before these rules has to be read.
        variables = job.get("environment")
        named = variables.items() if isinstance(variables, dict) else ()
        open_ones = job.get("notSecret") if isinstance(job.get("notSecret"), list) else ()
        found += [
            f"job/environment: {printable(str(name))} {SECRET_HINT}"
            for name, value in named
            if is_secret(name, value) and name not in open_ones
        ]
        lines = job.get("setup") if isinstance(job.get("setup"), list | tuple) else ()
        found += [
            f"job/setup/{number}: holds what looks like a secret, and a stack file holds none: read it from a file on the machines, "
            "or list the name of what is none in job.notSecret"
            for number, line in enumerate(lines)
            if holds_secret(str(line)[:LONGEST], open_ones)
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
        """The folder that travels with the job."""
        return None if self.fetched_there else self.source

    @property
    def fetched_there(self) -> bool:
        """Whether the machines fetch the program: a public repository without submodules."""
        is_public = self.source.startswith("https://") and not self.source_key_file and not self.submodules
        return bool(self.commit and is_public)

    def folder(self, begun: RunDocument) -> str:
        """Return the folder in which the program starts."""
        return PROGRAM_FOLDER if begun.machines.container and self.fetched_there else f"{begun.folder}/program"

    @property
    def pinned(self) -> tuple[str, ...]:
        """The requirements that name a version, without the files."""
        return tuple(one for one in self.requirements if "==" in one)

    @property
    def requirement_files(self) -> tuple[str, ...]:
        """The files of the source that name requirements."""
        return tuple(one for one in self.requirements if "==" not in one)

    @property
    def any_world(self) -> bool:
        """Whether the program can go on with another number of nodes or GPUs."""
        return self.resume_on == ANY

    @property
    def setup_lines(self) -> tuple[str, ...]:
        """Lines that run on every node before the program, the files of requirements first."""
        index = ("--extra-index-url", self.extra_index) if self.extra_index else ()
        pip = "python -m pip install --no-cache-dir"
        files = (shlex.join((*pip.split(), *index, "-r", file)) for file in self.requirement_files)
        return (*files, *(self.setup or ()))

    def data_of(self, disk: str, brought: str | None) -> DataPlan | None:
        """Return the data that the user brings, whole."""
        if not self.data:
            return None
        folder = f"{disk}/data-{brought}"
        return DataPlan(str(brought), folder, (), {}, LARGEST_WHOLE_BYTES, content=f"{folder}/{CONTENT}")

    def rank_command(
        self, begun: RunDocument, title: str, line: str, places: Mapping[str, str] | None = None, start: Argv = ()
    ) -> RankCommand:
        """Return the command of every rank.

        Args:
            title: name of what is trained, in a few words.
            line: the program's words; a first word ``python`` is the interpreter that job.python names.
            places: values by name, filled in beside ``{logdir}`` and ``{maxSteps}``.
            start: words before those of the program.
        """
        folders = self._folders(begun)
        places = {**folders, "maxSteps": str(self.max_steps or ""), **(places or {})}
        # On a machine it is the one of the run's own environment.
        python = (begun.machines.container and self.python) or "python"
        command = _filled(line, places)
        if command[0] == "python":
            command = (python, *command[1:])
        tracks = weights_and_biases.is_installed_by((*self.requirements, *(self.setup or ())))
        words = (*start, *(weights_and_biases.tracked(begun) if tracks else ()), *command)
        return RankCommand(
            words,
            resumed=words + _filled(self.resume or "", {**places, "checkpoint": CHECKPOINT, "step": STEP}),
            python=python,
            config_file=self.config_file,
            title=title,
            secrets=(weights_and_biases.KEY,) if tracks else (),
            variables={
                name: FOLDER.sub(lambda found: folders.get(found[1], found[0]), value)
                for name, value in self.environment.items()
            },
        )

    def completed(self, begun: RunDocument, command: RankCommand, **started: Any) -> RunDocument:
        """Return the run document with the parts of every program of a user's own, and the given fields of its program."""
        program = begun.program._replace(
            title=command.title,
            trainer=PROGRAM,
            folder=self.folder(begun),
            make_environment=None if begun.machines.container else ("sh", "-c", self._environment_script(begun)),
            setup=self._setup(begun),
            imports=self._imports(begun, command),
            artifacts=(weights_and_biases.FOLDER,),
            secrets=command.secrets,
            **started,
        )
        logs = begun.logs._replace(
            reader=READERS.get(self.progress, "pattern"),
            options={} if self.progress in READERS else {"pattern": self.progress},
            not_shown=self._not_shown(),
            exit_code_decides=True,
        )
        checkpoints = begun.checkpoints._replace(
            format=FORMATS.get(self.checkpoints) or format_of(self.checkpoints),
            options=self._checkpoint_options(begun),
            files="the files that job.checkpoints names",
        )
        return begun._replace(program=program, logs=logs, checkpoints=checkpoints)

    def dockerfile(self, base: str, trainer: str | None) -> str:
        """Bring the requirements, and the repository where the program lies in one."""
        return render("own_program/Dockerfile", job=self, base=base, bare=not is_ours(base))

    def configuration(self, data_folder: str, logdir: str, files: Mapping[str, str] | str) -> str:
        """Return the job's keys as JSON, with each file of a small folder by its hash, because the file lies beside it."""
        left_out = NOT_OF_THE_RUN if self.commit else {*NOT_OF_THE_RUN, "source"}
        # That of the data counts by itself.
        left_out = {*left_out, "data", *(name for name in LATER if getattr(self, name, None) in (None, False, "same"))}
        shown = self.model_dump(mode="json", by_alias=True, exclude=left_out)
        return json.dumps({**shown, "files": files}, indent=1, sort_keys=True) + "\n"

    def _folders(self, begun: RunDocument) -> dict[str, str]:
        """Return the folders that a text of the stack file can name."""
        data = {"data": f"{begun.data.folder}/{CONTENT}"} if self.data else {}
        return {"logdir": f"{begun.folder}/logdir", **data}

    def _checkpoint_options(self, begun: RunDocument) -> Mapping[str, Any]:
        """Return the pattern, further pointers, and how many files of one kind a checkpoint has where that may have been another number before."""
        if not self.checkpoints:
            return {}
        machines, worlds = begun.machines, {}
        if self.any_world:
            nodes = len(machines.addresses)
            worlds["worlds"] = sorted({nodes, nodes * machines.slots, *begun.checkpoints.options.get("worlds", ())})
        pointers = {"pointers": list(self.pointers)} if self.pointers else {}
        return {"pattern": self.checkpoints, **worlds, **pointers}

    def _environment_script(self, begun: RunDocument) -> str:
        """Bring the same to a machine without containers."""
        folder = begun.program.environment
        return render("own_program/environment.sh.j2", job=self, folder=folder, program=self.folder(begun))

    def _setup(self, begun: RunDocument) -> tuple[tuple[str, str], ...]:
        """Return each line that runs on every node, and the script that runs it."""
        folder, python = begun.program.environment, f"{begun.program.environment}/bin/python"
        if begun.machines.container:
            folder, python = f"{IN_CONTAINER}/{begun.run}", self.python or "python"
        places = {name: shlex.quote(path) for name, path in self._folders(begun).items()}
        common = {"run": begun.folder, "program": self.folder(begun), "folder": folder, "python": python}
        return tuple(
            (
                line,
                render(
                    "own_program/setup_line.sh.j2",
                    number=number,
                    line=_placed(line, places),
                    limit_s=SETUP_LIMIT_S,
                    **common,
                ),
            )
            for number, line in enumerate(self.setup_lines, 1)
        )

    def _imports(self, begun: RunDocument, command: RankCommand) -> Argv:
        """Return the argv that looks for the script's imports by the program's interpreter; nothing for a program that is no script."""
        script = next(filter(SCRIPT_WORD.fullmatch, command.words), None)
        if script is None:
            return ()
        settings = [f"{name}={value}" for name, value in command.variables.items()]
        tried = PurePosixPath(self.folder(begun)) / script
        return ("env", *settings, command.python, f"{begun.folder}/agent/launch/script_imports.py", str(tried))

    def _not_shown(self) -> tuple[str, ...]:
        """Return the figures that nobody can know beforehand or from the program's lines."""
        found = []
        if self.max_steps is None:
            found.append("no progress bar (no job.maxSteps)")
        if self.progress not in READERS and "loss" not in re.compile(self.progress).groupindex:
            found.append("no loss (no group loss in job.progress)")
        return tuple(found)


class OwnScript(OwnProgram):
    """A Python script of the user's own, which every rank runs."""

    script: Annotated[
        Script,
        Field(description="path of a Python script below the source"),
    ]
    arguments: Annotated[
        Words, Field(description="`{maxSteps}`, `{logdir}` (where checkpoints belong) and `{data}` are filled in")
    ] = ""
    working_folder: Annotated[
        Literal["{logdir}"] | None,
        Field(
            description="`'{logdir}'`: the program starts there, for one that saves where it is; what it reads is named by whole paths"
        ),
    ] = None

    def script_command(self, begun: RunDocument, places: Mapping[str, str] | None = None) -> RankCommand:
        """Return the command of every rank, which is the script; ``places`` are as in `rank_command`."""
        script = shlex.quote(f"{self.folder(begun)}/{self.script}")
        start = (*IN_FOLDER, f"{begun.folder}/logdir") if self.working_folder else ()
        title = f"{self.script} {self.arguments}".rstrip()
        return self.rank_command(begun, title, f"python {script} {self.arguments}", places, start)


def format_of(pattern: str) -> str:
    """Return the agent's module for a pattern: the step is in the files' names, or they are written over and over."""
    return "file_formats" if "step" in re.compile(pattern).groupindex else "rewritten"


def _filled(text: str, places: Mapping[str, str]) -> Argv:
    """Return the words of a text in which each ``{place}`` is filled in."""
    return tuple(_placed(word, places) for word in shlex.split(text))


def _placed(text: str, places: Mapping[str, str]) -> str:
    """Return a text in which each ``{place}`` is filled in; ``{{place}}`` is the way to write one that is left alone."""
    names = "|".join(places)
    place = re.compile(rf"\{{(\{{(?:{names})\}})\}}|\{{({names})\}}")
    return place.sub(lambda found: found[1] or places[found[2]], text)
