"""The fault sweep: a quarter of all calls goes wrong; a command reaches its goal or says truthfully that it did not."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tools.chaos.checker import Expected, Verdict, billed
from tools.chaos.engine import Outcome, Verb
from tools.chaos.kill import HOSTNAMES, LISTS_LAG_S, NAMES
from tools.chaos.program import DOMAIN, MARK
from tools.chaos.stage import Stage, Theatre

SHARE = 0.25
KINDS = ("error", "lost_call", "lost_reply", "malformed", "slow", "stale", "capacity", "held")
TLS_KINDS = (*KINDS, "broken_tls")
SLOW_S = 0.05
BAD_WORDS = ("Traceback", "This is a bug", "Exception calling application")
LONGEST_STORM = 3
"""Commands while faults are injected, before they end."""


@dataclass(frozen=True)
class Case:
    """One run: some commands while faults are injected, then the same ones without."""

    seed: int

    @property
    def settings(self) -> dict[str, Any]:
        """Rates that add up to a quarter, in a mixture of the seed's own; half the accounts' lists lag, half have TLS."""
        chance = Random(self.seed)
        is_tls = self.seed % 2 == 1
        kinds = TLS_KINDS if is_tls else KINDS
        weights = [chance.random() ** 2 for _ in kinds]
        rates = {kind: SHARE * weight / sum(weights) for kind, weight in zip(kinds, weights, strict=True)}
        lag_s = max(chance.uniform(-LISTS_LAG_S, LISTS_LAG_S), 0.0)
        fault_rates = {**rates, "slow_s": SLOW_S}
        return {"seed": self.seed, "list_lag_s": lag_s, "tls": is_tls, "faults": fault_rates}

    def play(self, theatre: Theatre) -> Verdict:
        """Go up while faults are injected, perhaps again, perhaps down; then end them and reach the goal."""
        chance, verdict = Random(self.seed), Verdict()
        orders: int | None = 1
        with theatre.stage(**self.settings) as stage:
            for number in range(chance.randint(1, LONGEST_STORM)):
                verb = chance.choice([Verb.UP, Verb.UP, Verb.DESTROY]) if number else Verb.UP
                orders = None if verb is Verb.DESTROY else orders
                _is_truthful(verb, stage.run(verb, refresh=chance.random() < 0.5), stage, verdict)
            stage.rented.stop_faults()
            stage.succeeds(Verb.UP, verdict, refresh=True)
            stage.is_settled(verdict, Expected(MARK, NAMES, orders))
            stage.succeeds(Verb.DESTROY, verdict)
            verdict.add(stage.judge(Expected(MARK, frozenset(), orders)))
        return verdict

    def __str__(self) -> str:
        return f"faults of seed {self.seed}"


def cases(seed: int, count: int) -> Iterator[Case]:
    """List the cases of a campaign."""
    return (Case(seed * 1000 + number) for number in range(count))


def _is_truthful(verb: Verb, outcome: Outcome, stage: Stage, verdict: Verdict) -> None:
    """Exit code 0 if and only if the goal is reached; else sentences that are true."""
    living = (each.name for each in billed(stage.rented.history()) if each.closed is None)
    still = {name for name in living if name.endswith(f".{DOMAIN}")}
    if outcome.exit_code == 0:
        wanted = set(NAMES) if verb is Verb.UP else set()
        verdict.orphans += [f"{verb} exited with 0 and {name} differs" for name in sorted(wanted ^ still)]
        return
    if not outcome.failures:
        verdict.prompts.append(f"{verb} exited with {outcome.exit_code} without a word")
    for text in outcome.failures:
        verdict.prompts += [f"{verb} said '{text}'" for words in BAD_WORDS if words in text]
        host = next((name for name in HOSTNAMES if text.startswith(f"{name}:")), None)
        if host and f"{host}.{DOMAIN}" in still and "othing was ordered." in text:
            verdict.orphans.append(f"{host} is billed although {verb} said '{text}'")
