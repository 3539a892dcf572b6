"""Start torchrun's agent of one node: the one place that knows what versions of PyTorch want differently.

From 2.0 on the agents meet over the backend c10d. It numbers the nodes by the text of their --local-addr, so that 10.0.0.10 would come
before 10.0.0.9 and rank 0, which saves, be on another machine than the first. Ranks connect to the address of the first node only (it
becomes MASTER_ADDR), so every other node gives a text that sorts behind it, in the order of the nodes. Before 2.0 there is no
--local-addr; there the rendezvous is static, which takes the node's number. The preflight compares where each rank is, whatever comes.
"""

import io
import os
import pickle
import re
from types import SimpleNamespace
from typing import Any, List, Tuple

JOIN_TIMEOUT_S = 120
LOCAL_ADDR_SINCE = (2, 0)
UNSHARED = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""Later versions share one store between the agents and the ranks, in which addresses of dead ranks stay; earlier ones ignore it."""
LIBUV = "USE_LIBUV"
# Of PyTorch's module of the rendezvous over c10d, and of Python's of dates: what the state of a meeting is made of.
STATE, DATES = ("_RendezvousState", "_NodeDesc"), ("datetime", "timezone", "timedelta")


def meeting(version: Tuple[int, ...], node: int, slots: int, endpoint: str) -> List[str]:
    """Return the options by which the agents of all nodes find each other and number their ranks; ``version`` is (major, minor)."""
    if version < LOCAL_ADDR_SINCE:
        # 1.13 on Python 3.11 does not take its own default, 0, for what is redirected; it takes a rank that is none.
        nothing = ["--redirects", "{}:1".format(slots), "--tee", "{}:1".format(slots)]
        static = ["--rdzv_backend", "static", "--rdzv_conf", "timeout={}".format(JOIN_TIMEOUT_S)]
        return static + ["--node_rank", str(node)] + nothing
    conf = "is_host={1:d},join_timeout={0},read_timeout={0}".format(JOIN_TIMEOUT_S, node == 0)
    name = endpoint.partition(":")[0] if node == 0 else "node-{:06d}".format(node)
    return ["--rdzv_backend", "c10d", "--rdzv_conf", conf, "--local_addr", name]


def spare_libuv(distributed: Any) -> None:
    """Let the store do without libuv where PyTorch was built without it, as Debian's is.

    Since 2.4 the agents ask for it, whatever USE_LIBUV says; the ranks obey the variable (pytorch issue 148283).
    """
    usual = distributed.TCPStore
    try:
        usual("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    except RuntimeError as error:
        if "libuv" not in str(error):
            raise
        os.environ[LIBUV] = "0"

        class Store(usual):
            def __init__(self, *words: Any, **options: Any) -> None:
                usual.__init__(self, *words, **dict(options, use_libuv=False))

        distributed.TCPStore = Store


def take_no_program(rendezvous: Any) -> None:
    """Let agents read no more from their store than the state of a meeting: it has no login, and a pickle is a program."""

    class State(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if name not in {rendezvous.__name__: STATE, "datetime": DATES}.get(module, ()):
                raise pickle.UnpicklingError(module + "." + name + " is no part of it")
            return pickle.Unpickler.find_class(self, module, name)

    taken = {"dumps": pickle.dumps, "loads": lambda given: State(io.BytesIO(given)).load()}
    rendezvous.pickle = SimpleNamespace(PickleError=pickle.PickleError, **taken)


def main(node: str, nodes: str, slots: str, endpoint: str, attempt: str, *command: str) -> int:
    """Be the agent of a node, which starts ``command`` as each of its ranks. Nothing is restarted: restarts hang."""
    import torch  # noqa: PLC0415 - not where ranks are started otherwise

    os.environ[UNSHARED] = "1"
    spare_libuv(torch.distributed)
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    words = ["--nnodes", nodes, "--nproc_per_node", slots, "--max_restarts", "0", "--no_python"]
    words += ["--rdzv_id", attempt, "--rdzv_endpoint", endpoint]
    from torch.distributed import run  # noqa: PLC0415 - it takes the store that it finds
    from torch.distributed.elastic.multiprocessing.api import SignalException  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: PLC0415
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous  # noqa: PLC0415

    take_no_program(dynamic_rendezvous)
    try:
        run.main(words + meeting(version, int(node), int(slots), endpoint) + list(command))
    except (ChildFailedError, SignalException):  # Their forty lines would hide what the rank itself has said last.
        return 1
    return 0
