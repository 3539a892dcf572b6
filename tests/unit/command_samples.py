"""A stack, its bill and a running job, as the tests of the verbs see them."""

from decimal import Decimal

from fake_machine import FACTS
from launching import transformer

from microcluster.accounts.shared.account import Account, Extension, Identity
from microcluster.analysis.run_state import Outcome
from microcluster.jobs.cluster_facts import ClusterFacts, Container
from microcluster.planning.run_cost import Cost

CLUSTER = ClusterFacts(
    *("local", "1f3a9c42", (FACTS,)),
    key_file="/nowhere",
    slots=2,
    gpu="P100",
    container=Container("openseq2seq", "r.test/i:t"),
    job=transformer(maxSteps=30),
    run="abcdef012345",
)
COST = Cost(Decimal("8.99"), Decimal("1.5"))
EVALUATIONS = ({"step": 0, "loss": 8.0}, {"step": 10, "loss": 6.5})
RUNNING = Outcome(
    **{"state": "running", "phase": "training", "phase_s": 70.0, "step": 10, "max_steps": 30, "train_loss": 5.5},
    **{"validation_loss": 6.5, "evaluations": EVALUATIONS, "seconds_per_step": 0.5, "eta_s": 10.0},
)


class EmptyAccount(Account):
    """An account in which nothing bears a mark and nothing is billed."""

    machine = "guest"

    def whoami(self):
        return Identity("1", "", "somebody", "https://api.test")

    def resources(self, owner=None, kind=None):
        return []

    def charges(self, owner, known=(), *, exact=True):
        return ()

    def end(self, resource):
        return None

    def extension(self, owner, new=None):
        return new or Extension()

    def terms(self, owner, new=None):
        return new
