"""The recorder of commands: what a terminal showed, as a moving picture."""

import re
import sys
from pathlib import Path

from docs.tools import recording

PLAYED = """
import sys
print("rented gpu-0 in", sys.argv[1])
for step in range(40):
    sys.stdout.write(f"\\rstep {step}\\nloss {4 - step / 10:.1f}\\n\\x1b[1A\\x1b[2K\\x1b[1A\\x1b[2K")
    sys.stdout.flush()
print("receipt: 0 open billing items")
sys.exit(3)
"""


def test_a_played_command_becomes_a_moving_picture_to_its_receipt(tmp_path) -> None:
    target = tmp_path / "played.svg"
    assert recording.main(str(target), sys.executable, "-c", PLAYED, str(Path.home() / "runs")) == 3
    text = target.read_text()
    assert text.startswith("<svg") and text.rstrip().endswith("</svg>") and len(text) < 200_000
    assert 1 <= len(re.findall("@keyframes", text)) <= recording.FRAMES
    assert "receipt:" in text and "~/runs" in text
    assert target.with_suffix(".cast").read_text().startswith('{"version": 2')
    assert str(Path.home()) not in text + target.with_suffix(".cast").read_text()


def test_a_redrawn_line_shows_its_last_state_alone() -> None:
    *_, last = recording.screens([(0.0, "rented\r\nstep 1\r"), (1.0, "\x1b[2Kstep 2\r\n"), (2.0, "over\r\n")])
    assert last == "rented\nstep 2\nover"


def test_a_panel_that_goes_up_is_drawn_over() -> None:
    *_, last = recording.screens([(0.0, "step 1\r\nloss 3\r\n"), (1.0, "\x1b[2Astep 2\r\nloss 2\r\n")])
    assert last == "step 2\nloss 2"


def test_many_screens_leave_the_first_and_the_last() -> None:
    kept = recording.chosen([str(number) for number in range(1000)])
    assert len(kept) == recording.FRAMES and (kept[0], kept[-1]) == ("0", "999")


def test_without_words_the_whole_life_is_recorded() -> None:
    assert recording.WHOLE_LIFE[1:] == ("make", "up", "DOWN=1")
