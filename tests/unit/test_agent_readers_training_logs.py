"""Lines of training programs as their sources print them, each by a pattern that a person would write for it."""

import sample_spec

from agent.supervise.monitor import reader_of
from agent.supervise.output_lines import Lines
from tests.recorded import Recorded, recorded


@recorded("training_log")
def test_a_programs_own_lines_are_read_or_said_once_to_be_unread(answer: Recorded) -> None:
    options = dict(answer.asked)
    name, every_s, now = options.pop("reader"), options.pop("every_s", 2.0), [0.0]
    reader = reader_of(sample_spec.parsed(reader=name, reader_options=options))
    reader.clock = lambda: now[0]
    events = []
    for piece in Lines().take(answer.output):
        line = piece.decode()
        events += reader.read(line.rstrip("\r\n") + ("\r" if line.endswith("\r") else ""))
        now[0] += every_s
    found = {
        "steps": [event["step"] for event in events if event["event"] == "train"],
        "losses": [[event["step"], event["loss"]] for event in events if "loss" in event and event["event"] == "train"],
        "validations": [
            [event.get("step", "before the first step"), event["loss"]]
            for event in events
            if event["event"] == "validation"
        ],
        "paces": [[event["step"], event["seconds_per_step"]] for event in events if event["event"] == "time"],
        "metrics": [[one["name"], one["step"], one["value"]] for one in events if one["event"] == "metric"],
        "batches": [[one["step"], one["value"]] for one in events if one["event"] == "batch"],
        "unread": [event["text"] for event in events if event["event"] == "alarm"],
    }
    found["metrics"] = [one for one in found["metrics"] if one[0] != "epoch"]
    assert {key: found[key] for key in answer.expected} == answer.expected
