"""Twelve lines of code that guard money, the stop, checkpoints and secrets, each with a defect and the test that finds it.

Whoever moves such a line moves its anchor with it; whoever removes the line removes the anchor and says why in the commit.
"""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Anchor:
    """One line of code, the same line with a defect, and the test that fails of it.

    Attributes:
        harm: effect of the defect on the person who rents.
        sound: part of the line that stands once in the file.
        test: file and function of the test, as pytest names them.
    """

    harm: str
    file: str
    sound: str
    defect: str
    test: str

    def looseness(self) -> str | None:
        """Say why the anchor no longer holds: its line has gone, or its test."""
        code, (tests, _, function) = ROOT / self.file, self.test.partition("::")
        if not code.is_file() or code.read_text().count(self.sound) != 1:
            return f"{self.harm}: {self.file} does not have exactly once: {self.sound}"
        if not (ROOT / tests).is_file() or f"def {function}(" not in (ROOT / tests).read_text():
            return f"{self.harm}: there is no test {self.test}"
        return None


MONEY = (
    Anchor(
        "a preview and a receipt of Paperspace leave out an hour that has begun",
        "microcluster/core/catalog/billing_rules.py",
        "math.ceil((until - begin) / HOUR)",
        "math.floor((until - begin) / HOUR)",
        "tests/unit/test_priced_previews.py::test_a_started_hour_counts_whole_and_a_month_has_its_limit",
    ),
    Anchor(
        "an order whose answer was lost is placed twice by one command",
        "microcluster/accounts/shared/order.py",
        "is_lost = request.is_billed and bool(journal.unresolved(op.name, request.kind))",
        "is_lost = False",
        "tests/integration/test_provider_faults.py::test_an_order_that_never_arrived_is_sent_again_by_the_next_command",
    ),
    Anchor(
        "a machine that is reclaimed counts as cancelled and stays billed",
        "microcluster/accounts/softlayer/views.py",
        'return is_reclaimed(guest) and bool(guest["billingItem"].get("cancellationDate"))',
        "return is_reclaimed(guest)",
        "tests/unit/test_provider_guests.py::test_a_guest_with_an_open_billing_item_is_alive_in_any_transaction",
    ),
    Anchor(
        "another stack's machine is cancelled",
        "microcluster/accounts/shared/account.py",
        "if self.owner != owner:",
        "if False:",
        "tests/unit/test_provider_cancel.py::test_a_guest_of_another_stack_is_not_cancelled_whatever_its_id",
    ),
)
STOP = (
    Anchor(
        "a process that renames itself goes on after `fab stop`, which says that none is left",
        "agent/kill_run.py",
        "while owner in parent_of and owner not in marks:",
        "while False:",
        "tests/unit/test_agent_kill_run.py::test_stopping_ends_a_process_that_has_written_over_its_mark_too",
    ),
    Anchor(
        "`fab stop` deletes another person's job of the same name from the queue",
        "agent/batch/commands.py",
        " and job.user in (user, user[:USER_COLUMN])",
        "",
        "tests/unit/test_agent_batch.py::test_a_strangers_job_of_the_same_name_is_neither_found_nor_deleted",
    ),
    Anchor(
        "the guard removes itself while the account cannot be read and everything is billed",
        "microcluster/guard/decision.py",
        "if not seen.unread and (",
        "if (",
        "tests/unit/test_guard_decision.py::test_an_account_that_was_never_read_is_not_taken_for_empty",
    ),
)
CHECKPOINTS = (
    Anchor(
        "a run goes on from a checkpoint that was cut short, again and again",
        "agent/formats/checkpoints/file_formats.py",
        "zipfile.ZipFile(path).close()",
        "pass",
        "tests/unit/test_agent_file_formats.py::test_a_zip_that_was_cut_short_is_torn_and_the_one_before_is_used",
    ),
    Anchor(
        "a run begins again because the machine with its newest copy is silent",
        "agent/supervise/resume.py",
        "return None, sentence.format(",
        'return None, "" and sentence.format(',
        "tests/unit/test_agent_resume.py::test_a_silent_machine_is_not_taken_for_one_without_a_copy",
    ),
    Anchor(
        "`make up DOWN=1` cancels the machines of a run that it could not fetch",
        "microcluster/guard/actions.py",
        'return "for the reason above" if code else ""',
        'return ""',
        "tests/unit/test_commands_ending.py::test_nothing_is_cancelled_when_not_everything_was_fetched",
    ),
)
SECRETS = (
    Anchor(
        "the message of a failed call shows the account's key",
        "microcluster/accounts/shared/redaction.py",
        'text = text.replace(form, "(secret)")',
        "pass",
        "tests/unit/test_provider_calls.py::test_keys_never_stand_in_an_error",
    ),
    Anchor(
        "a key is used that everybody on this computer can read",
        "microcluster/core/key_file.py",
        "if SETTING in settings and mode & 0o077:",
        "if False:",
        "tests/unit/test_provider_credentials.py::test_a_file_with_a_key_that_others_may_read_is_refused",
    ),
)
ANCHORS = MONEY + STOP + CHECKPOINTS + SECRETS
