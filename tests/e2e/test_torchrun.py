"""Start of ranks by torchrun, in a container of the image with PyTorch; see test_gallery.py for whole runs."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from image_containers import container_of

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

AGENT = Path(__file__).parents[2] / "agent"
FOUR_NODES = """
for node in 0 1 2 3; do
    NODE=$node python /run/agent launch.torchrun $node 4 2 127.0.0.9:48123 once sh -c 'echo "$RANK of $NODE by $MASTER_ADDR"' &
done
wait
"""


@pytest.fixture(scope="module")
def container() -> Iterator[docker.models.containers.Container]:
    """A container that knows no other machine."""
    with container_of("microcluster/torch:current", [f"{AGENT}:/run/agent:ro"]) as started:
        yield started


def test_ranks_follow_the_order_of_four_nodes_from_the_first(container) -> None:
    _, said = container.exec_run(["sh", "-c", FOUR_NODES], stderr=False)
    assert sorted(said.decode().splitlines()) == [f"{rank} of {rank // 2} by 127.0.0.9" for rank in range(8)]


def test_what_a_rank_says_at_last_stands_last(container) -> None:
    once = "python /run/agent launch.torchrun 0 1 1 127.0.0.9:48123 once"
    failed = ["sh", "-c", f"{once} sh -c 'echo no such corpus >&2; exit 3'"]
    code, said = container.exec_run(failed, stdout=False)
    *_, own, of_torchrun = said.decode().splitlines()
    assert (code, own) == (1, "no such corpus")
    assert "exitcode: 3" in of_torchrun
