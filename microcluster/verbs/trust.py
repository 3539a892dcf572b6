"""`fab trust`: pin the host key that a machine shows, on the word of a person who knows that it is right."""

from __future__ import annotations

import invoke

from microcluster.plain_text import note, say
from microcluster.remote.host import Host
from microcluster.remote.host_key import fingerprint
from microcluster.remote.trust import trust as record
from microcluster.verbs.command import FAILED, STACK, agrees, verb
from microcluster.verbs.stack_outputs import cluster_of, host_named


@verb
def trust(context: invoke.Context, node: str, stack: str = STACK, yes: bool = False) -> int:
    """Pin the host key that NODE shows now instead of the one it was ordered with."""
    return vouch(host_named(cluster_of(stack), node), yes=yes)


def vouch(host: Host, *, yes: bool) -> int:
    """Record the shown key once the person agrees; compare it with the machine's own before, by its console."""
    shown = host.shown_key()
    if shown == host.pinned_key:
        say(f"{host} shows the host key that is pinned already: {fingerprint(shown)}")
        return 0
    say(f"{host}\n  shows         {fingerprint(shown)}\n  ordered with  {fingerprint(host.facts.host_key)}")
    if not yes and not agrees("Is the shown key this machine's own?"):
        note(f"Nothing was recorded. To record it without being asked: fab trust {host.facts.name} --yes")
        return FAILED
    record(host, shown)
    say(f"recorded for guest {host.facts.guest_id}. Go on with the command that was refused.")
    return 0
