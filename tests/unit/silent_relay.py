"""A relay between a client and a server on loopback that can go silent, as a NAT does that forgets a connection."""

import contextlib
import socket
import threading


class SilentRelay:
    """Forwards both ways until ``silence`` is called; from then on it takes nothing, forwards nothing and closes nothing."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._left: float = float("inf")
        self._forwards = threading.Event()
        self._forwards.set()
        self._ends: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def silence(self, after_bytes: int = 0) -> None:
        """Forward nothing any more, or nothing beyond the next ``after_bytes``."""
        self._left = after_bytes
        if not after_bytes:
            self._forwards.clear()

    def close(self) -> None:
        """End every connection."""
        for one in (self._socket, *self._ends):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._forwards.set()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._left -= len(data)
                if self._left < 0:
                    self._forwards.clear()
                self._forwards.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
