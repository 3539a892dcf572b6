"""One command of the product in a process of its own, forked with everything imported: its folders are the case's, and its limits are short."""

import atexit
import faulthandler
import inspect
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import NoReturn

OURS = ("microcluster.remote", "microcluster.run", "microcluster.commands")
"""Whose limits are shortened."""
MOVED = {"PROJECT": "", "VENV": ".venv", "PULUMI": ".venv/bin/pulumi", "ARTIFACTS": "artifacts", "STACKS": "stacks"}
"""The paths of a clone, by their names in the product."""
AS_IT_IS = re.compile(r"LARGEST_SKEW_S|MISSED_LOOKS_S|TURN_S|CLOCKS_AGREE_S|CANCEL_S|MOST_")
LIMIT = re.compile(r"(?:^|_)(?:timeout|limit|deadline)_s$|_S$", re.IGNORECASE)
CHANGES = {
    **dict.fromkeys(("os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.chown", "os.truncate", "os.utime"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), 2),
}
"""What changes files, as Python's audit names it, with the number of its paths."""
HOURS_S = 900
TOO_LONG_S = 300.0
LARGEST_FILE = 400 * 10**6


def short(limit_s: float, name: str, *, patient: bool) -> float:
    """Return a limit as it is in a case: minutes are seconds; where nobody may wait for an hour, an hour is longer than any case."""
    if "EVERY" in name or "AFTER" in name or "PAUSE" in name:
        return limit_s / 10
    steps = ((2, limit_s), (10, 2.5), (60, 2.0), (130, 2.5), (HOURS_S, 4.0))
    usual = next((shorter for longest, shorter in steps if limit_s <= longest), None)
    return usual if usual is not None else 5.0 if patient else TOO_LONG_S


def hurry(*, patient: bool) -> None:
    """Shorten the limits of all modules that wait for machines: constants, and what functions take by default."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(OURS):
            continue
        for key, value in list(vars(module).items()):
            if LIMIT.search(key) and isinstance(value, int | float) and not AS_IT_IS.search(key):
                setattr(module, key, short(value, key, patient=patient))
            functions = [value] if isinstance(value, FunctionType) else []
            if inspect.isclass(value) and value.__module__ == name:
                functions += [each for each in vars(value).values() if isinstance(each, FunctionType)]
            for function in functions:
                if function.__module__ == name:
                    _hurry_defaults(function, patient=patient)


def _hurry_defaults(function: FunctionType, *, patient: bool) -> None:
    def shorter(name: str, value: object) -> object:
        is_limit = LIMIT.search(name) and isinstance(value, int | float)
        return short(value, name, patient=patient) if is_limit else value

    named = function.__kwdefaults__ or {}
    if named:
        function.__kwdefaults__ = {name: shorter(name, value) for name, value in named.items()}
    usual = function.__defaults__ or ()
    if usual:
        names = list(inspect.signature(function).parameters)[: function.__code__.co_argcount][-len(usual) :]
        function.__defaults__ = tuple(map(shorter, names, usual))


def move(project: Path) -> None:
    """Let the product take ``project`` for its clone."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("microcluster.", "components.", "providers.")):
            for key, place in MOVED.items():
                if isinstance(vars(module).get(key), Path):
                    setattr(module, key, project / place)


def reach(port: int) -> None:
    """Let every machine listen on another port than its usual one."""
    from microcluster.remote.host import Host  # noqa: PLC0415

    Host.__init__.__kwdefaults__["port"] = port
    if "microcluster.command_line.apart" in sys.modules:
        sys.modules["microcluster.command_line.apart"].start = Forked


class Forked:
    """A process that is forked where the product starts a new Python: with everything imported, a hundred times as fast."""

    def __init__(self, argv: Sequence[str], *_: object, **__: object) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            _end_as_program(lambda: _apart(argv[3:]))

    def wait(self, timeout: float) -> int:
        """Return its exit code, as `Popen.wait` does."""
        until = time.monotonic() + timeout
        while self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                raise subprocess.TimeoutExpired("forked", timeout)
            else:
                time.sleep(0.02)
        return self.returncode


def _apart(words: Sequence[str]) -> int:
    from microcluster.command_line import apart  # noqa: PLC0415

    try:
        apart.main(*words)
    except KeyboardInterrupt:
        return 130
    return 0


def stay_inside(place: Path) -> None:
    """Refuse, and write down, whatever this process would make, change or remove by a path outside ``place``."""
    record = os.open(place / "strayed", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    devices = ("/dev/", "/proc/")

    def look(event: str, found: tuple[object, ...]) -> None:
        if event != "open" and event not in CHANGES:
            return
        if event == "open" and not (isinstance(found[2], int) and found[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            return
        for path in found[: CHANGES.get(event, 1)]:
            if isinstance(path, str | bytes):
                name = os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))
                if not name.startswith((f"{place}/", *devices)):
                    os.write(record, f"{event} {name!r}\n".encode("utf-8", "backslashreplace"))
                    raise PermissionError(13, "outside of the case", name)

    sys.addaudithook(look)


def act(words: Sequence[str], stack: str, given: Path | None) -> int:
    """Be `fab` with these words, as a person types them, or the step of `make up` that follows the job."""
    if words[0] == "follow":
        return _follow(stack)
    from fabric.main import program  # noqa: PLC0415

    option = [] if given or "--stack" in words else [f"--stack={stack}"]
    at = list(words).index("--") if "--" in words else len(words)
    sys.argv = ["fab", *words[:at], *option, *words[at:]]
    program.run(sys.argv[:], exit=False)
    return 0


def _follow(stack: str) -> int:
    from microcluster.command_line.command import StackName, command  # noqa: PLC0415
    from microcluster.commands import up  # noqa: PLC0415
    from microcluster.config.stack import read_file  # noqa: PLC0415
    from microcluster.core.home import Home  # noqa: PLC0415
    from microcluster.setup.environment import use_own_backend  # noqa: PLC0415
    from microcluster.setup.progress import Stages  # noqa: PLC0415

    use_own_backend(Home.of())

    @command
    def follow(stack: StackName) -> int:
        return up._follow(read_file(stack), Stages(), ends=False)

    return follow.code(stack=stack)


def become(
    case_place: Path,
    words: Sequence[str],
    environment: dict[str, str],
    port: int,
    *,
    stack: str,
    given: bool,
    patient: bool,
    hurried: bool,
) -> None:
    """Turn this forked process into the command; never returns."""
    os.setsid()
    atexit._clear()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    facts = case_place / "facts.json"
    files = (str(facts) if given else os.devnull, str(case_place / "stdout"), str(case_place / "stderr"))
    for number, (file, flags) in enumerate(
        zip(files, (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_APPEND] * 2), strict=True)
    ):
        opened = os.open(file, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1, (case_place / "stacks").open("w"))  # What it does when it is late.
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # Another one was asked for before.
    project = case_place / "project"
    os.chdir(project)

    stay_inside(case_place)

    def run() -> int:
        move(project)
        if hurried:
            hurry(patient=patient)
        reach(port)
        return act(words, stack, facts if given else None)

    _end_as_program(run)


def _end_as_program(run: Callable[[], int]) -> NoReturn:
    """End this process as a program of Python ends."""
    code = 1
    try:
        code = run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - printed as Python does
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
