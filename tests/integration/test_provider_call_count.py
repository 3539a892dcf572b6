"""How many calls a machine costs, whatever the size of the cluster."""

from collections import Counter

import pytest

from tests.integration.lossy_wire import lossy_wire
from tests.integration.provider_cluster import Cluster
from tests.integration.provider_driver import Driver

CALLS_PER_MACHINE = 12
POLL = "getVirtualGuests"


def calls_of(emulator, folder, machines: int) -> Counter[str]:
    """Count the calls of a whole life of a cluster: made, read once, destroyed."""
    with lossy_wire(emulator.endpoint, {}) as wire:
        with Driver(wire.config(emulator.config_file, folder)) as driver:
            cluster = Cluster(driver, tuple(f"gpu-{rank}" for rank in range(machines)))
            for made in cluster.guests.values():
                driver.read(made)
            cluster.destroy()
        return Counter(wire.calls)


@pytest.mark.parametrize("many", [8])
def test_one_more_machine_costs_at_most_twelve_calls_from_its_order_to_its_proof(emulator_with, tmp_path, many):
    emulator = emulator_with(instance_limit=64)
    one, several = calls_of(emulator, tmp_path, 1), calls_of(emulator, tmp_path, many)
    polls = [counted.pop(POLL) for counted in (one, several)]
    slope = (several.total() - one.total()) / (many - 1)
    print(
        f"1 machine: {one.total()} calls; {many}: {several.total()}; each more: {slope:.1f}; polls {polls}; {several}"
    )
    assert slope <= CALLS_PER_MACHINE, several
    assert polls[1] < 5 * polls[0], "all machines share one poller: how often it asks depends on time alone"
