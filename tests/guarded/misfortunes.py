"""What happens to a person's computer, or to the account, while a rental is guarded; each returns what undoes it."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping

from emulator.softlayer import users
from microcluster.core import stack_keys
from tests.guarded.computer import Computer
from tests.guarded.rented import STACK

Undo = Callable[[], None]
OTHER_HOST = "another-laptop"


def _field(name: str, value: object) -> Callable[[Computer], Undo]:
    """Change a field of the computer."""

    def change(computer: Computer) -> Undo:
        before = getattr(computer, name)
        setattr(computer, name, value)
        return lambda: setattr(computer, name, before)

    return change


def _key(text_of: Callable[[Computer], str]) -> Callable[[Computer], Undo]:
    def change(computer: Computer) -> Undo:
        before = computer.key.read_text()
        computer.write_key(text_of(computer))
        computer.key_fits = False

        def undo() -> None:
            computer.write_key(before)
            computer.key_fits = True

        return undo

    return change


def _rights(*taken: str) -> Callable[[Computer], Undo]:
    def take(computer: Computer) -> Undo:
        account = computer.account
        account.allow(*taken)
        return account.allow

    return take


def _stack_file(change: Callable[[str], str | None]) -> Callable[[Computer], Undo]:
    def rewrite(computer: Computer) -> Undo:
        file = computer.stack_file
        before = file.read_text() if file.exists() else None
        after = change(before or "config:\n")
        if after is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(after)

        def undo() -> None:
            if before is not None:
                computer.stack_file.write_text(before)

        return undo

    return rewrite


def _without_guard(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "microcluster:guard" not in line)


def _state(content: bytes | None) -> Callable[[Computer], Undo]:
    def damage(computer: Computer) -> Undo:
        if content is None:
            computer.state.unlink(missing_ok=True)
        elif computer.state.exists():
            computer.state.write_bytes(content)
        return lambda: None

    return damage


def _stopped(lock: str, command: str) -> Callable[[Computer], Undo]:
    def stop(computer: Computer) -> Undo:
        computer.hold(lock, command)
        return computer.let_go

    return stop


def _locked(computer: Computer, host: str, pid: int) -> Undo:
    path = computer.root / "state/.pulumi/locks/organization/microcluster" / computer.stack / "0.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = {"pid": pid, "username": "me", "hostname": host, "timestamp": "2026-11-23T08:00:00.0Z"}
    path.write_text(json.dumps(entry))
    return lambda: path.unlink(missing_ok=True)


def _locked_elsewhere(computer: Computer) -> Undo:
    """Leave the lock of a killed pulumi, and give the computer another name."""
    return _locked(computer, OTHER_HOST, 77)


def _pulumi_asks(computer: Computer) -> Undo:
    """Let a plain `pulumi up` wait at its question."""
    program = computer.place / "pulumi"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen((program, "3600"))
    computer.held.append(process)
    unlock = _locked(computer, computer.name, process.pid)

    def end() -> None:
        computer.let_go()
        unlock()

    return end


def _lost_keys(*, anew: bool) -> Callable[[Computer], Undo]:
    """Lose the folder of the stack's keys; `make setup` makes others, with another mark."""

    def lose(computer: Computer) -> Undo:
        folder = computer.root / "keys" / STACK
        kept = computer.place / "kept keys"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(folder, kept)
        if anew:
            stack_keys.ensure(folder, STACK)

        def undo() -> None:
            place = computer.root / "keys" / STACK
            shutil.rmtree(place, ignore_errors=True)
            shutil.move(kept, place)

        return undo

    return lose


def _moved_home(computer: Computer) -> Undo:
    """Move the home; the timer of before goes on with the old path."""
    computer.left, computer.root = computer.root, computer.place / "moved"
    shutil.move(computer.left, computer.root)
    return lambda: None


def _renamed(computer: Computer) -> Undo:
    """Rename the stack as `pulumi stack rename` does; the timer goes on with the name of before."""
    state, file, before = computer.state, computer.stack_file, computer.stack
    computer.called, computer.stack = (*computer.called, before), "renamed"
    if state.exists():
        computer.state.write_text(state.read_text().replace(f"urn:pulumi:{before}::", "urn:pulumi:renamed::"))
        state.unlink()
    if file.exists():
        file.rename(computer.stack_file)
    return lambda: None


def _moved_clone(computer: Computer) -> Undo:
    before, computer.stacks = computer.stacks, computer.place / "moved clone" / "it's stacks"
    computer.stacks.parent.mkdir()
    shutil.move(before, computer.stacks)
    return lambda: None


def _unreachable(computer: Computer) -> Undo:
    computer.machines.reachable = False
    return lambda: setattr(computer.machines, "reachable", True)


BLOCKING: Mapping[str, Callable[[Computer], Undo]] = {
    "sleep": _field("awake", False),
    "no network": _field("online", False),
    "a key of another account": _key(lambda computer: computer.other_key),
    "a key that nobody has": _key(lambda computer: computer.key.read_text().replace("api_key = ", "api_key = x")),
    "a key file without a key": _key(lambda computer: "[softlayer]\n"),
    "rights to see guests are taken": _rights(users.VIEW),
    "rights to see all guests are taken": _rights(users.ALL_GUESTS),
    "rights to see bills are taken": _rights(users.BILLING),
    "rights to cancel are taken": _rights("SERVER_CANCEL"),
}
"""While it lasts nobody can keep a limit from there, so that it ends."""
HINDERING: Mapping[str, Callable[[Computer], Undo]] = {
    "rights to manage keys are taken": _rights("CUSTOMER_SSH_KEY_MANAGEMENT"),
    "a full disk": _field("disk", "full"),
    "a read-only disk": _field("disk", "read-only"),
    "no engine": _field("pulumi", "missing"),
    "an engine that fails": _field("pulumi", "fails"),
    "an engine that hangs": _field("pulumi", "hangs"),
    "no stack file": _stack_file(lambda text: None),
    "a typo in the account": _stack_file(lambda text: text.replace("cluster:\n", "cluster:\n    account: softlyer\n")),
    "a stack file that is no YAML": _stack_file(lambda text: f"{text}\n  - }}\n"),
    "a stack file without limits": _stack_file(_without_guard),
    "a typo in the limits": _stack_file(lambda text: text.replace("{lease:", "{leese: 1, lease:")),
    "another lease in the stack file": _stack_file(lambda text: text.replace("{lease: ", "{lease: 8")),
    "no state": _state(None),
    "a torn state": _state(b'{"version": 3, "check'),
    "make up at Ctrl-Z": _stopped(STACK, "make up"),
    "make down at Ctrl-Z": _stopped(STACK, "make down"),
    "recover at Ctrl-Z": _stopped(STACK, "fab recover"),
    "a guard at Ctrl-Z": _stopped(f"{STACK}.guard", "fab guard"),
    "a killed pulumi's lock after another name": _locked_elsewhere,
    "pulumi at its question": _pulumi_asks,
    "a lost key folder": _lost_keys(anew=False),
    "keys made anew": _lost_keys(anew=True),
    "a clock two hours ahead": _field("skew_s", 7200.0),
    "a clock two hours behind": _field("skew_s", -7200.0),
    "a clock a day ahead": _field("skew_s", 86400.0),
    "a moved home": _moved_home,
    "a renamed stack": _renamed,
    "a moved clone": _moved_clone,
    "machines that do not answer": _unreachable,
}
"""Whatever of these happens, the limits are kept."""
NAMELESS = ("no state", "a torn state", "a lost key folder", "keys made anew")
"""Where two of these meet, nothing on the computer says any more whose the rental is."""
ALL = {**BLOCKING, **HINDERING}
