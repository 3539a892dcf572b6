"""`fab trust`: pin the host key that a machine shows, after a person has confirmed it."""

from microcluster.command_line.command import STACK, Node, StackName, Yes, command
from microcluster.command_line.parts import agrees
from microcluster.core.plain_text import note, say
from microcluster.remote.host import Host
from microcluster.remote.host_key import fingerprint
from microcluster.remote.host_key import trust as record
from microcluster.run.cluster import cluster_of, host_named
from microcluster.setup.errors import FAILED


@command
def trust(node: Node, stack: StackName = STACK, yes: Yes = False) -> int:
    """Pin the host key that NODE shows now instead of the one it was ordered with."""
    return confirm(host_named(cluster_of(stack), node), yes=yes)


def confirm(host: Host, *, yes: bool) -> int:
    """Record the shown key once the person confirms it; the machine's console shows the right one."""
    shown = host.shown_key()
    if shown == host.pinned_key:
        say(f"{host} shows the host key that is pinned already: {fingerprint(shown)}")
        return 0
    say(f"{host}\n  shows         {fingerprint(shown)}\n  ordered with  {fingerprint(host.facts.host_key)}")
    if not yes and not agrees("Is the shown key this machine's own?"):
        note(f"Nothing was recorded. To skip this question: fab trust {host.facts.name} --yes")
        return FAILED
    record(host.key_file, host.facts.guest_id, shown)
    say(f"recorded for guest {host.facts.guest_id}. Go on with the command that was refused.")
    return 0
