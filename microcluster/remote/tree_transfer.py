"""Sends a folder's tree to a host: what is missing there, as one stream; what is no longer in the tree is removed."""

from microcluster.jobs.folder_tree import FolderTree
from microcluster.remote.host import Host


def send_tree(host: Host, tree: FolderTree, target: str) -> bool:
    """Make ``target`` on the host an exact copy of the tree; return whether that was needed.

    Raises:
        RemoteError: a file has changed since it was read, or did not arrive.
    """
    raise NotImplementedError(f"{host} {tree} {target}")
