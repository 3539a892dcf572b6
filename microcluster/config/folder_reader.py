"""Reads a folder of this computer as a tree: what git would take, and what `.microclusterignore` adds or takes back."""

import contextlib
import hashlib
import json
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from microcluster.core.files import write_whole
from microcluster.core.plain_text import printable
from microcluster.jobs.finished_data import LARGEST_WHOLE_BYTES
from microcluster.jobs.folder_tree import FILE, IGNORE_FILE, LINK, PROGRAM, Entry, FolderTree, id_of, kept, list_of

MOST_BYTES = 10 * 10**9
MOST_NAME_BYTES, MOST_PATH_BYTES = 255, 2048
SMALL_FILES, SMALL_BYTES = 200, 1_000_000
"""Limits of the folders whose files the run's id lists."""
SHORT_BYTES = 1 << 20
"""Size of the files that are hashed in one piece."""
COMPILED = "__pycache__/"
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
GIT_TIMEOUT_S = 120
SHOWN = 3
"""Most names that a sentence lists."""


class FolderError(Exception):
    """A folder cannot travel; each argument is one problem."""


def read_tree(folder: Path, script: str | None = None, *, is_data: bool = False) -> FolderTree:
    """Return the tree of a folder; a file that has not changed since the last reading is not read again.

    Args:
        script: path of a file that has to travel.
        is_data: whether nothing but `.git` stays behind, and each link has to lead to a file.

    Raises:
        FolderError: the folder cannot travel.
    """
    if not folder.is_dir():
        raise FolderError(
            f"there is no folder {folder}; put the program there first, for example by git clone of its repository"
        )
    names = sorted(_all_of(folder) if is_data else _taken(folder))
    problems = _problems(folder, names, script, is_data=is_data)
    if problems:
        raise FolderError(*problems)
    entries_before = {entry.name: entry for entry in kept(folder, is_data=is_data)}
    ways = os.cpu_count() or 1
    with ThreadPoolExecutor(ways) as readers:
        parts = readers.map(
            lambda way: [_entry(folder, name, entries_before.get(name)) for name in names[way::ways]], range(ways)
        )
        entries = tuple(sorted(chain.from_iterable(parts)))
    if entries != tuple(entries_before.values()):
        list_file = list_of(folder, is_data=is_data)
        list_file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(list_file, json.dumps(entries))
    size = sum(entry.size for entry in entries)
    left_out = list(_left(folder, set(names)))
    return FolderTree(
        path=str(folder),
        id=id_of(entries),
        files=len(entries),
        bytes=size,
        left_files=sum(files for _, files, _ in left_out),
        left_bytes=sum(size for _, _, size in left_out),
        left_names=tuple(name for name, _, _ in sorted(left_out, key=lambda one: -one[2])[:SHOWN]),
        hashes={} if is_data else _small(folder, entries),
    )


def _all_of(folder: Path) -> list[str]:
    def stop(error: OSError) -> None:
        raise error

    walked = os.walk(folder, onerror=stop)
    paths = [Path(where, name) for where, folders, files in walked for name in (*files, *folders)]
    inside = [path.relative_to(folder) for path in paths if path.is_symlink() or path.is_file()]
    return [path.as_posix() for path in inside if ".git" not in path.parts]


def _taken(folder: Path) -> set[str]:
    """Return the names of what travels, those of repositories inside the folder too."""
    with tempfile.TemporaryDirectory() as scratch:
        _git(("git", "init", "--quiet", "--bare", "--template=", scratch), folder, {})
        return {name for name in _of_git(folder.resolve(), Path(scratch)) if ".git" not in name.split("/")}


def _of_git(folder: Path, git: Path) -> Iterator[str]:
    top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
    patterns = [*_patterns(folder, top), f"--exclude={COMPILED}"]
    names = _list(git, top, folder, ("-co", "--exclude-standard", *patterns))
    if not names and top != folder:  # Another repository ignores the whole folder.
        top, patterns = folder, [*_patterns(folder, folder), f"--exclude={COMPILED}"]
        names = _list(git, top, folder, ("-co", "--exclude-standard", *patterns))
    names -= _list(git, top, folder, ("-ci", *patterns))
    for name in names:
        try:
            mode = os.lstat(f"{folder}/{name}").st_mode
        except FileNotFoundError:  # Of the index, and deleted since.
            continue
        if stat.S_ISDIR(mode):
            yield from (f"{name.rstrip('/')}/{below}" for below in _of_git(folder / name, git))
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            yield name


def _list(git: Path, top: Path, folder: Path, options: Sequence[str]) -> set[str]:
    """Return the names that git lists, with our settings: the folder's own may start programs."""
    git_folder = _git_folder(top)
    exclude = git_folder / "info" / "exclude"
    more = ("--exclude-from", str(exclude)) if exclude.is_file() and "-ci" not in options else ()
    argv = ("git", "-c", "core.fsmonitor=false", "ls-files", "-z", *options, *more)
    places = {"GIT_DIR": str(git), "GIT_WORK_TREE": str(top)}
    # One that needs more of its repository cannot be read.
    for index in (str(git_folder / "index"), str(git / "index")):
        listing = _git(argv, folder, places | {"GIT_INDEX_FILE": index})
        if not listing.returncode:
            return {os.fsdecode(name) for name in listing.stdout.split(b"\0") if name}
    raise FolderError(f"git cannot list {folder}: {printable(listing.stderr.decode(errors='replace').strip(), 300)}")


def _git(argv: Sequence[str], folder: Path, places: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    options = {"cwd": folder, "env": _environment() | places, "capture_output": True}
    try:
        return subprocess.run(argv, timeout=GIT_TIMEOUT_S, check=False, **options)
    except FileNotFoundError as missing:
        raise FolderError("git is not on this computer. Install git, then try again") from missing
    except subprocess.TimeoutExpired as late:
        raise FolderError(
            f"git does not list {folder} in {GIT_TIMEOUT_S} s; try again, or give job.source a smaller folder"
        ) from late


def _environment() -> dict[str, str]:
    kept_ones = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept_ones, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def _git_folder(top: Path) -> Path:
    """Return where the repository of a work tree is; a work tree of a submodule has a file that names it."""
    git = top / ".git"
    with contextlib.suppress(OSError, ValueError):
        if git.is_file():
            return top / git.read_text().partition("gitdir:")[2].strip()
    return git


def _patterns(folder: Path, top: Path) -> list[str]:
    """Return the options of the folder's own patterns, as git reads them at the top of its work tree."""
    try:
        lines = (folder / IGNORE_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(f"{folder / IGNORE_FILE} cannot be read: {error}") from error
    inside = re.sub(r"([\\*?\[])", r"\\\1", folder.relative_to(top).as_posix())
    patterns = []
    for line in lines:
        sign, pattern = ("!", line[1:]) if line.startswith("!") else ("", line)
        if not pattern.strip() or line.startswith("#"):
            continue
        if inside != ".":
            middle = "/" if "/" in pattern.rstrip("/ ") else "/**/"
            pattern = f"/{inside}{middle}{pattern.lstrip('/')}"
        patterns.append(f"--exclude={sign}{pattern}")
    return patterns


def _problems(folder: Path, names: Sequence[str], script: str | None, *, is_data: bool) -> list[str]:
    """Say all that keeps a folder from travelling."""
    found_problems = []
    if script and Path(script).as_posix() not in names:  # Without its `//` and `/./`.
        stays = f"{script} of {folder} stays behind, because git ignores it; take it in with a line !{script} in {IGNORE_FILE}"
        found_problems.append(stays if (folder / script).is_file() else f"{folder} does not hold {script}")
    if is_data and not names:
        found_problems.append(f"{folder} holds no file")
    size = sum(os.lstat(f"{folder}/{name}").st_size for name in names)
    most = LARGEST_WHOLE_BYTES if is_data else MOST_BYTES
    leave_out = "" if is_data else f", or leave them out with {IGNORE_FILE}"
    less = "take some out" if is_data else f"leave some out with {IGNORE_FILE}"
    if size > most:
        found_problems.append(f"{folder} has {size:,} bytes that would travel, more than {most:,}; {less}")
    odd = [name for name in names if _is_odd(name)]
    if odd:
        found_problems.append(
            f"{folder} has names that the machines cannot hold (no UTF-8, control characters, or too long): {_some(odd)}; rename "
            f"them{leave_out}"
        )
    out = [name for name in names if os.path.islink(f"{folder}/{name}") and _leads_out(folder, name, is_data=is_data)]
    if out:
        where = "out of it or to no file" if is_data else "out of it"
        found_problems.append(f"{folder} has links that lead {where}: {_some(out)}; put a copy there{leave_out}")
    return found_problems


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(printable(name) for name in names[:SHOWN]) + more


def _is_odd(name: str) -> bool:
    try:
        longest = max(len(part.encode()) for part in name.split("/"))
    except UnicodeEncodeError:
        return True
    return bool(CONTROL.search(name)) or longest > MOST_NAME_BYTES or len(name.encode()) > MOST_PATH_BYTES


def _leads_out(folder: Path, name: str, *, is_data: bool) -> bool:
    path = folder / name
    is_inside = Path(os.path.realpath(path)).is_relative_to(folder.resolve())
    return not is_inside or os.path.isabs(os.readlink(path)) or (is_data and not path.is_file())


def _entry(folder: Path, name: str, before: Entry | None) -> Entry:
    path = f"{folder}/{name}"
    facts = os.lstat(path)
    version = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
    if stat.S_ISLNK(facts.st_mode):
        return Entry(name, LINK, facts.st_size, os.readlink(path), version)
    kind = PROGRAM if facts.st_mode & stat.S_IXUSR else FILE
    if before and before.version == version and before.kind != LINK:
        return before._replace(kind=kind)
    with open(path, "rb") as content:
        # A digest of a file clears a buffer first, which takes as long as to hash a small one.
        is_short = facts.st_size <= SHORT_BYTES
        digest = hashlib.sha256(content.read()) if is_short else hashlib.file_digest(content, "sha256")
        return Entry(name, kind, facts.st_size, digest.hexdigest(), version)


def _left(folder: Path, taken: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield left-out entries: a name, its number of files and their bytes; a folder of which nothing travels is one."""
    parents = {parent for name in taken for parent in _parents(name)}
    for where, folders, files in os.walk(folder):
        folders[:] = [one for one in folders if one != ".git"]
        inside = os.path.relpath(where, folder).removeprefix(".").lstrip("/")
        names = [f"{inside}/{name}".lstrip("/") for name in files if name != ".git"]
        sizes = [os.lstat(os.path.join(folder, name)).st_size for name in names if name not in taken]
        if not sizes:
            continue
        if inside and inside not in parents:
            yield f"{inside}/", len(sizes), sum(sizes)
        else:
            left = [name for name in names if name not in taken]
            yield from ((name, 1, size) for name, size in zip(left, sizes, strict=True))


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _small(folder: Path, entries: Sequence[Entry]) -> dict[str, str]:
    """Return the hashes of a small folder's texts; nothing of any other folder."""
    visible = [entry for entry in entries if not any(part.startswith(".") for part in entry.name.split("/"))]
    if len(visible) > 2 * SMALL_FILES:
        return {}
    visible = [entry for entry in visible if (folder / entry.name).is_file()]
    if len(visible) > SMALL_FILES or sum((folder / entry.name).stat().st_size for entry in visible) > SMALL_BYTES:
        return {}
    try:
        texts = {entry.name: (folder / entry.name).read_text(encoding="utf-8") for entry in visible}
    except UnicodeDecodeError:
        return {}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
