"""A program's source for the local training image: taken from a place that a person names, the cache or its repository."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from microcluster.core.files import whole_folder
from microcluster.jobs.job_section import PinnedSource
from microcluster.setup.errors import CommandFailed
from microcluster.setup.image_build import NOT_INPUTS, input_files, input_hash
from microcluster.setup.process import asked

NOWHERE = "none"
"""The value of the source's variable that leaves it out and asks nobody for it."""
CONTEXT = ".source"
REACH_LIMIT_S, FETCH_LIMIT_S, LOCAL_LIMIT_S = 10, 300, 60


class _UnavailableError(Exception):
    """The public repository does not give the source; the message says why."""


@dataclass(frozen=True)
class Source:
    """The program's files in a folder of the cache."""

    pinned: PinnedSource
    folder: Path
    digest: str

    @classmethod
    def of(cls, pinned: PinnedSource, folder: Path) -> "Source":
        return cls(pinned, folder, input_hash(folder, "", {}))

    @property
    def name(self) -> str:
        """Name of the trainer in the log, `fab status` and the report; the run's id depends on it."""
        if self.digest == self.pinned.content:
            return self.pinned.name
        return self.pinned.unknown(self.digest)

    def files(self) -> dict[str, bytes]:
        """Return the files by their names in the image's build context."""
        files = input_files(self.folder)
        return {f"{CONTEXT}/{self.pinned.folder}/{path.relative_to(self.folder)}": path.read_bytes() for path in files}


def find(
    pinned: PinnedSource, environment: Mapping[str, str], cache: Path, say: Callable[[str], None]
) -> Source | None:
    """Return the source that the environment names, else the pinned commit from the cache or the public repository.

    Without any, one line says that the stand-in trains and how to get the real one.

    Args:
        cache: the folder in which sources are kept.

    Raises:
        CommandFailed: when the variable names something that is not the program's source.
    """
    named, cached_source = environment.get(pinned.variable, ""), cache / pinned.commit
    if named == NOWHERE:
        say(f"training image: without {pinned.program}, because {pinned.variable} is {NOWHERE}; the stand-in trains")
        return None
    if named:
        return _named(pinned, Path(named).expanduser().absolute(), cache)
    if cached_source.is_dir() and (source := Source.of(pinned, cached_source)).digest == pinned.content:
        return source
    try:
        return _from_repository(pinned, cached_source)
    except _UnavailableError as why:
        say(
            f"training image: without {pinned.program}, whose source cannot be had ({why}); the stand-in trains. For the real "
            f"one: {pinned.variable}=FOLDER-OR-GIT-DIRECTORY make images"
        )
        return None


def inputs(sources: Sequence[Source]) -> dict[str, bytes]:
    """Return additions to the training image's build context: the trainers' files, and the file with their names."""
    names = [source.name for source in sources] or [NOWHERE]
    added = {f"{CONTEXT}/TRAINER": "".join(f"{name}\n" for name in names).encode()}
    for source in sources:
        added |= source.files()
    return added


def _named(pinned: PinnedSource, path: Path, cache: Path) -> Source:
    """Take the pinned commit out of a git directory, bare or not, or a folder as it is."""
    git = next((git for git in (path / ".git", path) if (git / "HEAD").is_file() or git.is_file()), None)
    if git:
        try:
            return _checked_out(pinned, git, cache / pinned.commit)
        except _UnavailableError as why:
            raise CommandFailed(
                f"Taking {pinned.name} out of {pinned.variable}={path}: {why}. Fetch that commit there, or name "
                "another folder or git directory."
            ) from why
    missing = [part for part in pinned.parts if not (path / part).exists()]
    if missing:
        raise CommandFailed(
            f"Taking {pinned.program} from {pinned.variable}={path}: {', '.join(missing)} is not there. Name the folder that holds "
            "them, or a git directory of it."
        )
    with whole_folder(cache / "folder") as folder:
        for part in pinned.parts:
            if (path / part).is_dir():
                shutil.copytree(path / part, folder / part, ignore=shutil.ignore_patterns(*NOT_INPUTS))
            else:
                shutil.copy(path / part, folder / part)
    return Source.of(pinned, cache / "folder")


def _from_repository(pinned: PinnedSource, kept: Path) -> Source:
    """Fetch the pinned commit alone; a repository that does not answer is given up after a few seconds."""
    _git("ls-remote", pinned.repository, "HEAD", limit_s=REACH_LIMIT_S)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept.parent) as git:
        _git("init", "--quiet", "--bare", git)
        only = ("fetch", "--quiet", "--depth=1", pinned.repository, pinned.commit)
        _git("--git-dir", git, *only, limit_s=FETCH_LIMIT_S)
        return _checked_out(pinned, Path(git), kept)


def _checked_out(pinned: PinnedSource, git: Path, kept: Path) -> Source:
    """Put the pinned commit's files of a git directory into the cache."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".tar") as archive, whole_folder(kept) as folder:
        words = ("archive", f"--output={archive.name}", pinned.commit, "--", *pinned.parts)
        _git("--git-dir", str(git), *words)
        # Unlike the standard library's before Python 3.12, this tar writes nothing elsewhere by itself.
        _ran("tar", "--extract", "--no-same-owner", f"--file={archive.name}", f"--directory={folder}")
    source = Source.of(pinned, kept)
    if source.digest != pinned.content:
        raise _UnavailableError(f"the files of commit {pinned.commit} are not what they were when it was pinned")
    return source


def _git(*words: str, limit_s: float = LOCAL_LIMIT_S) -> None:
    _ran("git", *words, limit_s=limit_s)


def _ran(*argv: str, limit_s: float = LOCAL_LIMIT_S) -> None:
    done = asked(argv, limit_s, {**os.environ, "GIT_TERMINAL_PROMPT": "0"})  # Git must not ask for a password.
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise _UnavailableError(f"{argv[0]}: {said[-1].removeprefix('fatal: ').rstrip('.')}")
