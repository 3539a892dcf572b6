"""The list of emulated methods is what the code has."""

from pathlib import Path

from emulator.cli import main

LIST = Path(__file__).parents[2] / "emulator" / "softlayer" / "METHODS.md"


def test_the_committed_list_is_what_the_command_prints(capsys):
    assert main(["methods"]) == 0
    again = "Write it again: python -m emulator methods > emulator/softlayer/METHODS.md"
    assert capsys.readouterr().out == LIST.read_text(), again
