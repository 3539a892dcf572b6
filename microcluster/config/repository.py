"""Clones a repository at a commit, with its submodules, onto this computer, where a key or submodules keep the machines from doing so."""

import contextlib
import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from microcluster.config.folder_reader import FolderError
from microcluster.core.files import whole_folder
from microcluster.core.home import Home
from microcluster.core.key_file import SETTING, KeyFileError, settings_in
from microcluster.core.plain_text import duration, printable

TIMEOUT_S = 900
WRITE_ANEW = "Write the token alone into it, and run 'chmod 600' on it."
USER = "x-access-token"
"""The login beside a token; hosts that look at it are told in the file: [git], username = ..., api_key = ..."""
SETTINGS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.file.allow=never", "protocol.ext.allow=never"),
    *("credential.helper=", "http.lowSpeedLimit=1000", "http.lowSpeedTime=60", "advice.detachedHead=false"),
)
ENVIRONMENT = {
    **{"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:ssh", "GIT_ASKPASS": "true", "LC_ALL": "C"},
    **{
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=10",
    },
}
"""Nothing is asked, and what a repository names as a submodule is reached by https or ssh alone."""
FAILURES = (
    (
        r"transport '\w+' not allowed|strange (host|path)name|ignoring suspicious",
        "a submodule has an address that is neither https nor ssh",
    ),
    (
        r"Authentication failed|could not read (Username|Password)|Permission denied|error: 40[13]|[Rr]epository.* not found",
        "it refuses the login",
    ),
    (r"not our ref|not a tree|unadvertised object|did not match any|bad object|upload-pack: ", "it has no such commit"),
)
"""Messages of git, and what they mean."""


def cloned(address: str, commit: str, key_file: str | None) -> Path:
    """Return the folder of a repository at a commit; it is fetched once.

    Raises:
        FolderError: the key, the address or the commit is wrong, or a submodule cannot be had.
    """
    folder = Home.of().cache / "repositories" / f"{hashlib.sha256(address.encode()).hexdigest()[:16]}-{commit}"
    if not folder.is_dir():
        with _login(address, key_file) as (options, descriptors), whole_folder(folder) as made:
            git = ("git", *(word for one in (*SETTINGS, *options) for word in ("-c", one)), "-C", str(made))
            fetches = ("fetch", "--quiet", "--depth=1", "origin", commit), ("fetch", "--quiet", "--tags", "origin")
            _run((*git, "init", "--quiet", "--template="), address, descriptors)
            _run((*git, "remote", "add", "origin", address), address, descriptors)
            try:
                _run((*git, *fetches[0]), address, descriptors)
            except FolderError:  # Some hosts give a commit only with its branch.
                _run((*git, *fetches[1]), address, descriptors)
            _run((*git, "checkout", "--quiet", "--detach", commit), address, descriptors)
            _run((*git, "submodule", "--quiet", "update", "--init", "--recursive", "--checkout"), address, descriptors)
    return folder


@contextlib.contextmanager
def _login(address: str, key_file: str | None) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Yield git's options and the descriptors that it needs for a login: the token is in memory, for this host alone."""
    if not key_file:
        yield (), ()
        return
    path = Home.of().expand(key_file)
    try:
        settings = settings_in(path, "git", WRITE_ANEW)
    except KeyFileError as error:
        raise FolderError(f"the key in {path} is not used, as {error}") from error
    if SETTING not in settings:
        raise FolderError(f"{path} holds no token. {WRITE_ANEW}")
    memory = os.memfd_create("login")
    try:
        os.write(memory, f"username={settings.get('username', USER)}\npassword={settings[SETTING]}\n".encode())
        host = re.sub(r"(https://[^/]*).*", r"\1", address)
        yield (f"credential.{host}.helper=!f() {{ cat /proc/self/fd/{memory}; }}; f",), (memory,)
    finally:
        os.close(memory)


def _run(argv: tuple[str, ...], address: str, descriptors: tuple[int, ...]) -> None:
    """Run git, which asks nobody; what hangs is ended with all that it has started."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    own = {"start_new_session": True, "pass_fds": descriptors, "env": _environment(os.environ)}
    with subprocess.Popen(argv, **streams, **own) as git:
        try:
            error_output = git.communicate(timeout=TIMEOUT_S)[1].decode(errors="replace")
        except BaseException as late:
            os.killpg(git.pid, signal.SIGKILL)
            if isinstance(late, subprocess.TimeoutExpired):
                raise FolderError(f"cloning {address}: not over after {duration(TIMEOUT_S)}; try again") from late
            raise
    if git.returncode:
        reason = next((words for pattern, words in FAILURES if re.search(pattern, error_output)), "git failed")
        last = printable(" ".join(error_output.split("\n")[-3:]).strip(), 300)
        raise FolderError(f"cloning {address}: {reason} ({last}). Check job.source, job.commit and job.sourceKeyFile")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    return {**{name: value for name, value in given.items() if not name.startswith("GIT_")}, **ENVIRONMENT}
