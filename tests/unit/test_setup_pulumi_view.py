"""Which of Pulumi's lines a person gets to see."""

from __future__ import annotations

from setup.pulumi_view import Quiet

WAITING = " +  softlayer:index:VirtualGuest cluster-gpu-{} creating ({}s) in transaction POWER_ON, {} s so far (usually about 81 s)\n"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_lines_of_dots_are_left_out_and_everything_else_stays() -> None:
    view = Quiet()
    assert not view.shows("@ updating.....\n")
    assert not view.shows("\x1b[38;5;13m@ destroying.\x1b[0m\n")
    assert view.shows(" +  pulumi:pulumi:Stack microcluster-local creating (0s)\n")
    assert view.shows("\n") and view.shows("Resources:\n")


def test_a_resource_that_is_as_it_was_is_left_to_the_count_at_the_end() -> None:
    view = Quiet()
    assert not view.shows(" ~  softlayer:index:Ledger cluster-ledger refreshing (0s) \n")
    assert not view.shows(" ~  softlayer:index:VirtualGuest cluster-gpu-0-guest refresh (0.15s) \n")
    assert not view.shows("    softlayer:index:SshKey cluster-key  \n")
    assert view.shows("  softlayer:index:SshKey (cluster-key):\n")
    assert view.shows(" ~  softlayer:index:VirtualGuest cluster-gpu-0-guest updating (0s) \n")
    assert view.shows(" ~  softlayer:index:Ledger cluster-ledger refresh (0.06s) error: wrong API key\n")


def test_a_wait_is_said_once_per_machine_and_transaction_and_again_every_half_minute() -> None:
    clock = Clock()
    view = Quiet(clock)
    shown = []
    for clock.seconds in range(45):
        shown += [
            (node, clock.seconds) for node in (0, 1) if view.shows(WAITING.format(node, clock.seconds, clock.seconds))
        ]
    assert shown == [(0, 0), (1, 0), (0, 30), (1, 30)]


def test_an_error_is_shown_however_often_it_comes() -> None:
    view = Quiet()
    assert all(view.shows("    error: the order was refused\n") for _ in range(3))
