"""The cause of a failure, from what tools print: recorded answers in tests/recorded/failure_line."""

from agent.formats.logs.failure_lines import cause_in, sentence
from tests.recorded import Recorded, recorded


@recorded("failure_line")
def test_a_line_names_its_cause_and_what_it_is_about(answer: Recorded) -> None:
    found = cause_in(answer.answer)
    assert (dict(zip(("cause", "named"), found, strict=True)) if found else {}) == answer.expected
    assert found is None or sentence(*found).endswith(found[1])
