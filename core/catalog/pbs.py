"""What sites with a queue grant, as dated data for validation and offline previews; the live queue is asked before a submission.

Source of Seawulf's rows: the course's procedure for MXNet under PBS, and the queue's own `qstat -q` that it shows (8 GPU nodes with
4 Tesla K80 each and 28 processors; at most 2 nodes for a job).
"""

from collections.abc import Mapping
from dataclasses import dataclass

AS_OF = "2018-05"


@dataclass(frozen=True)
class SiteQueue:
    """One queue of a site: the longest walltime in seconds, nodes for one job, and processors of each node."""

    walltime_s: int
    nodes: int
    processors: int


SITES: Mapping[str, Mapping[str, SiteQueue]] = {
    "seawulf": {"gpu": SiteQueue(8 * 3600, 2, 28), "gpu-long": SiteQueue(48 * 3600, 2, 28)},
}
