"""Defects that were there once, each as a small change that brings it back, and the test that has to catch it.

An anchor is the heart of a guarantee. Whoever moves the guarantee moves the anchor with it; whoever removes it says here why.
"""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Defect:
    """A change of one file.

    Attributes:
        why: what it does to the person who rents.
        old: stands once in the file.
        test: a file of tests and one of its functions, as pytest names them.
    """

    name: str
    why: str
    file: str
    old: str
    new: str
    test: str

    def flaw(self, root: Path = ROOT) -> str | None:
        """Say why it does not apply to the files below ``root``."""
        file, (tests, _, function) = root / self.file, self.test.partition("::")
        if not file.is_file():
            return f"{self.name}: there is no {self.file}"
        count = file.read_text().count(self.old)
        if count != 1:
            return f"{self.name}: {self.file} has {count} times and not once: {self.old}"
        if not (root / tests).is_file() or f"def {function}(" not in (root / tests).read_text():
            return f"{self.name}: there is no test {self.test}"
        return None

    def plant(self, root: Path) -> None:
        """Make the change in the files below ``root``."""
        file = root / self.file
        file.write_text(file.read_text().replace(self.old, self.new))


MONEY = (
    Defect(
        "an hour that has begun is free",
        "a preview and a receipt of Paperspace show less than is billed",
        "microcluster/core/catalog/billing_rules.py",
        "math.ceil((until - begin) / HOUR)",
        "math.floor((until - begin) / HOUR)",
        "tests/unit/test_priced_previews.py::test_a_started_hour_counts_whole_and_a_month_has_its_limit",
    ),
    Defect(
        "the price of one machine is shown for all",
        "a preview shows half of what is billed",
        "microcluster/accounts/softlayer/billing.py",
        "* spec.nodes / count",
        "/ count",
        "tests/integration/test_live_prices.py::test_a_preview_with_a_key_shows_the_accounts_price_of_all_nodes",
    ),
    Defect(
        "completed order counts as refused",
        "a second order is placed beside a machine that is billed",
        "microcluster/accounts/softlayer/billing.py",
        "return _status(order) in REFUSED",
        'return "PENDING" not in _status(order) and _status(order) != "APPROVED"',
        "tests/unit/test_provider_journal.py::test_an_accepted_order_without_any_trace_is_never_called_not_arrived",
    ),
    Defect(
        "lost order sent again by the same command",
        "two machines are billed where the account is slow",
        "microcluster/accounts/shared/order.py",
        "is_lost = request.is_billed and bool(journal.unresolved(op.name, request.kind))",
        "is_lost = False",
        "tests/integration/test_provider_faults.py::test_an_order_that_never_arrived_is_sent_again_by_the_next_command",
    ),
    Defect(
        "only the list of machines decides",
        "an order that the bill or the list of orders shows is placed again",
        "microcluster/accounts/shared/order.py",
        "return market.standing(owner, hostname, oldest,",
        "return market.standing(owner, None, oldest,",
        "tests/integration/test_provider_faults.py::test_an_order_on_the_bill_or_order_list_is_not_repeated",
    ),
    Defect(
        "transaction's name makes a machine cancelled",
        "nothing is cancelled, and the machine stays billed",
        "microcluster/accounts/softlayer/views.py",
        'return is_reclaimed(guest) and bool(guest["billingItem"].get("cancellationDate"))',
        "return is_reclaimed(guest)",
        "tests/unit/test_provider_guests.py::test_a_guest_with_an_open_billing_item_is_alive_in_any_transaction",
    ),
    Defect(
        "rights are asked by the ledger alone",
        "a user orders a machine that this user cannot cancel",
        "microcluster/accounts/softlayer/account.py",
        "        self.api.check_to_order()",
        "        pass",
        "tests/integration/test_provider_restricted.py::"
        "test_a_right_withdrawn_after_the_ledgers_check_stops_the_next_order",
    ),
    Defect(
        "address of a deleted machine is forgotten",
        "a static address stays billed, and nobody sees it",
        "microcluster/accounts/paperspace/machine.py",
        "            # A person who deletes a machine in the console leaves its address behind,",
        "            return\n            #",
        "tests/unit/test_paperspace_orders.py::test_a_refresh_releases_the_static_address_of_a_machine_deleted_by_hand",
    ),
    Defect(
        "journal that cannot be read counts as empty",
        "the receipt is clean while an accepted order stands",
        "microcluster/accounts/shared/journal.py",
        "except FileNotFoundError:",
        "except OSError:",
        "tests/unit/test_provider_journal.py::test_an_unreadable_journal_is_not_taken_for_an_empty_one",
    ),
    Defect(
        "what went with its network is on no receipt",
        "a receipt shows less than was billed",
        "microcluster/accounts/shared/sweep.py",
        "            self._close_gone(kind)",
        "            pass",
        "tests/unit/test_paperspace_orders.py::test_the_final_receipt_has_orders_that_got_no_answer",
    ),
    Defect(
        "intent is not on the disk before the order",
        "after a power cut nobody knows of the order, and it is placed again",
        "microcluster/accounts/shared/journal.py",
        "os.fsync(file)",
        "pass",
        "tests/unit/test_provider_journal.py::test_an_intent_is_on_the_disk_before_the_call_returns",
    ),
    Defect(
        "firewall goes before the cancellation is accepted",
        "a billed machine is open to everybody",
        "microcluster/accounts/softlayer/account.py",
        'number, item = int(guest.id), guest.row.get("billingItem")',
        'number, item = int(guest.id), guest.row.get("billingItem")\n'
        '    api.once("Network_SecurityGroup", "detachNetworkComponents", [4])',
        "tests/unit/test_provider_cancel.py::test_a_guest_whose_cancellation_is_refused_keeps_its_firewall",
    ),
    Defect(
        "id alone is believed",
        "another stack's machine is cancelled",
        "microcluster/accounts/shared/account.py",
        "if self.owner != owner:",
        "if False:",
        "tests/unit/test_provider_cancel.py::test_a_guest_of_another_stack_is_not_cancelled_whatever_its_id",
    ),
)
STOP = (
    Defect(
        "slow qsub does not hold the lock",
        "two jobs carry out one run in one folder",
        "agent/batch/login.py",
        "pass_fds=(lock.fileno(),)",
        "pass_fds=()",
        "tests/unit/test_agent_batch.py::"
        "test_a_slow_qsub_keeps_the_next_command_waiting_although_its_caller_was_killed",
    ),
    Defect(
        "queue may run the job again",
        "node hours are used that nobody asked for and no receipt shows",
        "agent/batch/commands.py",
        '"-r", "n"',
        '"-r", "y"',
        "tests/unit/test_agent_batch.py::"
        "test_a_run_is_submitted_with_everything_in_one_option_l_and_is_never_rerun_by_the_queue",
    ),
    Defect(
        "stranger's job is taken for ours",
        "qdel is sent to it",
        "agent/batch/commands.py",
        " and job.user in (user, user[:USER_COLUMN])",
        "",
        "tests/unit/test_agent_batch.py::test_a_strangers_job_of_the_same_name_is_neither_found_nor_deleted",
    ),
    Defect(
        "renamed process is not ended",
        "it goes on after `fab stop`, which says that none is left",
        "agent/kill_run.py",
        "while owner in parent_of and owner not in marks:",
        "while False:",
        "tests/unit/test_agent_kill_run.py::test_stopping_ends_a_process_that_has_written_over_its_mark_too",
    ),
    Defect(
        "unit of systemd is asked for without sudo",
        "no run starts on a Paperspace machine, which is billed",
        "agent/supervise/detached.py",
        '(["sudo", "-n"], ["--uid=" + user])',
        "([], [])",
        "tests/unit/test_agent_supervisor.py::test_a_user_who_is_not_root_has_sudo_start_the_unit_as_that_user",
    ),
    Defect(
        "torchrun's output is buffered",
        "a healthy run is ended as stalled",
        "microcluster/jobs/ranks.py",
        '"LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}',
        '"LC_ALL": "C.UTF-8"}',
        "tests/unit/test_jobs_torchrun.py::test_output_is_unbuffered_and_variables_reach_the_agents_of_all_nodes",
    ),
    Defect(
        "only lines with steps are life",
        "a healthy run that says its steps rarely is ended",
        "agent/supervise/health_rules.py",
        "silent = now - max(self.lived, self._all_worked())",
        "silent = now - self.progressed",
        "tests/unit/test_agent_health_rules.py::test_any_output_and_any_new_checkpoint_is_life",
    ),
    Defect(
        "time of day ends a lease",
        "a healthy run is stopped when somebody sets the clock",
        "agent/supervise/guard.py",
        'boottime() >= known["until"] if known["boot"] == boot() else time.time()',
        "time.time()",
        "tests/unit/test_agent_guard.py::test_a_lease_ends_on_time_whatever_somebody_sets_the_clock_to",
    ),
    Defect(
        "missing reading counts as rest",
        "a run is stopped of which nobody knows that it is idle",
        "agent/supervise/idle.py",
        "elif self.is_known and was_known:",
        "elif self.is_known:",
        "tests/unit/test_agent_idle_nodes.py::"
        "test_a_missing_reading_freezes_the_count_and_neither_adds_to_it_nor_begins_it_anew",
    ),
    Defect(
        "who watches keeps the machines",
        "a forgotten `fab watch` pays for a weekend",
        "agent/supervise/idle.py",
        "cards - ON_THE_WIRE * ours >=",
        "cards >=",
        "tests/unit/test_agent_idle_nodes.py::test_somebody_who_only_watches_a_run_does_not_keep_its_machines",
    ),
)
RESULTS = (
    Defect(
        "checkpoint is one file",
        "parts of the newest checkpoint are deleted",
        "agent/formats/checkpoints/log_folder.py",
        "return self.names.get(name, [])",
        "return self.names.get(name, [])[:1]",
        "tests/unit/test_agent_file_formats.py::test_all_files_of_a_step_are_one_checkpoint_and_are_pruned_together",
    ),
    Defect(
        "torn zip counts as whole",
        "a run goes on from it again and again",
        "agent/formats/checkpoints/file_formats.py",
        "zipfile.ZipFile(path).close()",
        "pass",
        "tests/unit/test_agent_file_formats.py::test_a_zip_that_was_cut_short_is_torn_and_the_one_before_is_used",
    ),
    Defect(
        "silent machine has no copy",
        "the run begins again and writes over the newest copy",
        "agent/supervise/resume.py",
        "return None, sentence.format(",
        'return None, "" and sentence.format(',
        "tests/unit/test_agent_resume.py::test_a_silent_machine_is_not_taken_for_one_without_a_copy",
    ),
    Defect(
        "spoilt copy takes the place of the one before",
        "the machine is lost, and the copy does not load",
        "agent/formats/checkpoints/replica.py",
        "if sum_of(os.path.join(path, name)) != files[name][1]:",
        "if False:",
        "tests/unit/test_agent_replica_store.py::"
        "test_what_was_cut_off_or_changed_on_the_way_leaves_the_copy_before_in_its_place",
    ),
    Defect(
        "run without a step has nothing to lose",
        "`make down` deletes it without a question",
        "microcluster/run/unsaved_work.py",
        "begun = own and (step is not None or checkpoint is not None or outcome.state in LIVING)",
        "begun = own and step is not None",
        "tests/unit/test_commands_unsaved_work.py::"
        "test_a_run_that_has_gone_on_and_has_no_whole_checkpoint_would_be_lost",
    ),
    Defect(
        "another run ends the one at work",
        "`make up` ends it without a question",
        "microcluster/run/unsaved_work.py",
        "if stakes or living else None",
        "if stakes else None",
        "tests/unit/test_commands_unsaved_work.py::"
        "test_a_run_at_work_is_not_ended_without_a_question_though_all_it_saved_was_fetched",
    ),
    Defect(
        "one command cancels what it could not fetch",
        "`make up DOWN=1` loses the run with its machines, and nobody is asked",
        "microcluster/guard/actions.py",
        'return "for the reason above" if code else ""',
        'return "for the reason above" if (code or 0) > 1 else ""',
        "tests/unit/test_commands_ending.py::test_nothing_is_cancelled_when_not_everything_was_fetched",
    ),
)
GUARD = (
    Defect(
        "budget without a started hour in reserve",
        "an end that takes longer than it should costs more than the budget",
        "microcluster/guard/decision.py",
        "last_paid(limits.budget - rental.spent - rental.per_hour, going_on",
        "last_paid(limits.budget - rental.spent, going_on",
        "tests/unit/test_guard_decision.py::"
        "test_a_budget_ends_before_the_hour_that_it_cannot_pay_with_one_started_hour_in_reserve",
    ),
    Defect(
        "account that cannot be read is empty",
        "the guard removes itself while everything is billed",
        "microcluster/guard/decision.py",
        "if not seen.unread and (",
        "if (",
        "tests/unit/test_guard_decision.py::test_an_account_that_was_never_read_is_not_taken_for_empty",
    ),
    Defect(
        "finished run cancelled before it is fetched",
        "the disk of this computer is full, and the only copy goes",
        "microcluster/guard/enforcement.py",
        "if lost and verdict.fetch_by is None:",
        "if False:",
        "tests/unit/test_guard_cases.py::test_case_9_what_no_limit_presses_is_not_cancelled_before_it_is_fetched",
    ),
    Defect(
        "extension read too early",
        "a person has extended the lease while it was fetched, and everything is cancelled",
        "microcluster/guard/enforcement.py",
        "if not goes_on:",
        "if False:",
        "tests/unit/test_guard_cases.py::test_case_6_an_extension_that_arrives_while_it_is_fetched_keeps_the_machines",
    ),
)
DEFECTS = MONEY + STOP + RESULTS + GUARD
