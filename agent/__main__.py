"""Call the program that the first argument names with the other arguments: the ``main`` of its module.

A run that an earlier version began keeps that version's agent, which takes a program's name for the path of its module. So names stay as
they are, wherever their modules move.
"""

import importlib
import os
import sys

PROGRAMS = {
    "batch.job": "batch.job",
    "batch.login": "batch.login",
    "batch.step": "batch.step",
    "checkpoints.listing": "formats.checkpoints.listing",
    "checkpoints.parts": "formats.checkpoints.parts",
    "checkpoints.replica": "formats.checkpoints.replica",
    "checkpoints.resume": "supervise.resume",
    "checkpoints.rewritten": "formats.checkpoints.rewritten",
    "checkpoints.tensorflow": "formats.checkpoints.tensorflow",
    "data.distribute_data": "data.distribute_data",
    "data.program_folder": "data.program_folder",
    "data.staging": "data.staging",
    "data.text_cleaning": "data.text_cleaning",
    "kill_run": "kill_run",
    "launch.probe": "launch.probe",
    "launch.rank_wrapper": "launch.rank_wrapper",
    "launch.torchrun": "launch.torchrun",
    "nodes.links": "nodes.links",
    "nodes.node_facts": "nodes.node_facts",
    "nodes.run_usage": "nodes.run_usage",
    "readers.scalars": "formats.logs.scalars",
    "records.inventory": "records.inventory",
    "records.run_snapshot": "records.run_snapshot",
    "supervise.guard": "supervise.guard",
    "supervise.idle_watch": "supervise.idle_watch",
    "supervise.supervisor": "supervise.supervisor",
}
"""The module of each program."""

if __name__ == "__main__":
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = importlib.import_module("agent")
    del sys.path[0]  # Files of the run beside the package must not hide modules of others.
    sys.exit(importlib.import_module(package.__name__ + "." + PROGRAMS[sys.argv[1]]).main(*sys.argv[2:]))
