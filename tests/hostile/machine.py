"""The machines of a stack as one hostile process: ssh on loopback, whose answers are true but for what an attack makes of them."""

import contextlib
import faulthandler
import hashlib
import io
import logging
import os
import shlex
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.common import cMSG_DISCONNECT

from microcluster.core.ssh_key import KeyPair
from tests.hostile.attacks import CHANGES, Attack
from tests.hostile.manners import BLOCK, DRIP_S, LATE_S, MANNERS, end, send_all
from tests.hostile.truth import Answer, Truth

ADDRESSES = ("127.0.0.2", "127.0.0.3")
"""Of the first and the second machine; both listen on one port."""
TENSORBOARD = "MICROCLUSTER_TOOL=tensorboard"
UPLOAD_MANNERS = {
    **{"error text": "plain", "silence": "silence", "closed": "closed in the middle", "endless": "endless both"},
    **{"no exit code": "no exit code", "garbage": "garbage", "signal": "signal", "late": "late"},
}
"""Of who does not take what is sent."""


@dataclass
class Machines:
    """Both machines of a case.

    Attributes:
        log: where each question and what became of it is written.
    """

    truth: Truth
    attack: Attack | None
    place: Path
    log: Path
    host_key: paramiko.PKey
    lock: threading.Lock = field(default_factory=threading.Lock)
    answering: threading.Lock = field(default_factory=threading.Lock)
    sent: dict[str, bytes] = field(default_factory=dict)
    fitting: int = 0
    questions: int = 0

    def note(self, text: str) -> None:
        """Write a line of the log."""
        with self.log.open("a", errors="backslashreplace") as file:
            file.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def is_due(self, group: str, number: int) -> bool:
        """Count what the attack fits, and tell whether it is carried out now."""
        attack = self.attack
        if attack is None or attack.group != group or attack.on not in (None, number):
            return False
        with self.lock:
            place, self.fitting = self.fitting, self.fitting + 1
        return place == attack.at or (attack.lasts and place > attack.at)

    def answer(self, line: str, given: bytes) -> Answer:
        """Return the true answer; what was sent here is known here only."""
        words = shlex.split(line)
        if words[3:4] == ["length"]:
            return Answer(b"%d\n" % len(self.sent.setdefault(words[4], b"")))
        if words[0] == "sha256sum" and words[-1] in self.sent:
            return Answer(f"{hashlib.sha256(self.sent[words[-1]]).hexdigest()}  {words[-1]}\n".encode())
        if words[:2] == ["mv", "-f"] and words[2] in self.sent:
            self.sent[words[3]] = self.sent.pop(words[2])
        if words[:2] == ["rm", "-f"]:
            self.sent.pop(words[2], None)
        with self.answering:  # Both machines may be asked the same at once, and write the answer down.
            return self.truth.answer(line, given)

    def changed(self, number: int, line: str, answer: Answer) -> tuple[Answer, str]:
        """Return what is sent to a question, and in which manner."""
        with self.lock:
            self.questions += 1
            question = self.questions
        asked = line.partition("\n")[0][:100]
        attack = self.attack
        if attack and attack.group == "answer":
            scene = attack.scene(self.place, question)
            other = CHANGES[attack.kind](scene, answer)
            if other is not None and self.is_due("answer", number):
                self.note(f"ATTACKED question {question} of gpu-{number} by {attack.kind} {scene.made}: {asked}")
                return other, "plain"
        if attack and attack.group == "files" and _is_of_a_file(line) and self.is_due("files", number):
            other, manner = of_a_file(attack, self.place, answer, line)
            self.note(
                f"ATTACKED the file of question {question} of gpu-{number} by {attack.kind}: {asked} {line[-80:]!r}"
            )
            return other, manner
        if attack and attack.kind == "lying size" and " length " in line and self.is_due("uploads", number):
            self.note(f"ATTACKED an upload by {attack.kind}")
            return Answer(b"50000000000000\n"), "plain"
        if attack and self.is_due("manner", number):
            self.note(f"ATTACKED question {question} of gpu-{number} by {attack.kind}: {asked}")
            return answer, attack.kind
        self.note(f"answered question {question} of gpu-{number} with {answer.code}: {asked}")
        return answer, "plain"


def _is_of_a_file(line: str) -> bool:
    """Tell whether a question is for the bytes of a file, or for its length and hash."""
    words = shlex.split(line)
    return words[0] == "sh" and words[3:4] in (["pieces"], ["describe"])


def of_a_file(attack: Attack, place: Path, answer: Answer, line: str) -> tuple[Answer, str]:
    """Return what is sent in place of a file's bytes, and in which manner."""
    content, text = answer.stdout, attack.scene(place, 1).text.encode("utf-8", "surrogatepass")
    describes = " describe " in line
    answers = {
        "half": Answer(content[: len(content) // 2]),
        "one byte": Answer(content[:1]),
        "nothing": Answer(b""),
        "grows": Answer(content + b"more\n" * 10**5),
        "other bytes": Answer(bytes(255 - each for each in content)),
        "error": Answer(b"", b"cat: input/output error\n", 1),
        "error text": Answer(content[:5], text, 1),
        "gone": Answer(b"", text, 66),
        "too much": Answer(content + b"x" * 5 * 10**7),
        "lying size": Answer(b'[50000000000000, "' + b"0" * 64 + b'"]') if describes else Answer(content[:3]),
    }
    manners = {
        **{"endless": "endless line", "silence": "silence", "slow": "slow drip", "closed": "closed in the middle"},
        **{"refused": "channel refused", "no exit code": "no exit code"},
    }
    return answers.get(attack.kind, answer), manners.get(attack.kind, "plain")


class Server(paramiko.ServerInterface):
    """Lets everybody in."""

    def __init__(self, machines: Machines, number: int) -> None:
        self.machines, self.number = machines, number

    def get_allowed_auths(self, username):
        return "publickey"

    def check_auth_publickey(self, username, key):
        attack = self.machines.attack
        if attack and attack.kind == "refused" and self.machines.is_due("login", self.number):
            return paramiko.AUTH_FAILED
        return paramiko.AUTH_SUCCESSFUL

    def get_banner(self):
        attack = self.machines.attack
        if attack and attack.kind == "banner text" and self.machines.is_due("login", self.number):
            return attack.scene(self.machines.place, 0).text * 10, "en"
        return None, None

    def check_channel_request(self, kind, chanid):
        attack = self.machines.attack
        if attack and attack.kind == "channel refused" and self.machines.is_due("manner", self.number):
            self.machines.note("ATTACKED by refusing a channel")
            return paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        attack = self.machines.attack
        if attack and attack.kind == "command refused" and self.machines.is_due("manner", self.number):
            self.machines.note("ATTACKED by refusing a command")
            return False
        threading.Thread(target=self._execute, args=(channel, command), daemon=True).start()
        return True

    def _execute(self, channel: paramiko.Channel, command: bytes) -> None:
        line, given = command.decode("utf-8", "surrogateescape"), b""
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            if TENSORBOARD in line:
                self._serve_board(channel, line)
                return
            if " append " in line:
                self._take(channel, shlex.split(line)[-1])
                return
            while data := channel.recv(65536):
                given += data
            answer, manner = self.machines.changed(self.number, line, self.machines.answer(line, given))
            MANNERS[manner](channel, answer)

    def _take(self, channel: paramiko.Channel, path: str) -> None:
        """Take a file that is sent here, or attack whoever sends it."""
        machines, kind = self.machines, ""
        if machines.attack and machines.is_due("uploads", self.number):
            kind = machines.attack.kind
            machines.note(f"ATTACKED an upload by {kind}")
        if kind in UPLOAD_MANNERS:
            text = machines.attack.scene(machines.place, 1).text.encode("utf-8", "surrogatepass")
            MANNERS[UPLOAD_MANNERS[kind]](channel, Answer(b"", text, 1))
            return
        while data := channel.recv(BLOCK):
            machines.sent[path] += b"other" if kind == "other bytes" else data
            if kind == "slow":
                time.sleep(LATE_S)
        if kind == "half":
            machines.sent[path] = machines.sent[path][::2]
        end(channel, 1 if kind == "error" else 0)

    def _serve_board(self, channel: paramiko.Channel, line: str) -> None:
        answer, manner = self.machines.changed(self.number, line, Answer(b"ready\n"))
        if (answer, manner) != (Answer(b"ready\n"), "plain"):
            MANNERS[manner](channel, answer)
            return
        send_all(channel, answer.stdout)
        while channel.recv(65536):  # It ends with the connection.
            pass
        end(channel, 0)


def serve(machines: Machines, ready: int) -> None:
    """Listen, write the port to ``ready``, and answer until this process is killed; its own errors go to its log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.register(signal.SIGUSR1)
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    logging.getLogger("paramiko").propagate = False
    threading.excepthook = lambda failed: machines.note(f"thread: {failed.exc_type.__name__}: {failed.exc_value}")
    listening = _listening()
    os.write(ready, str(listening[0].getsockname()[1]).encode())
    os.close(ready)
    for number, one in enumerate(listening):
        threading.Thread(target=_accept, args=(machines, number, one), daemon=True).start()
    threading.Event().wait()


def _listening() -> list[socket.socket]:
    while True:
        first = socket.create_server((ADDRESSES[0], 0))
        try:
            return [first, socket.create_server((ADDRESSES[1], first.getsockname()[1]))]
        except OSError:
            first.close()


def _accept(machines: Machines, number: int, listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_welcome, args=(machines, number, connection), daemon=True).start()


def _welcome(machines: Machines, number: int, connection: socket.socket) -> None:
    attack, host_key = machines.attack, machines.host_key
    if (
        attack
        and attack.group == "login"
        and attack.kind not in ("refused", "banner text")
        and machines.is_due("login", number)
    ):
        machines.note(f"ATTACKED the login of gpu-{number} by {attack.kind}")
        if attack.kind == "other key":
            host_key = paramiko.Ed25519Key.from_private_key(io.StringIO(KeyPair.fresh().private))
        elif attack.kind != "disconnect text":
            with contextlib.suppress(OSError):
                _greet(attack.kind, connection)
            return
    transport = paramiko.Transport(connection)
    transport.add_server_key(host_key)
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        transport.start_server(server=Server(machines, number))
        if attack and attack.kind == "disconnect text" and attack.on in (None, number):
            message = paramiko.Message()
            message.add_byte(cMSG_DISCONNECT)
            message.add_int(2)
            message.add_string("\x1b]0;owned\x07\u202e" * 1000)
            message.add_string("en")
            transport._send_message(message)


def _greet(kind: str, connection: socket.socket) -> None:
    """Be no ssh server."""
    if kind == "no banner":
        time.sleep(600)
    if kind == "closed":
        connection.close()
        return
    if kind == "garbage":
        connection.sendall(b"SSH-2.0-x\r\n" + os.urandom(BLOCK))
        time.sleep(600)
    if kind == "long banner":
        connection.sendall(b"SSH-2.0-" + b"x" * 10**7 + b"\r\n")
        time.sleep(600)
    while True:
        if kind == "slow banner":
            connection.sendall(b"x")
            time.sleep(DRIP_S)
        else:
            connection.sendall(b"x" * BLOCK)
