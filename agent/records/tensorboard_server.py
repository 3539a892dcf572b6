"""Run TensorBoard as long as somebody reads it.

Arguments: the log folder, the port on the loopback, and the words of another TensorBoard than that of this Python. It says ``ready`` once the port answers, and ends with its standard
input: with the connection of the person who looks, however that ends.
"""

import socket
import subprocess
import sys
import threading
import time

READY_TIMEOUT_S = 120
LOOPBACK = "127.0.0.1"


def answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), 2).close()
        return True
    except OSError:
        return False


def ready(child: subprocess.Popen, port: int) -> bool:
    """Return whether the port answers before the server dies or the time is over."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while child.poll() is None and time.monotonic() < deadline:
        if answers(port):
            return True
        time.sleep(0.5)
    return False


def end_with_input(child: subprocess.Popen) -> None:
    while sys.stdin.buffer.read(4096):
        pass
    child.kill()


def main(logdir: str, port: str, *program: str) -> int:
    if answers(int(port)):
        print(
            "port " + port + " of the launcher is in use: another `fab tensorboard`, or a TensorBoard started by hand"
        )
        return 1
    words = list(program) or [sys.executable, "-m", "tensorboard.main"]
    words += ["--logdir", logdir, "--host", LOOPBACK, "--port", port]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())
    threading.Thread(target=end_with_input, args=(child,), daemon=True).start()
    try:
        if not ready(child, int(port)):
            print("TensorBoard did not answer; what it said stands above")
            return 1
        print("\nready")  # On a line of its own, whatever the server has written before it.
        sys.stdout.flush()
        child.wait()
        return 0
    finally:
        child.kill()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
