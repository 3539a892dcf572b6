"""The list of emulated methods is what the code has."""

from pathlib import Path

from emulator.cli import main
from emulator.softlayer.vendor import method_list

LIST = Path(__file__).parents[2] / "emulator" / "softlayer" / "METHODS.md"


def test_the_committed_list_is_what_the_code_has():
    assert LIST.read_text() == method_list(), (
        "Write it again: python -m emulator methods > emulator/softlayer/METHODS.md"
    )


def test_the_list_is_printed_on_the_command_line(capsys):
    assert main(["methods"]) == 0
    assert capsys.readouterr().out == method_list()
