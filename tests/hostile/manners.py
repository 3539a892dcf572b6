"""The ways in which an answer is sent, most of them without an end."""

import os
import time
from collections.abc import Callable

import paramiko
from paramiko.common import cMSG_CHANNEL_REQUEST

from tests.hostile.truth import Answer

BLOCK = 1 << 15
DRIP_S, LATE_S = 0.2, 20.0
BIG = 300 * 10**6


def end(channel: paramiko.Channel, code: int) -> None:
    """Send the exit code and the end."""
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("exit-status")
    message.add_boolean(False)
    message.add_int(code & 0xFFFFFFFF)
    channel.transport._send_user_message(message)
    channel.close()


def send_all(channel: paramiko.Channel, content: bytes) -> None:
    """Send all of it in pieces: paramiko copies all that is left at each one."""
    for at in range(0, len(content), BLOCK):
        channel.sendall(content[at : at + BLOCK])


def _plain(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout)
    for at in range(0, len(answer.stderr), BLOCK):
        channel.sendall_stderr(answer.stderr[at : at + BLOCK])
    end(channel, answer.code)


def _endless(out: bytes, errors: bytes = b"", first: bytes = b"") -> Callable[[paramiko.Channel, Answer], None]:
    def send(channel: paramiko.Channel, answer: Answer) -> None:
        channel.sendall(first)
        while True:
            channel.sendall(out)
            channel.sendall_stderr(errors)

    return send


def _slowly(each: int, pause_s: float) -> Callable[[paramiko.Channel, Answer], None]:
    def send(channel: paramiko.Channel, answer: Answer) -> None:
        whole = answer.stdout or b"x" * 1000
        for at in range(0, len(whole), each):
            channel.sendall(whole[at : at + each])
            time.sleep(pause_s)
        end(channel, answer.code)

    return send


def _silent(channel: paramiko.Channel, answer: Answer) -> None:
    while not channel.closed:
        time.sleep(0.2)


def _late(channel: paramiko.Channel, answer: Answer) -> None:
    time.sleep(LATE_S)
    _plain(channel, answer)


def _more_after_code(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout)
    channel.send_exit_status(answer.code)
    while True:
        channel.sendall(b"more\n" * 1000)


def _without_code(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout)
    channel.close()


def _signalled(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout)
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("exit-signal")
    message.add_boolean(False)
    message.add_string("KILL\x1b[2J")
    message.add_boolean(True)
    message.add_string("\x1b]0;owned\x07" * 1000)
    message.add_string("")
    channel.transport._send_user_message(message)
    channel.close()


def _cut(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout[: len(answer.stdout) // 2])
    channel.transport.close()


def _big(channel: paramiko.Channel, answer: Answer) -> None:
    for _ in range(BIG // BLOCK):
        channel.sendall(b"x" * BLOCK)
    end(channel, 0)


def _garbage(channel: paramiko.Channel, answer: Answer) -> None:
    channel.sendall(answer.stdout[:100])
    channel.transport.sock.sendall(os.urandom(BLOCK))


def _endless_after(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout)
    while True:
        channel.sendall(b"\n" * BLOCK)


def _rows(channel: paramiko.Channel, answer: Answer) -> None:
    send_all(channel, answer.stdout)
    row = (answer.stdout.splitlines() or [b"row"])[-1] + b"\n"
    while True:
        channel.sendall(row * 100)


def _ignored(channel: paramiko.Channel, answer: Answer) -> None:
    while not channel.closed and channel.transport.is_active():
        channel.transport.send_ignore(1000)
        time.sleep(0.001)


MANNERS: dict[str, Callable[[paramiko.Channel, Answer], None]] = {
    "plain": _plain,
    "endless output": _endless(b"a line of a log\n" * (BLOCK // 16)),
    "endless line": _endless(b"x" * BLOCK),
    "endless errors": _endless(b"", b"no, no\n" * (BLOCK // 7)),
    "endless both": _endless(b"x" * BLOCK, b"\x1b[" * (BLOCK // 2)),
    "endless list": _endless(b"[" * BLOCK, first=b'{"exists": true, "files": '),
    "slow drip": _slowly(1, DRIP_S),
    "slow whole": _slowly(100, 0.5),
    "silence": _silent,
    "late": _late,
    "more after exit code": _more_after_code,
    "no exit code": _without_code,
    "signal": _signalled,
    "closed in the middle": _cut,
    "channel refused": _plain,
    "command refused": _plain,
    "big": _big,
    "garbage": _garbage,
    "endless after answer": _endless_after,
    "endless rows": _rows,
    "flood of windows": _ignored,
}
