"""The preflight for a person: one line when all is well, and never a row hidden that warns or stops."""

import pytest
from command_samples import CLUSTER, COST, RUNNING
from fake_machine import FakeMachine

from microcluster.commands import status as shown
from microcluster.display import preflight_table
from microcluster.run import status

NODES = [f"gpu-{number}" for number in range(8)]


def check(what, where, found="as wanted", verdict="ok"):
    return {"check": what, "where": where, "found": found, "wanted": "x", "verdict": verdict}


GOOD = [check("ssh", "every pair"), *(check("port", node) for node in NODES)]
SLOW = check("bandwidth", "gpu-0 to gpu-1", "94 Mb/s", "stop")


def test_rows_that_warn_or_stop_are_always_shown():
    said = preflight_table.summary([*GOOD, SLOW, check("clock", "gpu-3", "+4.0 s", "note")], "p100")
    head, _, *rows = said.splitlines()
    assert head == "preflight: 11 checks, 9 as ordered; all of them: fab status --preflight --stack p100"
    assert [row.split()[0] for row in rows] == ["STOP", "NOTE"]
    assert preflight_table.summary(GOOD, "local") == "preflight: 9 checks, all as ordered"


def test_equal_rows_of_many_nodes_are_one_row_and_others_stay():
    rows = preflight_table.rows([*GOOD, *(check("disk", node, f"{n % 2} GB") for n, node in enumerate(NODES[:4]))])
    assert [row[1:4] for row in rows] == [
        ("ssh", "every pair", "as wanted"),
        ("port", "gpu-0 .. gpu-7", "as wanted"),
        ("disk", "gpu-0, gpu-2", "0 GB"),
        ("disk", "gpu-1, gpu-3", "1 GB"),
    ]
    rows = preflight_table.rows([check("port", "gpu-0"), check("port", "gpu-1", verdict="stop")])
    assert [row[0] for row in rows] == ["ok", "STOP"]


@pytest.mark.parametrize("asked", [True, False])
def test_status_shows_every_check_to_who_asks_for_it(asked, monkeypatch, capsys):
    monkeypatch.setattr(status, "find_cluster", lambda stack: CLUSTER)
    monkeypatch.setattr(shown, "cost_of", lambda cluster: COST)
    monkeypatch.setattr(status, "launcher_of", lambda cluster: FakeMachine())
    outcome = status.Outcome(**{**vars(RUNNING), "checks": tuple(GOOD)})
    monkeypatch.setattr(status.job, "observe", lambda launcher, cluster: outcome)
    shown.status.code(preflight=asked)
    assert ("gpu-0 .. gpu-7" in capsys.readouterr().out) is asked
