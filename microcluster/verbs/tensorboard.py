"""`fab tensorboard`: TensorBoard on the loopback of the launcher, seen through an ssh tunnel and gone with it."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import invoke

import agent
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.plain_text import note, say
from microcluster.remote.host import Host
from microcluster.remote.ssh_client import ssh_argv
from microcluster.remote.steps import open_hosts
from microcluster.verbs.command import FAILED, STACK, UserMistake, VerbError, verb
from microcluster.verbs.stack_outputs import cluster_of

PORT = 6006
LOOPBACK = "127.0.0.1"
SERVER = Path(agent.__file__).with_name("tensorboard_server.py")
END_TIMEOUT_S = 15
USUAL = "usually 10 to 20 s"


@verb
def tensorboard(context: invoke.Context, stack: str = STACK, port: str = str(PORT)) -> int:
    """Show the run's curves in a browser of this computer; Ctrl-C takes TensorBoard and tunnel away."""
    local = free_port(port)
    cluster = cluster_of(stack)
    hosts = open_hosts(cluster)
    hosts[0].connect()  # A host that shows another key, or none, is told in our own words.
    note(f"starting TensorBoard on {hosts[0].facts.name}, {USUAL} ...")
    argv = tunnel_argv(hosts[0], hosts, cluster, local)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as way:
        try:
            return _look(way, f"http://{LOOPBACK}:{local}/", stack)
        except KeyboardInterrupt:
            say("\nTensorBoard and its tunnel are gone; the job goes on.")
            return 0
        finally:
            _end(way)


def tunnel_argv(launcher: Host, hosts: list[Host], cluster: ClusterFacts, local_port: int) -> tuple[str, ...]:
    """Return the words of the one ssh connection that carries both the tunnel and the server's life."""
    cluster.require("run", "container")
    assert cluster.container
    logdir = f"{RunFolder(cluster).path}/logdir"
    server = ("python", "-c", SERVER.read_text(), logdir, str(PORT))
    inside = ("docker", "exec", "-i", "-e", "MICROCLUSTER_TOOL=tensorboard", cluster.container.name, *server)
    forward = f"{LOOPBACK}:{local_port}:{LOOPBACK}:{PORT}"
    options = ("-T", "-o", "ExitOnForwardFailure=yes", "-L", forward)
    return ssh_argv(launcher, hosts, inside, options)


def free_port(wanted: str) -> int:
    """Return the port if it is free on this computer's loopback."""
    if not wanted.isdecimal() or not 0 < int(wanted) < 65536:
        raise UserMistake(f"--port {wanted} is no port; for example: fab tensorboard --port {PORT}")
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, int(wanted)))
        except OSError as error:
            raise UserMistake(
                f"Port {wanted} of this computer cannot be used ({error.strerror}). Choose another: fab tensorboard --port {int(wanted) + 1}"
            ) from error
    return int(wanted)


def _look(way: subprocess.Popen[str], address: str, stack: str) -> int:
    assert way.stdout
    said = way.stdout.readline().strip()
    if said != "ready":
        reason = said or "the connection was lost"
        raise VerbError(f"starting TensorBoard for stack {stack}: {reason}. Try again: fab tensorboard --stack {stack}")
    say(f"TensorBoard: {address}  (only from this computer; Ctrl-C ends it, the job goes on)")
    way.wait()
    note(
        f"The connection to the launcher was lost, and TensorBoard ended with it. Again: fab tensorboard --stack {stack}"
    )
    return FAILED


def _end(way: subprocess.Popen[str]) -> None:
    assert way.stdin
    way.stdin.close()
    try:
        way.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        way.terminate()
