"""Pulumi's events as a person sees them."""

import json
from typing import Any

import pytest

from microcluster.lifecycle.pulumi import View

URN = "urn:pulumi:local::microcluster::microcluster:index:Cluster${}::{}"
GUEST, COMMAND, STACK = "softlayer:index:VirtualGuest", "command:local:Command", "pulumi:pulumi:Stack"
SUMMARY = {"summaryEvent": {"resourceChanges": {"create": 23, "same": 5}, "isPreview": False}}


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def change(event: str, op: str, kind: str = GUEST, name: str = "gpu-0", **more: Any) -> dict[str, Any]:
    planning = more.pop("planning", False)
    return {event: {"metadata": {"op": op, "urn": URN.format(kind, name), "type": kind, **more}, "planning": planning}}


def message(
    text: str, severity: str = "info", kind: str = COMMAND, name: str = "c-running", **more: Any
) -> dict[str, Any]:
    prefix = f"{severity}: " if severity in ("error", "warning") else ""
    return {
        "diagnosticEvent": {"urn": URN.format(kind, name), "prefix": prefix, "message": text, "severity": severity}
        | more
    }


def shown(*events: dict[str, Any], view: View | None = None) -> list[str]:
    view = view or View()
    return [text for event in events for text in view.lines(json.dumps(event))]


def at_end(*events: dict[str, Any]) -> list[str]:
    view = View()
    shown(*events, view=view)
    return view.end()


@pytest.mark.parametrize(
    "event",
    [
        change("resourcePreEvent", "create"),
        change("resourcePreEvent", "create", STACK, planning=True),
        change("resOutputsEvent", "same"),
        change("resOutputsEvent", "refresh"),
        change("resOutputsEvent", "create", "microcluster:index:GpuNode"),
        message("registering resource", "debug"),
        {"cancelEvent": {}},
    ],
)
def test_what_tells_a_person_nothing_is_left_out(event: dict[str, Any]) -> None:
    assert shown(event) == []


def test_what_is_done_is_shown_by_name_with_its_time() -> None:
    clock = Clock()
    view = View(clock)
    shown(change("resourcePreEvent", "create"), view=view)
    clock.seconds = 70
    [line] = shown(change("resOutputsEvent", "create"), view=view)
    assert line.split() == ["+", "gpu-0", "created", "(1", "min", "10", "s)"]


@pytest.mark.parametrize(
    ("op", "words"), [("create", "+ create"), ("create-replacement", "++ create replacement"), ("delete", "- delete")]
)
def test_a_preview_shows_the_operation_on_each_resource(op: str, words: str) -> None:
    [line] = shown(change("resourcePreEvent", op, planning=True, diffs=["flavor"]))
    sign, _, word = words.partition(" ")
    assert line.split() == [sign, "gpu-0", "VirtualGuest", *word.split(), "[diff:", "flavor]"]


def test_a_preview_shows_the_parts_of_a_node() -> None:
    [line] = shown(change("resourcePreEvent", "create", "microcluster:index:SanVolume", "data", planning=True))
    assert line.split() == ["+", "data", "SanVolume", "create"]


def test_a_preview_ends_with_its_outputs_without_the_one_for_the_commands() -> None:
    outputs = {"new": {"outputs": {"run": "fbcd", "microcluster": "{}"}}}
    summary = {"summaryEvent": {"resourceChanges": {"create": 25}, "isPreview": True}}
    lines = at_end(change("resOutputsEvent", "create", STACK, planning=True, **outputs), summary)
    assert lines == ["Outputs:", "    run         : fbcd", "", "Resources:", "    + 25 to create", ""]
    assert at_end(SUMMARY) == ["Resources:", "    + 23 created", "    5 unchanged", ""], "of an update"


def test_a_step_shows_what_it_is_doing() -> None:
    [line] = shown(message("gpu-1: driver and container runtime ...\n", ephemeral=True))
    assert line.split()[0] == "c-running" and line.endswith("gpu-1: driver and container runtime ...")


def test_a_wait_is_shown_once_per_machine_and_again_every_half_minute() -> None:
    clock = Clock()
    view = View(clock)
    found = []
    for clock.seconds in range(45):
        for node in (0, 1):
            state = ("POWER_ON", "SERVICE_SETUP")[int(clock.seconds) % 2]
            text = f"in transaction {state}, {clock.seconds} s so far (this step usually takes 1 s)"
            found += [(node, clock.seconds) for _ in shown(message(text, kind=GUEST, name=f"gpu-{node}"), view=view)]
    assert found == [(0, 0), (1, 0), (0, 30), (1, 30)]


@pytest.mark.parametrize("line", ["error: no stack named 'x'", "[7]", '{"diagnosticEvent": {}}'])
def test_an_unknown_line_is_shown_unchanged_however_often_it_comes(line: str) -> None:
    view = View()
    assert [*view.lines(f"{line}\n"), *view.lines(f"{line}\n")] == [line] * 2


def test_messages_are_repeated_at_the_end_by_resource_without_progress() -> None:
    events = (message("waiting", ephemeral=True), message("careful", "warning", GUEST, "gpu-0"))
    assert at_end(*events) == ["Diagnostics:", f"  {GUEST} (gpu-0):", "    warning: careful", ""]


def test_a_heading_with_nothing_to_tell_below_it_is_left_out() -> None:
    text = "resource plugin command is expected to have version >=1.2.1, but has 0.9.2; the wrong version may"
    assert at_end(message(text, "warning")) == []


def test_the_ledgers_receipt_is_hidden_as_the_accounts_own_follows() -> None:
    receipt = message("receipt:\n  gpu-0 4.50 USD\nopen: 0", kind="softlayer:index:Ledger", name="cluster-ledger")
    assert shown(receipt) == [] and at_end(receipt) == []


def test_a_failure_is_named_at_once_and_explained_once_at_the_end() -> None:
    reason = "Logging in to the registry on gpu-0: refused (Error: failed)."
    output = (
        f'exit status 1: running "exec .venv/bin/fab step.start-container":\ngpu-0: training image ...\n{reason}\n\n'
    )
    events = (
        message(f"{reason}\n", ephemeral=True),
        message(output, "error"),
        change("resOpFailedEvent", "create", COMMAND, "c-running"),
        {"diagnosticEvent": {"prefix": "error: ", "message": "update failed\n", "severity": "error"}},
    )
    assert shown(*events) == [f" +  {'c-running':<32} create failed; the reason is at the end"]
    assert at_end(*events) == ["Diagnostics:", f"  {COMMAND} (c-running):", f"    {reason}", ""]


def test_a_step_that_a_ctrl_c_ended_is_shown_in_words() -> None:
    killed = message('signal: killed: running "exec .venv/bin/fab step.start-container":\n', "error")
    assert "    step.start-container was killed before it was done; repeat the command to continue" in at_end(killed)
