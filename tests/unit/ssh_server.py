"""An ssh server on loopback that runs what it is told in a shell of this computer, for tests of Host."""

import contextlib
import functools
import os
import signal
import socket
import subprocess
import threading

import paramiko


class Server(paramiko.ServerInterface):
    """Lets one public key in and remembers who tried."""

    def __init__(self, allowed: paramiko.PKey, tries: list[str], run=None, banner: str = "") -> None:
        self.allowed, self.tries, self.run, self.banner = allowed, tries, run, banner
        self.forward, self.asked = None, []

    def get_banner(self):
        return (self.banner, "en") if self.banner else (None, None)

    def get_allowed_auths(self, username):
        return "publickey,password"

    def check_auth_publickey(self, username, key):
        self.tries.append(f"{username} {key.get_fingerprint().hex()}")
        return paramiko.AUTH_SUCCESSFUL if key == self.allowed else paramiko.AUTH_FAILED

    def check_auth_password(self, username, password):
        self.tries.append(f"{username} password")
        return paramiko.AUTH_FAILED

    def check_channel_direct_tcpip_request(self, chanid, origin, destination):
        if self.forward is None:
            return paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        threading.Thread(target=self.forward, args=(destination,), daemon=True).start()
        return paramiko.OPEN_SUCCEEDED

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel, command):
        self.asked.append(threading.Thread(target=self.run or execute, args=(channel, command), daemon=True))
        return True


class Transport(paramiko.Transport):
    """A connection that has answered the request for a command before the command begins."""

    def _send_user_message(self, data):
        super()._send_user_message(data)
        while threading.current_thread() is self and self.server_object and self.server_object.asked:
            self.server_object.asked.pop().start()


def execute(channel: paramiko.Channel, command: bytes) -> None:
    """Run a line as sshd does: by a shell, fed from the channel as it comes."""
    if command == b"no-exit-code":  # As when the machine goes down.
        channel.close()
        return
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(["sh", "-c", command], **streams, process_group=0) as child:
        sending = [(child.stdout, channel.sendall), (child.stderr, channel.sendall_stderr)]
        threads = [threading.Thread(target=hand_on, args=(child, *pair), daemon=True) for pair in sending]
        for thread in (*threads, threading.Thread(target=feed, args=(channel, child), daemon=True)):
            thread.start()
        for thread in threads:
            thread.join()
    with contextlib.suppress(OSError, EOFError):
        channel.send_exit_status(child.returncode & 0xFF)
        channel.close()


def feed(channel: paramiko.Channel, child: subprocess.Popen) -> None:
    """Give a command what comes for it."""
    with contextlib.suppress(OSError, EOFError):
        while data := channel.recv(1 << 16):
            child.stdin.write(data)
            child.stdin.flush()
    with contextlib.suppress(OSError):
        child.stdin.close()


def hand_on(child: subprocess.Popen, stream, send) -> None:
    """Send what a command prints as it comes; end the command when whoever asked has gone."""
    try:
        while data := stream.read1(1 << 15):
            send(data)
    except (OSError, EOFError):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def copy(source, target) -> None:
    """Send on what arrives until either side ends."""
    with contextlib.suppress(OSError, EOFError):
        while data := source.recv(1 << 15):
            target.sendall(data)


class SshServer:
    """Listens on a free port of loopback until it is closed."""

    def __init__(
        self, host_key: paramiko.PKey, allowed: paramiko.PKey, *, greet=None, is_jump=False, **options
    ) -> None:
        """Take options of Server; ``greet`` is called with each connection instead of any talk of ssh."""
        self.host_key, self.allowed, self.greet, self.options = host_key, allowed, greet, options
        self.is_jump, self.forwarded, self.logins = is_jump, 0, []
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
            if self.greet:
                threading.Thread(target=self._greet, args=(connection,), daemon=True).start()
                continue
            transport = Transport(connection)
            transport.add_server_key(self.host_key)
            self.logins.append(connection)
            server = Server(self.allowed, self.tries, **self.options)
            if self.is_jump:
                server.forward = functools.partial(self._forward, transport)
            try:
                transport.start_server(server=server)
            except (OSError, EOFError, paramiko.SSHException):
                continue

    def _greet(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self.greet(connection)

    def _forward(self, transport: paramiko.Transport, destination: tuple[str, int]) -> None:
        self.forwarded += 1
        with socket.create_connection(destination) as there, transport.accept() as here:
            threading.Thread(target=copy, args=(there, here), daemon=True).start()
            copy(here, there)

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()
