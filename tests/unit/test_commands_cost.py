"""What a living stack costs, and where that is read."""

import dataclasses
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from command_samples import CLUSTER, COST, EmptyAccount

from microcluster.accounts.shared.account import Resource
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.config.stack import StackKeys
from microcluster.core import home as marks
from microcluster.jobs.cluster_facts import ClusterFactsError
from microcluster.planning.run_cost import Cost
from microcluster.rental import account as rental_account
from microcluster.run import cluster as run_cluster
from microcluster.setup.errors import CommandFailed, UserMistake


class Failing(EmptyAccount):
    """An account whose API fails once it is open; ``listed`` are the charges that its lists show all the same."""

    def __init__(self, listed=None):
        self.listed = listed

    def charges(self, owner, known=(), *, exact=True):
        if exact or self.listed is None:
            raise ApiError("calling Account::getAllTopLevelBillingItems", "500", "a bad day")
        return self.listed


def opened(listed=None):
    return OpenedAccount(Failing(listed))


def cost_in(monkeypatch, account):
    monkeypatch.setattr(run_cluster, "account_of", lambda cluster: account)
    return run_cluster.cost_of(CLUSTER)


def test_a_bill_that_cannot_be_read_is_a_sentence_and_does_not_end_the_watching(monkeypatch, capsys):
    with pytest.raises(AccountError, match="reading the bill at https://api.test as somebody: a bad day"):
        opened().charges(marks.Owner("local", "1f3a9c42"))
    assert cost_in(monkeypatch, opened()) == Cost(None, None)
    assert "a bad day" in capsys.readouterr().err


def test_a_stack_file_that_is_broken_meanwhile_leaves_the_price_unknown_and_says_why(monkeypatch, capsys):
    def broken(stack, settings):
        raise rental_account.config.ConfigError("there is no stack file of v100")

    monkeypatch.setattr(rental_account, "account_and_owner", broken)
    assert rental_account.cost_of_stack("v100") == Cost(None, None)
    assert "There is no stack file of v100" in capsys.readouterr().err


def test_the_cost_of_a_stack_is_read_from_the_account_in_which_it_was_ordered(monkeypatch, tmp_path):
    key = tmp_path / "key"
    key.touch()
    there, asked = dataclasses.replace(CLUSTER, account_config_file=str(key)), []
    for module in (run_cluster, rental_account):
        monkeypatch.setattr(module, "open_account", lambda name, file: asked.append((name, file)) or opened())
    monkeypatch.setattr(rental_account, "find_cluster", lambda stack: there)
    run_cluster.cost_of(there)
    assert rental_account.account_and_owner("local")[1] == marks.Owner("local", there.mark)
    assert asked == [("softlayer", str(key))] * 2


@pytest.mark.parametrize("lost", [CommandFailed("no state"), ClusterFactsError("an older cluster"), None])
def test_a_receipt_needs_no_state_but_the_stack_file_and_its_key(monkeypatch, lost):
    def find(stack):
        if lost:
            raise lost

    asked = []
    monkeypatch.setattr(rental_account, "find_cluster", find)
    monkeypatch.setattr(rental_account, "open_account", lambda name, file: asked.append((name, file)) or opened())
    monkeypatch.setattr(
        rental_account.config, "keys_of", lambda stack: StackKeys(marks.Owner(stack, "0badcafe"), "", "", "")
    )
    assert rental_account.account_and_owner("local")[1] == marks.Owner("local", "0badcafe")
    assert asked == [("softlayer", rental_account.config.read_file("local").account.config_file)]


def test_the_next_hour_is_that_of_what_has_been_billed_longest(monkeypatch):
    begun = datetime.now(UTC) - timedelta(minutes=80)
    charges = [
        Charge("1", "", "", "", at, None, None, True, Decimal(4), Decimal(0), Decimal(8), "USD")
        for at in (begun, begun + timedelta(minutes=30))
    ]
    cost = cost_in(monkeypatch, opened(charges))
    assert (cost.per_hour, cost.so_far, cost.next_hour) == (8, 16, begun + timedelta(hours=2))


def test_what_a_machine_has_cost_that_was_replaced_is_paid_too(monkeypatch):
    begun = datetime.now(UTC) - timedelta(hours=5)
    hours = {"kept": (0, None), "lost": (0, 2), "its place": (3, None), "of another day": (-9, -7)}
    charges = [
        Charge(name, "", "", "", begun + timedelta(hours=begin), None if end is None else begun + timedelta(hours=end),
               None, True, Decimal(4), Decimal(0), Decimal(8), "USD")
        for name, (begin, end) in hours.items()
    ]  # fmt: skip
    cost = cost_in(monkeypatch, opened(charges))
    assert (cost.per_hour, cost.so_far) == (8, 24)


def test_the_bill_shows_when_the_next_hour_begins_and_what_it_costs():
    at = dataclasses.replace(COST, next_hour=datetime(2026, 11, 21, 18, 5, tzinfo=UTC))
    assert str(at) == "$1.50 so far, $8.99/hour, the next one begins at 18:05 UTC"


def test_a_second_computer_takes_up_what_bears_both_the_stack_and_the_mark_and_nothing_else(monkeypatch, tmp_path):
    """A copied folder of keys gives two stacks one mark."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    owners = [marks.Owner("v100", "1f3a9c42"), marks.Owner("copy", "1f3a9c42"), marks.Owner("v100", "0badcafe")]
    account = opened()
    monkeypatch.setattr(Failing, "resources", lambda *_: [Resource("guest", "7", "gpu-0", each) for each in owners])
    monkeypatch.setattr(rental_account, "open_account", lambda name, key_file: account)
    rental_account.take_up("v100", "1f3a9c42")
    assert rental_account.guarded_owner("v100") == owners[0]
    with pytest.raises(UserMistake, match="shows things of the stacks copy, v100 with it"):
        rental_account.take_up("other", "1f3a9c42")
    assert rental_account.guarded_owner("other") is None
