"""The list of emulated methods is what the code has."""

from pathlib import Path

import pytest

from emulator.cli import main
from emulator.softlayer.services import SERVICES
from emulator.softlayer.vendor import method_list

LIST = Path(__file__).parents[2] / "emulator" / "softlayer" / "METHODS.md"


def test_the_committed_list_is_what_the_code_has():
    assert LIST.read_text() == method_list(), (
        "Write it again: python -m emulator methods > emulator/softlayer/METHODS.md"
    )


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_every_method_says_in_one_line_what_it_does(service):
    for name, method in SERVICES[service].items():
        assert (method.__doc__ or "").strip(), f"{service}::{name} has no docstring"


def test_the_list_is_printed_on_the_command_line(capsys):
    assert main(["methods"]) == 0
    assert capsys.readouterr().out == method_list()
