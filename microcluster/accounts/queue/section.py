"""A site with a queue: nodes that it grants for a time, to a person's own account on its login host; nothing is sold."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from microcluster.accounts.shared.cluster_section import (
    AccountFacts,
    ClusterSection,
    Hardware,
    KeySetting,
    Nodes,
    choice,
)
from microcluster.core.plain_text import shown
from microcluster.jobs.cluster_facts import Queue
from microcluster.jobs.job_section import matching

AS_OF = "2018-05"
WALLTIME = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)")
OCTET = r"(25[0-5]|2[0-4]\d|1?\d?\d)"
CARD = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,14}}|({OCTET}\.){{3}}{OCTET}/([12]?\d|3[0-2])")
SHORTEST_S = 120
"""A run needs a minute to start, and the last one to end in order."""


@dataclass(frozen=True)
class SiteQueue:
    """One queue of a site: the longest walltime in seconds, nodes for one job, and processors of each node."""

    walltime_s: int
    nodes: int
    processors: int


SITES: Mapping[str, Mapping[str, SiteQueue]] = {
    # The course's procedure for MXNet under PBS, and the queue's own `qstat -q` that it shows: 8 nodes with 4 Tesla K80 each.
    "seawulf": {"gpu": SiteQueue(8 * 3600, 2, 28), "gpu-long": SiteQueue(48 * 3600, 2, 28)},
}
"""Limits of known sites' queues, for validation and offline previews; the live queue is asked before a submission."""


def seconds_of(walltime: str) -> int:
    """Return the seconds of HH:MM:SS."""
    hours, minutes, seconds = map(int, WALLTIME.fullmatch(walltime).groups())
    return hours * 3600 + minutes * 60 + seconds


def _walltime(value: str) -> str:
    if not WALLTIME.fullmatch(value):
        raise ValueError(f"{shown(value)} is not HH:MM:SS; in quotes, for example '02:00:00'")
    if seconds_of(value) < SHORTEST_S:
        raise ValueError(f"{shown(value)} is too short to start and to end a run; at least 00:02:00")
    return value


Word = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,30}$")]
Module = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+-]{0,80}$")]


class Cluster(ClusterSection):
    """A request to a queue, and the run's folder. The catalog knows no GPU of a site, and a queue sells nothing."""

    account: Literal["queue"]
    queue: Annotated[Word, Field(description="a queue of the site; `qstat -q` lists them", examples=["gpu"])]
    walltime: Annotated[
        StrictStr,
        AfterValidator(_walltime),
        Field(description="`HH:MM:SS`, in quotes; at least two minutes", examples=["'02:00:00'"]),
    ]
    folder: Annotated[
        StrictStr,
        Field(
            pattern=r"^(/[A-Za-z0-9][A-Za-z0-9._-]*){2,12}$",
            description="absolute path that the login host and all nodes see, for runs and their checkpoints",
            examples=["/home/me/microcluster"],
        ),
    ]
    site: choice("a site in the catalog", SITES, ": its limits are known before the login host is asked") | None = None
    nodes: Nodes = 2
    processors: Annotated[StrictInt, Field(ge=1, le=512, description="of each node, `ppn`")]
    slots: Annotated[StrictInt, Field(ge=1, le=64, description="ranks or workers on each node")] = 1
    modules: Annotated[
        tuple[Module, ...],
        Field(max_length=30, description="environment modules, loaded on the login host and in the job"),
    ] = ()
    interface: Annotated[
        StrictStr,
        matching(CARD, "a network card or an IPv4 network; for example ib0 or 10.10.0.0/16"),
        Field(description="network card between the nodes; where its name differs, the network: `10.10.0.0/16`"),
    ] = "eth0"

    @property
    def hardware(self) -> Hardware:
        """The size of each node; its GPUs are the program's own matter."""
        return Hardware(self.queue, "", self.slots)

    @classmethod
    def problems(cls, written: Mapping[str, Any], *, ordering: bool) -> list[str]:
        """Refuse what the site's queues can never run."""
        queues = SITES.get(str(written.get("site")))
        if not queues:
            return []
        name, walltime = str(written.get("queue")), str(written.get("walltime"))
        queue = queues.get(name)
        if queue is None:
            return [f"cluster/queue: {shown(name)} is no queue of {written['site']}; one of {', '.join(queues)}"]
        source = f"of queue {name} ({written['site']}, {AS_OF}); such a job would wait for ever"
        found_problems = []
        for key, most in (("nodes", queue.nodes), ("processors", queue.processors)):
            asked = written.get(key, 2)
            if isinstance(asked, int) and asked > most:
                found_problems.append(f"cluster/{key}: {asked} is over the limit of {most} {source}")
        if WALLTIME.fullmatch(walltime) and seconds_of(walltime) > queue.walltime_s:
            found_problems.append(
                f"cluster/walltime: {walltime} is over the limit of {queue.walltime_s // 3600} h {source}"
            )
        return found_problems

    @property
    def counted(self) -> str:
        """Unit that counts instead of money."""
        most = f"at most {self.nodes} x {self.walltime} for each submission"
        return f"a queue sells nothing; the receipt counts node hours, {most}"

    def facts(self) -> Mapping[str, Any]:
        """Return the request to the queue, and the run's folder, as facts for the steps."""
        walltime_s, modules = seconds_of(self.walltime), tuple(self.modules)
        queue = Queue(self.queue, self.nodes, self.processors, walltime_s, modules)
        return {"mount_point": self.folder, "interface": self.interface, "queue": queue}


ACCOUNT = AccountFacts(
    title="queue",
    section=Cluster,
    runtime="host",
    key=KeySetting(
        name="sshConfig",
        default="required",
        meaning="`FILE ALIAS`: OpenSSH configuration, and the login host in it; without an alias its first `Host` that is no jump host",
        mistaken=("user", "password", "key", "privateKey", "passphrase"),
        advice="Name user and key in an OpenSSH configuration, and that file in queue:sshConfig",
    ),
    machine_type="queue:index:Job",
    attached_kinds=("job",),
    emulated_by=("queue",),
    prices_as_of=AS_OF,
    order_takes="as long as the queue is",
    cancel_takes="30 s",
    sells=False,
)
