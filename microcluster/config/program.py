"""Reads the user's own program: the text files of a folder on this computer."""

from pathlib import Path

from microcluster.jobs.cluster_facts import SourceFile

MOST_FILES, MOST_BYTES = 200, 1_000_000
"""They are stored in the stack's state and sent to the machines in one message."""
LEFT_OUT = {"__pycache__"}


def read_source(folder: Path, script: str) -> tuple[SourceFile, ...]:
    """Return the files below ``folder``, without hidden and compiled ones.

    Raises:
        ValueError: the folder or the script is missing, a file is no text, or they are too many or too large.
    """
    if not folder.is_dir():
        raise ValueError(
            f"there is no folder {folder}; put the program there first, for example by git clone of its repository"
        )
    if not (folder / script).is_file():
        raise ValueError(f"{folder} does not hold {script}")
    files: list[SourceFile] = []
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if not path.is_file() or any(part.startswith(".") or part in LEFT_OUT for part in name.parts):
            continue
        size += path.stat().st_size
        if len(files) == MOST_FILES or size > MOST_BYTES:
            raise ValueError(
                f"{folder} has more than {MOST_FILES} files or {MOST_BYTES:,} bytes; put data elsewhere, or name a repository "
                "at a commit"
            )
        try:
            files.append(SourceFile(name.as_posix(), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is no text in UTF-8; put data elsewhere") from error
    return tuple(files)
