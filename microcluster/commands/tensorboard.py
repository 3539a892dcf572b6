"""`fab tensorboard`: TensorBoard on the launcher, behind an ssh tunnel; it ends with the tunnel."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import agent
from microcluster.command_line.command import STACK, Option, StackName, command
from microcluster.core.plain_text import note, printable, say
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.host import Host
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.steps import open_hosts
from microcluster.run.cluster import find_cluster
from microcluster.setup.environment import fetched_folder
from microcluster.setup.errors import FAILED, CommandFailed, UserMistake

PORT = 6006
LOOPBACK = "127.0.0.1"
TOOL = "MICROCLUSTER_TOOL=tensorboard"
SERVER = Path(agent.__file__).with_name("records") / "tensorboard_server.py"
END_TIMEOUT_S = 15
LONGEST_LINE = 2000
USUAL = "usually 10 to 20 s"


@command
def tensorboard(stack: StackName = STACK, port: Annotated[str, Option("port on this computer")] = str(PORT)) -> int:
    """Show the run's curves in a browser on this computer, of what was fetched where nothing is rented; Ctrl-C ends TensorBoard and the tunnel."""
    local = free_port(port)
    cluster = find_cluster(stack)
    if cluster is None:
        argv, where, over = fetched_argv(stack, local), "this computer", "TensorBoard has ended."
    else:
        hosts = open_hosts(cluster)
        hosts[0].connect()  # Raises our own error for a wrong host key, where ssh would print its own.
        argv, where = tunnel_argv(hosts[0], hosts, cluster, local), hosts[0].facts.name
        over = "TensorBoard and its tunnel have ended; the job keeps running."
    note(f"starting TensorBoard on {where}, {USUAL} ...")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(argv, **pipes, text=True, errors="replace") as tunnel:
        try:
            return _serve(tunnel, f"http://{LOOPBACK}:{local}/", stack)
        except KeyboardInterrupt:
            say(f"\n{over}")
            return 0
        finally:
            _end(tunnel)


def tunnel_argv(launcher: Host, hosts: list[Host], cluster: ClusterFacts, local_port: int) -> tuple[str, ...]:
    """Return the argv of the one ssh connection that is the tunnel and keeps the server alive."""
    run = RunFolder(cluster)
    server = ("-c", SERVER.read_text(), f"{run.path}/logdir", str(PORT))
    if cluster.container:
        inside = ("docker", "exec", "-i", "-e", TOOL, cluster.container.name, "python", *server)
    else:
        inside = ("env", TOOL, f"{run.document.program.environment}/bin/python", *server)
    forward = f"{LOOPBACK}:{local_port}:{LOOPBACK}:{PORT}"
    options = ("-T", "-o", "ExitOnForwardFailure=yes", "-L", forward)
    return ssh_argv(launcher, hosts, inside, options)


def fetched_argv(stack: str, port: int) -> tuple[str, ...]:
    """Return the argv of a TensorBoard of this computer that reads what was fetched last of a stack."""
    logs = sorted(fetched_folder(stack, None, None).parent.glob("*/logdir"), key=lambda path: path.stat().st_mtime)
    if not logs:
        raise UserMistake(
            f"Stack {stack} is not up, and no curves of it were fetched. Bring it up: make up STACK={stack}; then: fab tensorboard "
            f"--stack {stack}"
        )
    program = shutil.which("tensorboard")
    if program is None:
        raise CommandFailed(
            f"showing {logs[-1]}, which was fetched of stack {stack}: nothing of the stack is rented, and this computer has no TensorBoard. "
            f"Install one (pipx install tensorboard), then: fab tensorboard --stack {stack}. Without it: fab report --stack {stack}"
        )
    note(f"nothing of stack {stack} is rented; showing {logs[-1]}, which was fetched")
    return sys.executable, str(SERVER), str(logs[-1]), str(port), program


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
    """Show what TensorBoard and ssh write until both have ended; a machine's text may have no line ends."""
    reason, is_ready, is_cut = "the connection was lost", False, False
    while line := tunnel.stdout.readline(LONGEST_LINE) if tunnel.stdout else "":
        if line == "ready\n" and not is_ready:
            is_ready = True
            say(
                f"TensorBoard: {address}  (only from this computer, for each of its users; Ctrl-C ends it, not the job)"
            )
        elif line.strip() and not is_cut:
            reason = line.strip()
            note(reason)
        is_cut = not line.endswith("\n")  # The rest of a long line is not shown.
    if not is_ready:
        raise CommandFailed(
            f"starting TensorBoard for stack {stack}: {printable(reason)}. Try again: fab tensorboard --stack {stack}"
        )
    note(f"TensorBoard has ended, or the connection to the launcher was lost. Again: fab tensorboard --stack {stack}")
    return FAILED


def _end(tunnel: subprocess.Popen[str]) -> None:
    if tunnel.stdin:
        tunnel.stdin.close()
    try:
        tunnel.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        tunnel.terminate()
