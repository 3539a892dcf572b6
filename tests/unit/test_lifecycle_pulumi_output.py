"""Which of Pulumi's lines a person gets to see, and in which words."""

import pytest
from microcluster.lifecycle.commands import View

WAITING = " +  softlayer:index:VirtualGuest cluster-gpu-{} creating ({}s) in transaction {}, {} s so far (this step usually takes 1 s)\n"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    "line",
    [
        "@ updating.....\n",
        "@ previewing update....\n",
        "    microcluster: [unknown]\n",
        " +  pulumi:pulumi:Stack microcluster-local creating (0s)\n",
        " +  microcluster:index:GpuNode cluster-gpu-0 created (3s) \n",
        " +  softlayer:index:SshKey cluster-key creating (0s) \n",
        " ~  softlayer:index:Ledger cluster-ledger refreshing (0s) \n",
        " ~  softlayer:index:VirtualGuest cluster-gpu-0-guest refresh (0.15s) \n",
        "    softlayer:index:SshKey cluster-key  \n",
        "    pulumi:pulumi:Stack microcluster-local  1 warning\n",
    ],
)
def test_lines_that_only_show_elapsed_time_are_left_out(line: str) -> None:
    assert View().shown(line) is None


def test_what_is_done_is_shown_by_name_with_its_time() -> None:
    shown = View().shown(
        " +  softlayer:index:VirtualGuest cluster-gpu-0-guest created (10s) in transaction X, 9 s so far\n"
    )
    assert shown is not None
    assert shown.split() == ["+", "cluster-gpu-0-guest", "created", "(10s)"]


@pytest.mark.parametrize("plan", ["create", "replace [diff: ~flavor]", "create replacement [diff: ~flavor]", "delete"])
def test_a_preview_shows_the_operation_on_each_resource(plan: str) -> None:
    shown = View().shown(f" +- softlayer:index:VirtualGuest cluster-gpu-0-guest {plan} \n")
    assert shown is not None
    assert shown.split() == ["+-", "cluster-gpu-0-guest", "VirtualGuest", *plan.split()]


def test_a_step_shows_what_it_is_doing() -> None:
    shown = View().shown(
        " +  command:local:Command cluster-gpu-1-prepared creating (1s) gpu-1: driver and container runtime ...\n"
    )
    assert shown is not None
    assert shown.strip().endswith("gpu-1: driver and container runtime ...")


def test_a_wait_is_shown_once_per_machine_and_again_every_half_minute() -> None:
    clock = Clock()
    view = View(clock)
    shown = []
    for clock.seconds in range(45):
        for node in (0, 1):
            line = WAITING.format(
                node, clock.seconds, ("POWER_ON", "SERVICE_SETUP")[int(clock.seconds) % 2], clock.seconds
            )
            shown += [(node, clock.seconds)] if view.shown(line) else []
    assert shown == [(0, 0), (1, 0), (0, 30), (1, 30)]


@pytest.mark.parametrize(
    "line",
    [
        "    error: the order was refused\n",
        "Resources:\n",
        "\n",
    ],
)
def test_everything_else_stays_as_it_is_however_often_it_comes(line: str) -> None:
    view = View()
    assert [view.shown(line) for _ in range(3)] == [line] * 3


def blocks(*lines: str) -> str:
    view = View()
    return "".join(view.shown(f"{line}\n") or "" for line in lines)


def test_a_diagnosis_is_shown_under_its_heading() -> None:
    lines = ("Diagnostics:", "  softlayer:index:Ledger (cluster-ledger):", "    error: wrong API key", "", "Resources:")
    assert blocks(*lines) == "\n".join(lines) + "\n"


def test_a_heading_with_nothing_to_tell_below_it_is_left_out() -> None:
    warning = (
        "    warning: resource plugin command is expected to have version >=1.2.1, but has 0.9.2; the wrong version may"
    )
    shown = blocks(
        "Diagnostics:", "  pulumi:pulumi:Stack (microcluster-local):", warning, "", "Resources:", "    + 23 created"
    )
    assert shown == "Resources:\n    + 23 created\n"


def test_the_ledgers_receipt_is_left_to_the_one_that_is_read_back_from_the_account() -> None:
    shown = blocks(
        "  softlayer:index:Ledger (cluster-ledger):",
        "    receipt:",
        "      gpu-0 4.50 USD",
        "    open: 0",
        "",
        "Resources:",
    )
    assert shown == "Resources:\n"


def test_an_error_after_a_silent_block_keeps_the_heading_of_the_diagnostics() -> None:
    warning = "    warning: resource plugin command is expected to have version >=1.2.1"
    shown = blocks(
        "Diagnostics:", "  pulumi:pulumi:Stack (a-b):", warning, "", "  softlayer:index:SshKey (key):", "    error: no"
    )
    assert shown == "Diagnostics:\n  softlayer:index:SshKey (key):\n    error: no\n"


def test_a_failure_is_shown_by_name_when_it_happens_and_its_reason_once_at_the_end() -> None:
    row, reason = " +  command:local:Command c-running", "Logging in to the registry on gpu-0: refused (Error: failed)."
    shown = blocks(
        f"{row} creating (1s) {reason}",
        f'{row} creating (1s) error: exit status 1: running "exec .venv/bin/fab step.start-container":',
        f'{row} **creating failed** error: exit status 1: running "exec .venv/bin/fab step.start-container":',
        " +  pulumi:pulumi:Stack microcluster-local creating (21s) error: update failed",
        " +  pulumi:pulumi:Stack microcluster-local **creating failed (21s)** 1 error; 1 warning",
        "Diagnostics:",
        "  command:local:Command (c-running):",
        '    error: exit status 1: running "exec .venv/bin/fab step.start-container":',
        "    gpu-0: training image ...",
        f"    {reason}",
        "",
        "  pulumi:pulumi:Stack (microcluster-local):",
        "    error: update failed",
        "",
        "Resources:",
    )
    assert shown.splitlines() == [
        f" +  {'c-running':<32} creating failed; the reason is at the end",
        "Diagnostics:",
        "  command:local:Command (c-running):",
        f"    {reason}",
        "",
        "Resources:",
    ]


def test_a_step_that_a_ctrl_c_ended_is_shown_in_words() -> None:
    killed = '    error: signal: killed: running "exec .venv/bin/fab step.start-container":'
    shown = View().shown(f"{killed}\n")
    assert shown == "    step.start-container was killed before it was done; repeat the command to continue\n"
