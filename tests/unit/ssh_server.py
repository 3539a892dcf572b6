"""An ssh server on loopback that runs what it is told in a shell of this computer, for tests of Host."""

import contextlib
import os
import signal
import socket
import subprocess
import threading

import paramiko


class Server(paramiko.ServerInterface):
    """Lets one public key in and remembers who tried."""

    def __init__(self, allowed: paramiko.PKey, tries: list[str]) -> None:
        self.allowed, self.tries = allowed, tries

    def get_allowed_auths(self, username):
        return "publickey,password"

    def check_auth_publickey(self, username, key):
        self.tries.append(f"{username} {key.get_fingerprint().hex()}")
        return paramiko.AUTH_SUCCESSFUL if key == self.allowed else paramiko.AUTH_FAILED

    def check_auth_password(self, username, password):
        self.tries.append(f"{username} password")
        return paramiko.AUTH_FAILED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        threading.Thread(target=execute, args=(channel, command), daemon=True).start()
        return True


def execute(channel: paramiko.Channel, command: bytes) -> None:
    """Run a line as sshd does: by a shell, fed from the channel."""
    given = b""
    while data := channel.recv(65536):
        given += data
    if command == b"no-exit-code":  # As when the machine goes down.
        channel.close()
        return
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(["sh", "-c", command], **streams, process_group=0) as child:
        sending = [(child.stdout, channel.sendall), (child.stderr, channel.sendall_stderr)]
        threads = [threading.Thread(target=hand_on, args=(child, *pair), daemon=True) for pair in sending]
        for thread in threads:
            thread.start()
        with contextlib.suppress(OSError):
            child.stdin.write(given)
            child.stdin.close()
        for thread in threads:
            thread.join()
    with contextlib.suppress(OSError, EOFError):
        channel.send_exit_status(child.returncode & 0xFF)
        channel.close()


def hand_on(child: subprocess.Popen, stream, send) -> None:
    """Send what a command prints as it comes; end the command when whoever asked has gone."""
    try:
        while data := stream.read1(1 << 15):
            send(data)
    except (OSError, EOFError):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


class SshServer:
    """Listens on a free port of loopback until it is closed."""

    def __init__(self, host_key: paramiko.PKey, allowed: paramiko.PKey) -> None:
        self.host_key, self.allowed = host_key, allowed
        self.tries: list[str] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.host_key)
            try:
                transport.start_server(server=Server(self.allowed, self.tries))
            except (OSError, EOFError, paramiko.SSHException):
                continue

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()
