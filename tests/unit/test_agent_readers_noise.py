"""The parser of the training log in bad company: ranks that merge, noise of NCCL, anything that a stream may carry."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from test_agent_readers_openseq2seq import EVENTS, NOISE

from agent.formats.logs import json_lines, mxnet, pattern, texar
from agent.formats.logs.openseq2seq import Reader

TAGS = st.sampled_from(["", *(f"[1,{rank}]<{kind}>:" for rank in range(4) for kind in ("stdout", "stderr"))])
MEANT, NOISY = st.sampled_from(list(EVENTS)), st.sampled_from([line[:300] for line in NOISE])
ENDS = st.sampled_from(["", " ", "\r", " \r"])
PIECES = st.lists(st.text(st.characters(exclude_categories=["Zs", "Zl", "Zp", "Cc"]), min_size=1), min_size=1)


def told(lines):
    """Return what is told of lines; a time bears the step before it, so only its seconds are compared."""
    reader = Reader()
    return [
        {**event, "step": None} if event["event"] == "time" else event for line in lines for event in reader.read(line)
    ]


def alone(lines):
    """Return what the same lines tell one by one, each rank that is waited for once for every step."""
    events, waited = [], set()
    for line in lines:
        for event in told([line]):
            if event["event"] == "train":
                waited = set()
            if event["event"] == "waited-for":
                if event["rank"] in waited:
                    continue
                waited.add(event["rank"])
            events.append(event)
    return events


@given(st.lists(st.tuples(TAGS, MEANT, ENDS), max_size=12), st.data())
def test_noise_between_lines_neither_invents_nor_hides_anything(lines, data):
    noisy = []
    for tag, line, end in lines:
        noisy += data.draw(st.lists(st.tuples(TAGS, NOISY).map("".join), max_size=3))
        noisy.append(tag + line + end)
    assert told(noisy) == alone([line for _, line, _ in lines])


@given(TAGS, NOISY, TAGS, MEANT, NOISY)
def test_noise_of_another_rank_around_a_whole_line_neither_invents_nor_hides_anything(first, before, tag, line, after):
    assert told([first + before + tag + line + " " + after]) == alone([line])


@given(st.lists(st.tuples(TAGS, MEANT), min_size=1, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_whole_lines_of_ranks_that_merged_into_one_tell_the_same(lines, merged):
    physical = [""]
    for (tag, line), glued in zip(lines, merged, strict=False):
        physical += [] if glued else [""]
        physical[-1] += tag + line + (" " if line[-1].isdigit() else "")
    assert told(physical) == alone([line for _, line in lines])


@given(MEANT, st.data())
def test_fragments_that_the_same_rank_wrote_apart_make_the_line_again(line, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(line)), max_size=4)))
    pieces = [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    assert told(["".join("[1,0]<stdout>:" + piece for piece in pieces)]) == alone([line])


@given(st.sampled_from(["Train Source", "Train Prediction", "*****EVAL Target"]), PIECES)
def test_a_sentence_in_a_sample_means_nothing_whatever_it_says(kind, words):
    assert told([f"***     {kind}[0]:     " + " ".join("\u2581" + word for word in words)]) == []


PARTS = st.one_of(
    st.text(),
    st.sampled_from([word for line in EVENTS for word in (line, *line.split(" "))]),
    st.integers(0, 10**30).map(str),
    st.floats().map(str),
    st.builds(json.dumps, st.dictionaries(st.sampled_from(["step", "loss"]), st.floats() | st.text())),
    TAGS,
)


@given(st.lists(st.lists(PARTS).map(" ".join)))
def test_no_text_is_too_odd_for_a_reader_and_every_event_can_be_written_down(lines):
    odd = pattern.Reader(r"(?P<step>\S+) (?P<loss>\S+)")
    for reader in (Reader(), mxnet.Reader(), texar.Reader(), json_lines.Reader(), odd):
        for line in lines:
            json.dumps(reader.read(line), allow_nan=False)


@given(st.binary())
def test_bytes_that_are_no_text_are_read_all_the_same(noise):
    noise = re.sub(b"[\n\x1b]", b"", noise)  # An escape would begin a move of the cursor, and take letters of the line.
    line = noise + b"*** Global step 10: ***     Train loss: 4.0454 " + noise
    assert {"event": "train", "step": 10, "loss": 4.0454} in Reader().read(line.decode("utf-8", "replace"))
