"""Differences between the accounts of the chaos test."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos.provider import Resource

HOSTNAMES = ("gpu-0", "gpu-1")
LEASE_H = 6
SLOW_S = 0.05
Made = Mapping[str, Resource]
Post = Callable[[str, Any], Any]
"""Sends a body to a path of the account, and returns the answer."""
Line = dict[str, Any]


@dataclass(frozen=True)
class Declared:
    """A resource as the program declares it; its inputs follow from what was made before it."""

    kind: str
    name: str
    inputs: Callable[[Made], dict[str, Any]]


Program = list[list[Declared]]
"""Levels: what stands in one depends on all that stands before."""


@dataclass(frozen=True)
class Market:
    """One vendor's account: who plays it, what is declared there, and what else is in it.

    Attributes:
        authorization: by the account's key, the header with which things of other people are ordered.
        settle: orders things of other people with names like ours, as their owners would.
        only_machines_cost: else the rest costs cents beside a machine, by dates of our own clock, not of the account's fast one.
        in_checkers_words: tells of one line of the account's history, or of nothing.
        prepare: puts what a person has into the home.
    """

    vendor: str
    key_setting: str
    authorization: Callable[[str], str]
    domain: str
    program: Program
    settle: Callable[[Post], None]
    settings: Mapping[str, Any]
    fault_kinds: tuple[str, ...]
    fault_share: float
    longest_lag_s: float
    only_machines_cost: bool = True
    in_checkers_words: Callable[[Line], Iterator[Line]] = lambda line: iter((line,))
    prepare: Callable[[Path], None] = lambda home: None

    def fault_rates(self, chance: Random, *, is_tls: bool) -> dict[str, float]:
        """Mix the kinds of faults; half the accounts have TLS, which breaks too."""
        kinds = (*self.fault_kinds, "broken_tls") if is_tls else self.fault_kinds
        weights = {kind: chance.random() ** 2 for kind in kinds}
        share = self.fault_share / sum(weights.values())
        return {kind: share * weight for kind, weight in weights.items()} | {"slow_s": SLOW_S}
