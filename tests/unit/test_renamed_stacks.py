"""Which folder of keys a stack has: by its name, and by what its state holds after it was renamed, copied or moved."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_samples import CLUSTER

from microcluster.accounts.shared.journal import Intent, Journal
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.softlayer.security_group import Groups
from microcluster.commands import sweep
from microcluster.config import stack as config
from microcluster.core import stack_keys
from microcluster.core.home import Home, Owner, mark_of
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.lifecycle import locks, pulumi_state, renamed
from microcluster.lifecycle.pulumi_state import prepare_stacks
from microcluster.rental import account as rental_account
from microcluster.run import cluster as run_cluster
from microcluster.setup.environment import fetched_folder
from microcluster.setup.errors import CommandFailed

LEDGER = "softlayer:index:Ledger"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Home:
    """A home with the keys of stack v100, which has rented something."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    home = Home.of()
    home.make()
    stack_keys.ensure(home.folder_of("v100"), "v100")
    holds(home, "v100", "v100")
    return home


def holds(home: Home, stack: str, label: str | None) -> None:
    """Write the state of a stack that holds what bears a label, or nothing."""
    path = pulumi_state.path_of(stack, home)
    path.parent.mkdir(parents=True, exist_ok=True)
    inputs = {"stack": label, "mark": label and mark_of(home.keys / label)}
    ledger = {"type": LEDGER, "urn": f"urn:pulumi:{stack}::x::y::ledger", "id": "x", "inputs": inputs}
    path.write_text(json.dumps({"checkpoint": {"latest": {"resources": [ledger] if label else []}}}))


def rename(home: Home, old: str, new: str) -> None:
    """Do as `pulumi stack rename`, which leaves a copy of the state under the old name."""
    path = pulumi_state.path_of(old, home)
    shutil.copy(path, path.with_suffix(".json.bak"))
    path.rename(pulumi_state.path_of(new, home))


def labels(home: Home, *stacks: str) -> list[str]:
    return [home.label_of(stack) for stack in stacks]


def test_a_stack_that_this_computer_rents_is_not_guarded_for_another(home):
    """Its guard neither stopped the program nor fetched, and heeded no idle time."""
    home.guarded.mkdir()
    (home.guarded / "v100").write_text("v100-0badcafe\n")
    assert rental_account.guarded_owner("v100") is None
    holds(home, "v100", None)
    assert rental_account.guarded_owner("v100") == Owner("v100", "0badcafe")


def test_a_renamed_stack_keeps_its_owner_and_one_line_says_so(home, capsys):
    before = config.keys_of("v100")
    rename(home, "v100", "big")
    renamed.settle(home)
    renamed.settle(home)
    assert config.keys_of("big") == before
    assert capsys.readouterr().err.count("Stack v100 is called big now") == 1
    rename(home, "big", "huge")
    renamed.settle(home)
    assert labels(home, "huge", "v100", "big") == ["v100", "v100-2", "big"]
    rename(home, "huge", "v100")
    renamed.settle(home)
    assert labels(home, "v100", "huge") == ["v100", "huge"]


@pytest.mark.parametrize("known", ["stack file alone", "new state"])
def test_a_new_stack_never_gets_the_keys_of_an_earlier_namesake(home, known):
    rename(home, "v100", "big")
    if known == "new state":
        holds(home, "v100", None)
    renamed.settle(home)
    stack_keys.ensure(home.folder_of("v100"), "v100")
    assert labels(home, "v100", "big") == ["v100-2", "v100"]
    assert config.keys_of("v100").owner.mark != config.keys_of("big").owner.mark
    holds(home, "v100", "v100-2")
    renamed.settle(home)
    assert labels(home, "v100", "big") == ["v100-2", "v100"]
    stack_keys.ensure(home.folder_of("v100-2"), "v100-2")
    assert labels(home, "v100-2") == ["v100-2-2"]


def test_two_stacks_that_swap_their_names_keep_their_keys(home):
    stack_keys.ensure(home.folder_of("p100"), "p100")
    holds(home, "p100", "p100")
    for old, new in (("v100", "third"), ("p100", "v100"), ("third", "p100")):
        rename(home, old, new)
    renamed.settle(home)
    assert labels(home, "v100", "p100") == ["p100", "v100"]


def test_a_stack_may_be_renamed_to_a_name_whose_keys_are_here(home):
    stack_keys.ensure(home.folder_of("p100"), "p100")
    rename(home, "v100", "p100")
    renamed.settle(home)
    assert labels(home, "p100") == ["v100"]
    assert (home.keys / "p100" / "id_ed25519").exists()


def test_a_copied_folder_is_its_own_owner_even_after_a_rename(home):
    rename(home, "v100", "big")
    renamed.settle(home)
    shutil.copytree(home.keys / "v100", home.keys / "p100")
    assert labels(home, "big", "p100") == ["v100", "p100"]
    holds(home, "p100", "p100")
    renamed.settle(home)
    assert labels(home, "big", "p100") == ["v100", "p100"]
    rename(home, "p100", "small")
    renamed.settle(home)
    assert labels(home, "big", "small") == ["v100", "p100"]
    assert config.keys_of("big").owner.mark == config.keys_of("small").owner.mark


@pytest.mark.parametrize("copy", ["a-copy", "z-copy"])
def test_a_copied_state_of_a_stack_that_lives_gets_no_keys(home, copy):
    shutil.copy(pulumi_state.path_of("v100", home), pulumi_state.path_of(copy, home))
    renamed.settle(home)
    assert labels(home, "v100", copy) == ["v100", copy]
    assert not (home.keys / copy).exists()


def test_a_name_that_a_second_stack_gets_leads_to_its_keys_alone(home):
    stack_keys.ensure(home.folder_of("a100"), "a100")
    holds(home, "a100", "a100")
    rename(home, "a100", "big")
    renamed.settle(home)
    pulumi_state.path_of("big", home).unlink()
    rename(home, "v100", "big")
    renamed.settle(home)
    assert labels(home, "big", "a100") == ["v100", "a100"]


def test_keys_with_another_mark_are_given_to_nobody(home):
    rename(home, "v100", "big")
    (home.keys / "v100" / "mark").write_text("0badcafe\n")
    renamed.settle(home)
    assert labels(home, "v100", "big") == ["v100", "big"]


def test_states_that_cannot_be_read_keep_no_other_from_its_keys(home):
    rename(home, "v100", "big")
    for name in ("v100", "broken"):
        pulumi_state.path_of(name, home).write_text("{")
    renamed.settle(home)
    assert labels(home, "big") == ["v100"]


def test_a_steps_facts_name_the_owner_of_a_queues_stack():
    steps = [{"stdin": text} for text in (CLUSTER.to_json(), "plain", "[1]", "[]")]
    assert [pulumi_state.owner_in(each) for each in steps] == [CLUSTER.owner, None, None, None]


def test_in_a_shared_backend_a_stack_without_keys_is_asked_for_outputs(home, monkeypatch):
    facts = replace(CLUSTER, stack="v100", mark=mark_of(home.keys / "v100")).to_json()
    asked = []
    known = {"big": {"microcluster": facts}}
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://shared")
    monkeypatch.setattr(pulumi_state, "outputs", lambda stack, home: asked.append(stack) or known.get(stack, {}))
    renamed.settle(home)
    renamed.settle(home, "v100")
    assert asked == []
    renamed.settle(home, "big")
    assert labels(home, "big") == ["v100"]


def test_what_a_renamed_stack_rents_is_living_and_its_files_are_found(home):
    fetched = fetched_folder("v100", "00e11aabbccd", "1")
    rename(home, "v100", "big")
    renamed.settle(home)
    assert sweep.living_marks(home) == {mark_of(home.keys / "v100")}
    assert fetched_folder("big", "00e11aabbccd", "1") == fetched


def test_commands_under_the_old_and_the_new_name_exclude_each_other(home):
    with locks.alone_on("v100", "make up", home):
        rename(home, "v100", "big")
        renamed.settle(home)
        with (
            pytest.raises(CommandFailed, match="make down: stack big is busy"),
            locks.alone_on("big", "make down", home),
        ):
            pass
        assert not locks.is_busy("v100", home), "a new stack of that name waits for nobody"


def test_a_renamed_stacks_state_is_not_restored_for_a_new_stack(home):
    rename(home, "v100", "big")
    assert list(pulumi_state.older_copies("v100", home))
    renamed.settle(home)
    assert not list(pulumi_state.older_copies("v100", home))


def test_the_outputs_of_a_renamed_stack_name_it_and_its_label(home, monkeypatch):
    monkeypatch.setattr(config, "path_of", lambda stack: None)
    facts = replace(CLUSTER, stack="v100", mark="1f3a9c42")
    monkeypatch.setattr(run_cluster, "_outputs", lambda stack: {"microcluster": facts.to_json()})
    found = run_cluster.find_cluster("big")
    assert (found.stack, found.owner) == ("big", Owner("v100", "1f3a9c42"))
    assert run_cluster.find_cluster("v100") == facts


def test_the_facts_of_a_moved_home_name_its_files_at_their_place(home, tmp_path, monkeypatch):
    key = str(home.keys / "v100" / "id_ed25519")
    facts = replace(CLUSTER, key_file=key, account_config_file=f"{home.root}/emulator/softlayer.conf")
    assert ClusterFacts.from_json(facts.to_json()) == facts
    home.root.rename(tmp_path / 'a "new" hôme')
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / 'a "new" hôme'))
    moved = ClusterFacts.from_json(facts.to_json())
    assert moved.key_file == str(Home.of().keys / "v100" / "id_ed25519") and Path(moved.key_file).exists()
    assert moved.account_config_file == f"{Home.of().root}/emulator/softlayer.conf"
    assert config.keys_of("v100").owner.mark == mark_of(Home.of().keys / "v100")


@pytest.mark.parametrize("is_settled", [True, False])
def test_the_provider_finds_the_owner_of_a_domainless_resource_by_its_mark(home, is_settled):
    mark = mark_of(home.keys / "v100")
    rename(home, "v100", "big")
    if is_settled:
        renamed.settle(home)
    op = Operation("urn:pulumi:big::microcluster::softlayer:index:SecurityGroup::members", None, None, 60)
    assert Groups().owner(op, {"mark": mark}) == Owner("v100", mark)
    assert Groups().owner(op, {"mark": "0badcafe"}) == Owner(home.label_of("big"), "0badcafe")


def test_the_journal_goes_on_under_the_label(home):
    owner = Owner("v100", mark_of(home.keys / "v100"))
    market = SimpleNamespace(journal=lambda owner: Journal(owner.stack, owner.mark, "1"))
    session = SimpleNamespace(market=lambda: market)
    op = Operation("urn:pulumi:big::microcluster::x::gpu-0", session, None, 60)
    op.journal(owner).intend(Intent("gpu-0", "guest"))
    assert [each.name for each in Journal("v100", owner.mark, "1").unresolved()] == ["gpu-0"]


def test_keys_follow_a_rename_that_nobody_saw_before_the_end(home):
    owner = Owner("v100", mark_of(home.keys / "v100"))
    stack_keys.follow(owner, "big")
    assert labels(home, "big") == ["v100"]
    stack_keys.ensure(home.folder_of("p100"), "p100")
    stack_keys.follow(owner, "p100")
    assert labels(home, "big", "p100") == ["v100", "p100"]
    stack_keys.follow(replace(owner, mark="0badcafe"), "other")
    assert labels(home, "big", "other") == ["v100", "other"]


def test_set_up_makes_new_keys_beside_those_of_a_renamed_stack(home, monkeypatch, capsys):
    rename(home, "v100", "big")
    renamed.settle(home)
    monkeypatch.setattr(pulumi_state, "ensure", lambda names, home: ())
    prepare_stacks(("v100", "big"), home)
    assert sorted(path.name for path in home.keys.iterdir()) == ["v100", "v100-2"]
    assert "ssh keys of v100\n" in capsys.readouterr().out
