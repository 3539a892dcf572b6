"""`fab tensorboard`: TensorBoard on the launcher, behind an ssh tunnel; it ends with the tunnel."""

import socket
import subprocess
import threading
from pathlib import Path

import agent
from core.plain_text import note, say
from microcluster.commands.command_line import FAILED, STACK, CommandFailed, UserMistake, command
from microcluster.commands.stack_outputs import cluster_of
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.own_program import ENVIRONMENT
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.host import Host
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.steps import open_hosts

PORT = 6006
LOOPBACK = "127.0.0.1"
TOOL = "MICROCLUSTER_TOOL=tensorboard"
SERVER = Path(agent.__file__).with_name("records") / "tensorboard_server.py"
END_TIMEOUT_S = 15
LONGEST_LINE = 10_000
USUAL = "usually 10 to 20 s"


@command
def tensorboard(stack: str = STACK, port: str = str(PORT)) -> int:
    """Show the run's curves in a browser on this computer; Ctrl-C ends TensorBoard and the tunnel."""
    local = free_port(port)
    cluster = cluster_of(stack)
    hosts = open_hosts(cluster)
    hosts[0].connect()  # Raises our own error for a wrong host key, where ssh would print its own.
    note(f"starting TensorBoard on {hosts[0].facts.name}, {USUAL} ...")
    argv = tunnel_argv(hosts[0], hosts, cluster, local)
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace") as tunnel:
        threading.Thread(target=_pass_on, args=(tunnel,), daemon=True).start()
        try:
            return _serve(tunnel, f"http://{LOOPBACK}:{local}/", stack)
        except KeyboardInterrupt:
            say("\nTensorBoard and its tunnel have ended; the job keeps running.")
            return 0
        finally:
            _end(tunnel)


def tunnel_argv(launcher: Host, hosts: list[Host], cluster: ClusterFacts, local_port: int) -> tuple[str, ...]:
    """Return the argv of the one ssh connection that is the tunnel and keeps the server alive."""
    folder = RunFolder(cluster).path
    server = ("-c", SERVER.read_text(), f"{folder}/logdir", str(PORT))
    if cluster.container:
        inside = ("docker", "exec", "-i", "-e", TOOL, cluster.container.name, "python", *server)
    else:
        inside = ("env", TOOL, f"{folder}/{ENVIRONMENT}/bin/python", *server)
    forward = f"{LOOPBACK}:{local_port}:{LOOPBACK}:{PORT}"
    options = ("-T", "-o", "ExitOnForwardFailure=yes", "-L", forward)
    return ssh_argv(launcher, hosts, inside, options)


def free_port(wanted: str) -> int:
    """Return the port if it is free on this computer's loopback."""
    if not wanted.isdecimal() or not 0 < int(wanted) < 65536:
        raise UserMistake(f"--port {wanted} is not a port; for example: fab tensorboard --port {PORT}")
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, int(wanted)))
        except OSError as error:
            raise UserMistake(
                f"Port {wanted} of this computer cannot be used ({error.strerror}). Choose another: fab tensorboard --port {int(wanted) + 1}"
            ) from error
    return int(wanted)


def _serve(tunnel: subprocess.Popen[str], address: str, stack: str) -> int:
    assert tunnel.stdout
    answer = tunnel.stdout.readline(LONGEST_LINE).strip()
    if answer != "ready":
        reason = answer or "the connection was lost"
        raise CommandFailed(
            f"starting TensorBoard for stack {stack}: {reason}. Try again: fab tensorboard --stack {stack}"
        )
    say(f"TensorBoard: {address}  (only from this computer, for each of its users; Ctrl-C ends it, not the job)")
    tunnel.wait()
    note(
        f"The connection to the launcher was lost, and TensorBoard ended with it. Again: fab tensorboard --stack {stack}"
    )
    return FAILED


def _pass_on(tunnel: subprocess.Popen[str]) -> None:
    """Show what TensorBoard and ssh write: a machine's text, which may hold control characters and no line ends."""
    assert tunnel.stderr
    while line := tunnel.stderr.readline(LONGEST_LINE):
        note(line.rstrip("\n"))


def _end(tunnel: subprocess.Popen[str]) -> None:
    assert tunnel.stdin
    tunnel.stdin.close()
    try:
        tunnel.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        tunnel.terminate()
