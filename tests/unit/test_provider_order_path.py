"""The way of one guest's order: how many modules of the provider a reader has to open to follow it."""

import sys
import threading
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

import microcluster.accounts
from microcluster.accounts.shared import order
from microcluster.accounts.shared.plugin_servicer import Provider, to_python, to_struct
from microcluster.accounts.softlayer.__main__ import SOFTLAYER
from tests.chaos.accounts import CLOCK_RATE, AccountServer
from tests.chaos.provider import STACK, Resource, named
from tests.chaos.softlayer import cluster

FOLDER = f"{Path(microcluster.accounts.__file__).parent}/"
UNTIL_ORDERED, UNTIL_READY = 9, 15
"""The ninth is the contract itself, as a claim has terms. Where the new guest is listed late, its order is asked for too."""


class Trace:
    """The files of the provider whose functions ran, in the order in which they were first entered."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.until_ordered: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(FOLDER):
            self.files.setdefault(file.removeprefix(FOLDER))
        if event == "return" and frame.f_code is order.submit.__code__:
            self.until_ordered = list(self.files)


def refuse(code: object, details: str) -> None:
    raise AssertionError(details)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A provider in this process, asked as the engine does, with an emulated account."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    server, context = AccountServer(), SimpleNamespace(is_active=lambda: True, abort=refuse)
    with server.opened(tmp_path / "account") as rented:
        provider = Provider(SOFTLAYER, "", lambda: False)
        settings = {"configFile": str(rented.config_file), "timeScale": str(1 / CLOCK_RATE)}
        provider.Configure(provider_pb2.ConfigureRequest(args=to_struct(settings)), context)

        def create(kind: str, name: str, inputs: dict[str, Any]) -> Resource:
            request = provider_pb2.CreateRequest(**named(kind, name), properties=to_struct(inputs))
            made = provider.Create(request, context)
            return Resource(kind, name, made.id, inputs, to_python(made.properties))

        yield create
    server.close()


def test_a_guests_order_touches_at_most_9_modules_and_readiness_6_more(engine):
    made: dict[str, Resource] = {}
    trace = Trace()
    for declared in [each for level in cluster(("gpu-0",)) for each in level]:
        inputs = declared.inputs(made)
        if declared.kind == "VirtualGuest":
            threading.setprofile(trace)
            sys.setprofile(trace)
        try:
            made[declared.name] = engine(declared.kind, declared.name, inputs)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert made["gpu-0"].outputs["domain"].startswith(STACK)
    assert len(trace.until_ordered) in range(UNTIL_ORDERED - 1, UNTIL_ORDERED + 1), trace.until_ordered
    assert len(trace.files) <= UNTIL_READY, list(trace.files)
